package main

import (
	"net/http"
	"sync/atomic"
)

// tally counts what really goes over the wire: it sits below either client.
type tally struct {
	base               http.RoundTripper
	sent, refused, got atomic.Int64
}

// RoundTrip counts the request and a refusal.
func (t *tally) RoundTrip(req *http.Request) (*http.Response, error) {
	t.sent.Add(1)
	resp, err := t.base.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		t.refused.Add(1)
	}
	return resp, err
}
