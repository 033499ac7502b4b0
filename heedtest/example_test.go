package heedtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

// client is the code under test: it waits as long as Retry-After says and
// tries again.
type client struct{ http.Client }

func (c *client) status(ctx context.Context, url string) (int, error) {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		resp, err := c.Do(req)
		if err != nil {
			return 0, err
		}
		if err := resp.Body.Close(); err != nil {
			return 0, err
		}
		if resp.StatusCode != http.StatusTooManyRequests {
			return resp.StatusCode, nil
		}
		seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil {
			return 0, errors.New("refused, and not told for how long")
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// A test in virtual time: in a bubble the Server is the client's transport,
// and minutes of waiting take no time.
func TestMyClientObeysRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{
			Limit:   func() limiter.Core { return &limiter.SlidingLog{Limit: 5, Window: time.Minute} },
			Dialect: heedtest.RetryAfter,
			Latency: 40 * time.Millisecond,
			Jitter:  20 * time.Millisecond,
		}
		c := &client{http.Client{Transport: srv}}
		began := time.Now()
		for range 20 {
			if status, err := c.status(t.Context(), "https://api.example/"); status != http.StatusOK || err != nil {
				t.Fatal(status, err)
			}
		}
		if took := time.Since(began); took < 3*time.Minute || took > 3*time.Minute+10*time.Second {
			t.Errorf("20 calls at 5 a minute took %v", took)
		}
		if r := srv.Report(); r.Violations > 0 || r.Rejected > 3 {
			t.Errorf("it did not behave:\n%v", r)
		}
	})
}

// A Server on a loopback socket, for a client that needs a real one.
func ExampleServer_Start() {
	srv := &heedtest.Server{
		Limit:   func() limiter.Core { return &limiter.SlidingLog{Limit: 2, Window: time.Hour} },
		Dialect: heedtest.RateLimit,
	}
	url, stop, err := srv.Start() // in a test: url := srv.Listen(t)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 {
		resp, err := c.Get(url)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Status, "remaining", resp.Header.Get("RateLimit-Remaining"))
		_ = resp.Body.Close()
	}
	r := srv.Report()
	fmt.Println(r.Accepted, "accepted,", r.Rejected, "rejected")
	// Output:
	// 200 OK remaining 1
	// 200 OK remaining 0
	// 429 Too Many Requests remaining 0
	// 2 accepted, 1 rejected
}

// What a server has seen, as a table.
func ExampleReport_String() {
	srv := &heedtest.Server{
		Limit: func() limiter.Core { return &limiter.LeakyBucket{Rate: 1.0 / 3600, Queue: 3} },
	}
	for i := range 6 {
		req, err := http.NewRequest(http.MethodGet, "https://api.example/", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header.Set("Authorization", []string{"Bearer one", "Bearer two"}[i/4])
		if _, err := srv.Respond(req); err != nil {
			fmt.Println(err)
			return
		}
	}
	r := srv.Report()
	r.Events = nil // their span of time is another one each time
	fmt.Print(r)
	// Output:
	// client  accepted  rejected  violations
	//   0b84d71f         3         1           0
	//   75c6fab9         2         0           0
	//        all         5         1           0
}
