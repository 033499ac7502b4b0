package benchmarks

import (
	"net/http"

	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/heedhttp/heed"
)

// Client is one way to send a request through a base.
type Client struct {
	// Name says which, with its version.
	Name string
	// Over makes it, with its defaults, on top of base.
	Over func(base http.RoundTripper) http.RoundTripper
}

// Clients are those that are compared. The first is heed's zero Transport. The
// others do less: they retry, and know nothing of limits before a refusal.
func Clients() []Client {
	return []Client{
		{"heed, zero Transport", func(base http.RoundTripper) http.RoundTripper {
			return &heed.Transport{Base: base}
		}},
		{"failsafe-go v0.9.8, retry policy", func(base http.RoundTripper) http.RoundTripper {
			return failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().Build())
		}},
		{"go-retryablehttp v0.7.8", func(base http.RoundTripper) http.RoundTripper {
			c := retryablehttp.NewClient()
			c.Logger = nil // the default writes a line for each request
			c.HTTPClient.Transport = base
			return c.StandardClient().Transport
		}},
	}
}
