package heed_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/heedhttp/heed"
)

// answering is a server that refuses every call in words of its own.
func answering(status int, body string) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
		}, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func ExampleDialect() {
	acme := heed.Dialect{
		Name:  "acme",
		Match: "api.acme.example/v2/",
		Read: func(a heed.Answer, fb *heed.Feedback) bool {
			var body struct {
				Busy  bool    `json:"busy"`
				Until float64 `json:"free_in"`
			}
			if a.Status != 409 || json.Unmarshal(a.Body, &body) != nil || !body.Busy {
				return false // not one of theirs: read on
			}
			fb.Limited, fb.Kind = true, heed.KindConcurrency
			fb.RetryAt = a.Now.Add(time.Duration(body.Until * float64(time.Second)))
			return true
		},
	}
	client := &http.Client{Transport: &heed.Transport{
		Dialects: []heed.Dialect{acme},
		Base:     answering(409, `{"busy":true,"free_in":7200}`),
	}}
	resp, err := client.Get("https://api.acme.example/v2/orders")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	info := heed.InfoOf(resp)
	fmt.Println(resp.StatusCode, info.Stopped, info.Asked.Round(time.Minute))
	// Output: 409 wait 2h0m0s
}
