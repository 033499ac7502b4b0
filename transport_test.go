package heed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/heedhttp/heed"
	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

// Whole-chain stories: what a user of an http.Client sees. Those with httpmock
// script the server, those with heedtest play one, in virtual time.

// crawl lets workers fetch url until ctx ends, and counts what they got.
func crawl(ctx context.Context, client *http.Client, workers int, url, credential string) (ok, refused int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				resp, err := get(ctx, client, url, credential)
				if err != nil {
					if ctx.Err() == nil {
						<-ctx.Done() // told that it cannot go before the end
					}
					return
				}
				resp.Body.Close()
				mu.Lock()
				if resp.StatusCode == http.StatusOK {
					ok++
				} else {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return ok, refused
}

func get(ctx context.Context, client *http.Client, url, credential string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if credential != "" {
		req.Header.Set("Authorization", "Bearer "+credential)
	}
	return client.Do(req)
}

func fixedWindow(n float64, w time.Duration) func() limiter.Core {
	return func() limiter.Core { return &limiter.FixedWindow{Limit: n, Window: w} }
}

func tokenBucket(rate, burst float64) func() limiter.Core {
	return func() limiter.Core { return &limiter.TokenBucket{Rate: rate, Burst: burst} }
}

// timeline draws what arrived, a row per tenth of a minute, so that a failure shows the bunching.
func timeline(r heedtest.Report, from time.Time, span time.Duration) string {
	var b strings.Builder
	const rows = 60
	accepted, rejected := make([]int, rows), make([]int, rows)
	for _, e := range r.Events {
		i := int(e.At.Sub(from) * rows / span)
		if i < 0 || i >= rows {
			continue
		}
		if e.Rejected {
			rejected[i]++
		} else {
			accepted[i]++
		}
	}
	for i := range rows {
		fmt.Fprintf(&b, "%8v %s%s\n", (span * time.Duration(i) / rows).Round(time.Second),
			strings.Repeat("+", min(accepted[i], 80)), strings.Repeat("x", min(rejected[i], 80)))
	}
	return b.String()
}

func TestFiftyWorkersOnOneCredentialSeeNoRejectionInAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &heedtest.Server{
			Limit: fixedWindow(60, time.Minute), Dialect: heedtest.XRateLimit,
			Latency: 20 * time.Millisecond, Jitter: 10 * time.Millisecond,
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		client := (&heed.Transport{Base: server}).Client()

		got, refused := crawl(ctx, client, 50, "http://api.example.com/items", "one")

		report := server.Report()
		t.Logf("accepted %d of 3600, rejected %d (%.2f per 1000), violations %d", report.Accepted, report.Rejected,
			1000*float64(report.Rejected)/float64(report.Accepted), report.Violations)
		if n := report.RejectedAfter(start.Add(time.Minute)); n != 0 {
			t.Errorf("%d rejections after the first window", n)
		}
		if report.Accepted < 3600*97/100 {
			t.Errorf("%d accepted, want at least 97%% of the 3600 that the server lets through", report.Accepted)
		}
		if report.Violations != 0 || refused != 0 {
			t.Errorf("%d sent inside a told wait, %d refusals reached the caller", report.Violations, refused)
		}
		if got > report.Accepted {
			t.Errorf("the workers got %d answers, the server gave %d", got, report.Accepted)
		}
		if t.Failed() {
			t.Log("\n" + timeline(report, start, time.Hour))
		}
	})
}

func TestAZeroTransportKeepsToWhatServersReport(t *testing.T) {
	minute := fixedWindow(60, time.Minute)
	bucket := tokenBucket(20, 20)
	for _, x := range []struct {
		name    string
		limit   func() limiter.Core
		dialect heedtest.Dialect
		skew    time.Duration
		ideal   float64
		span    time.Duration
	}{
		{"a minute window in epoch seconds", minute, heedtest.XRateLimit, 0, 600, 10 * time.Minute},
		{"a minute window in delta seconds", minute, heedtest.RateLimit, 0, 600, 10 * time.Minute},
		{"a minute window on a clock 5 minutes ahead", minute, heedtest.XRateLimit, 5 * time.Minute, 600, 10 * time.Minute},
		{"a minute window on a clock 5 minutes behind", minute, heedtest.XRateLimit, -5 * time.Minute, 600, 10 * time.Minute},
		{"a minute window that refuses with 403", minute, heedtest.GitHub, 0, 600, 10 * time.Minute},
		{"a bucket in delta seconds", bucket, heedtest.RateLimit, 0, 2420, 2 * time.Minute},
		{"a bucket in epoch seconds", bucket, heedtest.XRateLimit, 0, 2420, 2 * time.Minute},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &heedtest.Server{
					Limit: x.limit, Dialect: x.dialect, Skew: x.skew,
					Latency: 15 * time.Millisecond, Jitter: 10 * time.Millisecond,
				}
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), x.span)
				defer cancel()
				crawl(ctx, (&heed.Transport{Base: server}).Client(), 16, "http://api.example.com/", "")
				r := server.Report()
				goodput, per1000 := float64(r.Accepted)/x.ideal, 1000*float64(r.Rejected)/float64(r.Accepted)
				t.Logf("goodput %.3f, %.1f rejections per 1000", goodput, per1000)
				if goodput < 0.97 || per1000 > 5 {
					t.Errorf("goodput %.3f and %.1f rejections per 1000, want at least 0.97 and at most 5\n%s",
						goodput, per1000, timeline(r, start, x.span))
				}
			})
		})
	}
}

func TestARetryAfterHoldsNewcomersOfTheScopeAndNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mock := httpmock.NewMockTransport()
		var sent []string
		start := time.Now()
		var mu sync.Mutex
		record := func(r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, fmt.Sprint(r.URL.Host, r.URL.Path, " ", time.Since(start)))
		}
		first := true
		mock.RegisterResponder("GET", "=~^http://limited.test/", func(r *http.Request) (*http.Response, error) {
			record(r)
			resp := httpmock.NewStringResponse(200, "ok")
			if first {
				first = false
				resp = httpmock.NewStringResponse(429, "slow down")
				resp.Header.Set("Retry-After", "30")
			}
			return resp, nil
		})
		mock.RegisterResponder("GET", "=~^http://other.test/", func(r *http.Request) (*http.Response, error) {
			record(r)
			return httpmock.NewStringResponse(200, "ok"), nil
		})
		client := (&heed.Transport{Base: mock, Rand: func() float64 { return 0 }}).Client()
		var wg sync.WaitGroup
		fetch := func(url string) {
			wg.Go(func() {
				resp, err := client.Get(url)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Errorf("%s: status %d", url, resp.StatusCode)
				}
			})
		}
		fetch("http://limited.test/1")
		synctest.Wait()
		time.Sleep(10 * time.Second)
		fetch("http://limited.test/2")
		fetch("http://other.test/3")
		wg.Wait()
		got := strings.Join(sent, "\n")
		want := "limited.test/1 0s\nother.test/3 10s\nlimited.test/1 30s\nlimited.test/2 30s"
		if got != want {
			t.Errorf("sent:\n%s\nwant:\n%s", got, want)
		}
	})
}

func TestTheLastUnitIsNotOverspentByThoseWhoComeTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Remaining counts down from 5; whoever is sent beyond gets a 429.
		mock := httpmock.NewMockTransport()
		var mu sync.Mutex
		left, refused := 5, 0
		reset := time.Now().Add(20 * time.Second)
		mock.RegisterResponder("GET", "http://api.test/", func(*http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			if !time.Now().Before(reset) {
				left, reset = 5, reset.Add(20*time.Second)
			}
			resp := httpmock.NewStringResponse(200, "ok")
			if left == 0 {
				refused++
				resp = httpmock.NewStringResponse(429, "")
			} else {
				left--
			}
			resp.Header.Set("RateLimit-Limit", "5")
			resp.Header.Set("RateLimit-Remaining", fmt.Sprint(left))
			resp.Header.Set("RateLimit-Reset", fmt.Sprint(int64((time.Until(reset)+time.Second-1)/time.Second)))
			return resp, nil
		})
		client := (&heed.Transport{Base: mock}).Client()
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				resp, err := client.Get("http://api.test/")
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			})
		}
		wg.Wait()
		if refused != 0 {
			t.Errorf("%d requests were refused", refused)
		}
	})
}

func TestAWaitThatCannotMeetTheDeadlineIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &heedtest.Server{Limit: fixedWindow(1, time.Minute), Dialect: heedtest.RateLimit}
		client := (&heed.Transport{Base: server}).Client()
		resp, err := client.Get("http://api.test/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err = get(ctx, client, "http://api.test/", "")
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v to say no", took)
		}
		var limited *heed.LimitError
		if !errors.As(err, &limited) || !errors.Is(err, heed.ErrLimited) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error is %v, want a LimitError that is DeadlineExceeded too", err)
		}
		if limited.Reason != heed.ReasonLimit || time.Until(limited.RetryAt) < 50*time.Second {
			t.Errorf("reason %q, retry at +%v", limited.Reason, time.Until(limited.RetryAt))
		}
		if got := server.Report().Accepted + server.Report().Rejected; got != 1 {
			t.Errorf("%d requests were sent, want 1", got)
		}
	})
}

func TestSomebodyWhoLeavesTheQueueLeavesNoHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &heedtest.Server{Limit: fixedWindow(1, time.Minute), Dialect: heedtest.RateLimit}
		client := (&heed.Transport{Base: server}).Client()
		start := time.Now()
		var order []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		ask := func(ctx context.Context, name string) {
			wg.Go(func() {
				resp, err := get(ctx, client, "http://api.test/", "")
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					order = append(order, fmt.Sprintf("%s left after %v", name, time.Since(start).Round(time.Minute)))
					return
				}
				resp.Body.Close()
				order = append(order, fmt.Sprintf("%s went after %v", name, time.Since(start).Round(time.Minute)))
			})
			synctest.Wait()
		}
		leaving, leave := context.WithCancel(t.Context())
		ask(t.Context(), "first")
		ask(t.Context(), "second")
		ask(leaving, "third")
		ask(t.Context(), "fourth")
		leave()
		wg.Wait()
		want := "first went after 0s, third left after 0s, second went after 1m0s, fourth went after 2m0s"
		if got := strings.Join(order, ", "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestTransportsThatShareABudgetShareTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &heedtest.Server{
			Limit: fixedWindow(60, time.Minute), Dialect: heedtest.XRateLimit,
			Latency: 10 * time.Millisecond, Jitter: 5 * time.Millisecond,
		}
		budget := heed.NewBudget()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 4 {
			client := (&heed.Transport{Base: server, Budget: budget}).Client()
			wg.Go(func() { crawl(ctx, client, 8, "http://api.test/", "shared") })
		}
		wg.Wait()
		r := server.Report()
		t.Logf("accepted %d of 600, rejected %d", r.Accepted, r.Rejected)
		if r.Rejected > 1 || r.Accepted < 582 {
			t.Errorf("accepted %d of 600 and rejected %d, want at least 582 and at most 1", r.Accepted, r.Rejected)
		}
	})
}

func TestAKnownRuleNeedsNoWordFromTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &heedtest.Server{Limit: fixedWindow(10, time.Second)}
		tr := &heed.Transport{Base: server}
		tr.Throttle.Rules = []heed.Rule{{Match: "api.test/", Limits: []heed.Limit{{Quota: 10, Window: time.Second}}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		crawl(ctx, tr.Client(), 16, "http://api.test/x", "")
		r := server.Report()
		if r.Rejected != 0 || r.Accepted < 590 {
			t.Errorf("accepted %d, rejected %d; want at least 590 and none", r.Accepted, r.Rejected)
		}
	})
}

func TestARuleForOneRouteDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(heedtest.Server)
		tr := &heed.Transport{Base: server}
		tr.Throttle.Rules = []heed.Rule{{Match: "GET api.test/search", Limits: []heed.Limit{{Quota: 1, Window: time.Minute}}}}
		client := tr.Client()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if resp, err := client.Get("http://api.test/search"); err == nil {
					resp.Body.Close()
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		resp, err := client.Get("http://api.test/items")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if d := time.Since(start); d != 0 {
			t.Errorf("the other route waited %v", d)
		}
		wg.Wait()
		if d := time.Since(start); d != 4*time.Minute {
			t.Errorf("five searches took %v, want 4m", d)
		}
	})
}

func TestAConcurrencySlotIsHeldUntilTheBodyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(heedtest.Server)
		tr := &heed.Transport{Base: server}
		tr.Throttle.Rules = []heed.Rule{{Match: "api.test/", Concurrency: 2}}
		client := tr.Client()
		var open []*http.Response
		for range 2 {
			resp, err := client.Get("http://api.test/")
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, resp)
		}
		done := make(chan *http.Response, 2)
		for range 2 {
			go func() {
				resp, err := client.Get("http://api.test/")
				if err != nil {
					t.Error(err)
				}
				done <- resp
			}()
		}
		synctest.Wait()
		if n := server.Report().Accepted; n != 2 {
			t.Fatalf("%d sent while two bodies are open", n)
		}
		_, _ = io.Copy(io.Discard, open[0].Body) // read to its end: free
		synctest.Wait()
		if n := server.Report().Accepted; n != 3 {
			t.Fatalf("%d sent after one body ended, want 3", n)
		}
		open[0].Body.Close() // counts once
		open[1].Body.Close()
		for range 2 {
			(<-done).Body.Close()
		}
		if n := server.Report().Accepted; n != 4 {
			t.Fatalf("%d sent, want 4", n)
		}
	})
}

func TestAnUnknownServerIsMetByOneThenTwoThenFour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &heedtest.Server{Latency: 50 * time.Millisecond}
		client := (&heed.Transport{Base: server}).Client()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if resp, err := client.Get("http://new.test/"); err == nil {
					resp.Body.Close()
				}
			})
		}
		start := time.Now()
		var seen []int
		for range 4 {
			synctest.Wait()
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			seen = append(seen, server.Report().Accepted)
		}
		wg.Wait()
		if got := fmt.Sprint(seen); got != "[1 3 7 20]" {
			t.Errorf("accepted after each round trip: %s, want [1 3 7 20]", got)
		}
		if d := time.Since(start); d > 500*time.Millisecond {
			t.Errorf("meeting it took %v", d)
		}
	})
}

func TestASlowFirstAnswerHoldsNewcomersUpForHalfASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &heedtest.Server{Latency: time.Minute}
		client := (&heed.Transport{Base: server}).Client()
		go func() { _, _ = get(t.Context(), client, "http://slow.test/", "") }()
		synctest.Wait()
		var waited time.Duration
		var wg sync.WaitGroup
		wg.Go(func() {
			resp, err := get(t.Context(), client, "http://slow.test/", "")
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			waited = heed.InfoOf(resp).Waited()
		})
		wg.Wait()
		if waited != 500*time.Millisecond {
			t.Errorf("the second waited %v, want 500ms", waited)
		}
	})
}

func TestInfoTellsEveryWaitByItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mock := httpmock.NewMockTransport()
		limited := httpmock.NewStringResponse(429, "")
		limited.Header = http.Header{"Retry-After": {"7"}}
		mock.RegisterResponder("GET", "http://api.test/", httpmock.ResponderFromMultipleResponses([]*http.Response{
			limited, httpmock.NewStringResponse(503, ""), httpmock.NewStringResponse(200, "done"),
		}))
		client := (&heed.Transport{Base: mock, Rand: func() float64 { return 0 }}).Client()
		start := time.Now()
		resp, err := client.Get("http://api.test/")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		info := heed.InfoOf(resp)
		if string(body) != "done" || info.Attempts != 3 {
			t.Errorf("body %q after %d sends, want done after 3", body, info.Attempts)
		}
		want := []heed.Wait{{Reason: heed.ReasonHold, For: 7 * time.Second}, {Reason: heed.ReasonBackoff, For: 500 * time.Millisecond}}
		if fmt.Sprint(info.Waits) != fmt.Sprint(want) {
			t.Errorf("waits %v, want %v", info.Waits, want)
		}
		if got := time.Since(start); got != info.Waited() {
			t.Errorf("the causes add up to %v, the call took %v", info.Waited(), got)
		}
	})
}
