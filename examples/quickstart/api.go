package main

import (
	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

// api starts a limited API on a loopback socket. It says on every answer what
// remains and when all is back, as most APIs do; a refusal carries Retry-After.
func api(p plan) (url string, stop func(), err error) {
	server := &heedtest.Server{
		Limit:     func() limiter.Core { return &limiter.TokenBucket{Rate: p.rate, Burst: p.burst} },
		Dialect:   heedtest.RateLimit,
		MaxEvents: -1, // tens of thousands of refusals need not be kept
	}
	return server.Start()
}
