package heed_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/heedhttp/heed"
	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

// The zero Transport is the whole adoption.
func Example() {
	client := &http.Client{Transport: &heed.Transport{}}

	server := new(heedtest.Server)
	url, stop, err := server.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	resp, err := client.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, heed.InfoOf(resp).Attempts)
	// Output: 200 OK 1
}

// A limit that a server documents but does not report is a Rule.
func ExampleRule() {
	client := &http.Client{Transport: &heed.Transport{
		Throttle: heed.Throttle{Rules: []heed.Rule{
			{Match: "GET api.example.com/search", Limits: []heed.Limit{{Quota: 30, Window: time.Minute}}},
			{Match: "api.example.com/", Concurrency: 10},
		}},
	}}
	_ = client
	// Output:
}

// A call that may not wait is told so at once.
func ExampleLimitError() {
	server := &heedtest.Server{
		Limit:   func() limiter.Core { return &limiter.FixedWindow{Limit: 1, Window: 24 * time.Hour} },
		Dialect: heedtest.RateLimit,
	}
	client := (&heed.Transport{Base: server}).Client()
	for range 2 {
		resp, err := client.Get("http://api.example.com/")
		var limited *heed.LimitError
		if errors.As(err, &limited) {
			fmt.Println("limited by", limited.Limit.Quota, "per day")
			return
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// 200 OK
	// limited by 1 per day
}

// Per-call wishes travel in the context.
func ExampleWithCall() {
	client := (&heed.Transport{Base: new(heedtest.Server)}).Client()
	req, err := http.NewRequest(http.MethodPost, "http://api.example.com/orders", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := heed.WithCall(req.Context(), heed.Call{Idempotent: true, MaxWait: 10 * time.Second})
	resp, err := client.Do(req.WithContext(ctx))
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// Transports that are given one Budget share one ledger.
func ExampleNewBudget() {
	budget := heed.NewBudget()
	crawler := &http.Client{Transport: &heed.Transport{Budget: budget}}
	backfill := &http.Client{Transport: &heed.Transport{Budget: budget}}
	_, _ = crawler, backfill
	// Output:
}

// The wrong way: a Transport per request knows nothing of the others, so each
// meets the limit anew. Make one and keep it.
func Example_incorrect() {
	server := &heedtest.Server{
		Limit:   func() limiter.Core { return &limiter.FixedWindow{Limit: 1, Window: 24 * time.Hour} },
		Dialect: heedtest.RetryAfter,
	}
	for range 3 {
		client := &http.Client{Transport: &heed.Transport{Base: server}}
		resp, err := client.Get("http://api.example.com/")
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	// Output:
	// 200
	// 429
	// 429
}

// ParseFeedback reads an answer without a Transport.
func ExampleParseFeedback() {
	resp := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{
		"Retry-After":           {"30"},
		"X-Ratelimit-Limit":     {"60"},
		"X-Ratelimit-Remaining": {"0"},
	}}
	now := time.Now()
	fb := heed.ParseFeedback(resp, now)
	fmt.Println(fb.Limited, fb.Kind, fb.RetryAt.Sub(now), fb.Readings[0].Limit.Quota)
	// Output: true primary 30s 60
}
