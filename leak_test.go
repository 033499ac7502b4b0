package heed

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestNoWayOutLeavesAGoroutineABodyOrASlotBehind(t *testing.T) {
	used := []string{"RateLimit-Limit: 1", "RateLimit-Remaining: 0", "RateLimit-Reset: 3000"}
	for _, x := range []struct {
		name    string
		answers []reply
		retry   Retry
		end     time.Duration // of a deadline; below zero: of a cancel
		method  string
	}{
		{name: "success", answers: []reply{answer(200)}},
		{name: "success after all kinds of failures", answers: []reply{answer(503), answer(429, "Retry-After: 2"), breaks(errReset), answer(429), answer(200)}},
		{name: "failure for good", answers: []reply{answer(501)}},
		{name: "too many attempts", answers: []reply{answer(503)}},
		{name: "retry is off", answers: []reply{answer(503)}, retry: Retry{MaxAttempts: -1}},
		{name: "a spent budget", answers: []reply{answer(503)}, retry: Retry{Reserve: 0.5}},
		{name: "an error", answers: []reply{breaks(errNoHost)}},
		{name: "a write", answers: []reply{answer(503)}, method: "POST"},
		{name: "a wait that is too long", answers: []reply{answer(429, "Retry-After: 9999")}},
		{name: "a refusal of a newcomer", answers: []reply{answer(200, used...)}, end: time.Minute},
		{name: "a deadline before a pause", answers: []reply{answer(503)}, end: time.Millisecond},
		{name: "a deadline in a send", answers: []reply{late(time.Hour, answer(200))}, end: time.Second},
		{name: "a cancel in a pause", answers: []reply{answer(503)}, end: -100 * time.Millisecond},
		{name: "a cancel in a hold", answers: []reply{answer(429, "Retry-After: 60")}, end: -100 * time.Millisecond},
		{name: "a cancel in a send", answers: []reply{late(time.Hour, answer(200))}, end: -100 * time.Millisecond},
		{name: "a cancel in the queue", answers: []reply{answer(200, used...)}, end: -5 * time.Minute},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which panics when a goroutine is left
				base := script(x.answers...)
				tr := &Transport{Base: base, Retry: x.retry, Cache: NewCache(1 << 20)}
				tr.Throttle.Rules = []Rule{{Match: "/", Concurrency: 1, Limits: []Limit{{Quota: 1000, Window: time.Second}}}}
				for range 3 {
					ctx, cancel := context.WithCancel(t.Context())
					if x.end > 0 {
						ctx, cancel = context.WithTimeout(t.Context(), x.end)
					} else if x.end < 0 {
						time.AfterFunc(-x.end, cancel)
					}
					req := newRequest(t, ctx, "GET", "")
					if x.method != "" {
						req.Method = x.method
					}
					if resp, err := roundTrip(t, tr, req); err == nil {
						resp.Body.Close()
					}
					cancel()
					conserved(t, tr)
				}
				if n := base.open(t); n != 0 {
					t.Errorf("%d bodies are open", n)
				}
			})
		})
	}
}

func TestOverRealSocketsNothingIsLeftBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/missing":
			http.Error(w, strings.Repeat("missing ", 100), http.StatusNotFound)
		case "/sick":
			w.WriteHeader(http.StatusServiceUnavailable)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/stuck":
			<-r.Context().Done()
		case "/wait":
			w.Header().Set("Retry-After", "3600")
			http.Error(w, "later", http.StatusTooManyRequests)
		}
	}))
	tr := &Transport{Base: new(http.Transport), Retry: Retry{BaseDelay: time.Millisecond, MaxAttempts: 2}}
	client := tr.Client()
	ask := func(path string, end time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), end)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", s.URL+path, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	// real time: goroutines of real connections are counted
	for range 200 {
		if err := ask("/missing", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask("/sick", time.Minute); err != nil {
		t.Error(err)
	}
	if err := ask("/stuck", 20*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stuck server: %v", err)
	}
	if err := ask("/wait", time.Second); err != nil {
		t.Error(err)
	}
	if err := ask("/missing", time.Second); !errors.Is(err, ErrLimited) {
		t.Errorf("in the hold: %v", err)
	}
	conserved(t, tr)
	client.CloseIdleConnections()
	s.Close()
	goleak.VerifyNone(t, before)
}

func TestAWaiterOfAnUnreadBodyGoesWhenItsOwnerClosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{Base: script(answer(200))}
		tr.Throttle.Rules = []Rule{{Match: "/", Concurrency: 1, Limits: []Limit{{Quota: 1000, Window: time.Second}}}}
		first, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			second, err := fetch(t, t.Context(), tr)
			if err == nil {
				_, _ = io.Copy(io.Discard, second.Body) // to its end, but not closed
			}
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("two go where one may")
		default:
		}
		first.Body.Close()
		first.Body.Close()
		<-done
		conserved(t, tr)
	})
}
