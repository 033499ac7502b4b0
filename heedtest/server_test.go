package heedtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func perWindow(limit float64, d time.Duration) func() limiter.Core {
	return func() limiter.Core { return &limiter.FixedWindow{Limit: limit, Window: d} }
}

// perHour is for real time: no window of it ends while a test runs.
func perHour(limit float64) func() limiter.Core {
	return func() limiter.Core { return &limiter.SlidingLog{Limit: limit, Window: time.Hour} }
}

// get sends one request and gives its answer, the body read and closed. It
// may be called from any goroutine.
func get(t testing.TB, rt http.RoundTripper, url, credential string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return &http.Response{}
	}
	if credential != "" {
		req.Header.Set("Authorization", credential)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return &http.Response{}
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp
}

func newest(srv *heedtest.Server) heedtest.Event {
	events := srv.Report().Events
	return events[len(events)-1]
}

// Each dialect that tells a wait is told one; the edges of that wait are then
// tried to the nanosecond, from both sides, through both in-process ways.
func TestAViolationIsExactToTheNanosecond(t *testing.T) {
	const way = 40 * time.Millisecond
	probes := []struct {
		name string
		at   func(delivered, end time.Time) time.Time
		want bool
	}{
		{"in the instant of the delivery", func(delivered, _ time.Time) time.Time { return delivered }, false},
		{"just after the delivery", func(delivered, _ time.Time) time.Time { return delivered.Add(1) }, true},
		{"just before the end", func(_, end time.Time) time.Time { return end.Add(-1) }, true},
		{"at the end", func(_, end time.Time) time.Time { return end }, false},
	}
	try := func(t *testing.T, srv *heedtest.Server, rt http.RoundTripper, at func(_, end time.Time) time.Time, want bool) {
		tells := srv.Dialect != heedtest.Silent
		time.Sleep(10*time.Second + 123)
		get(t, rt, "http://api.test/", "") // takes the window's unit
		get(t, rt, "http://api.test/", "") // sent in the instant of the delivery of the first answer
		refusal := newest(srv)
		if (refusal.Told > 0) != tells || !refusal.Rejected || refusal.Violation {
			t.Fatalf("the refusal is %+v", refusal)
		}
		end := refusal.At.Add(refusal.Told)
		if !tells {
			end = time.Now().Add(time.Second)
		}
		sent := at(time.Now(), end)
		time.Sleep(time.Until(sent))
		get(t, rt, "http://api.test/", "")
		e := newest(srv)
		if e.Violation != (want && tells) || !e.Sent.Equal(sent) || !e.At.Equal(sent.Add(way)) {
			t.Errorf("sent at %v, want a violation: %v, told %+v, got %+v", sent, want && tells, refusal, e)
		}
		if r := srv.Report(); tells && e.Rejected != sent.Before(end.Add(-way)) || r.Violations != len(slices.DeleteFunc(r.Events, func(e heedtest.Event) bool { return !e.Violation })) {
			t.Errorf("sent at %v, told %+v, got %+v\n%v", sent, refusal, e, r)
		}
	}
	for d := heedtest.Silent; d <= heedtest.GitHub; d++ {
		for _, skew := range []time.Duration{0, 5 * time.Minute, -5*time.Minute - 123456789} {
			for _, probe := range probes {
				// Those that show what remains have told the wait before the refusal.
				want := probe.want || d >= heedtest.XRateLimit && probe.name == probes[0].name
				t.Run(fmt.Sprint(d, skew, probe.name), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						srv := &heedtest.Server{Limit: perWindow(1, time.Minute), Dialect: d, Skew: skew, Latency: way}
						try(t, srv, srv, probe.at, want)
					})
					synctest.Test(t, func(t *testing.T) {
						srv := &heedtest.Server{Limit: perWindow(1, time.Minute), Dialect: d, Skew: skew, Latency: way}
						try(t, srv, srv.Network(t), probe.at, want)
					})
				})
			}
		}
	}
}

func TestWhatWasUnderWayIsNoViolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Limit: perWindow(1, time.Minute), Dialect: heedtest.RetryAfter, Latency: 50 * time.Millisecond}
		done := make(chan int)
		for i := range 10 { // the last is sent a nanosecond before the first refusal is read
			go func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond / 10)
				if i == 9 {
					time.Sleep(20*time.Millisecond - 1)
				}
				done <- get(t, srv, "http://api.test/", "").StatusCode
			}()
		}
		refused := 0
		for range 10 {
			if <-done == http.StatusTooManyRequests {
				refused++
			}
		}
		if r := srv.Report(); refused != 9 || r.Violations != 0 || r.Rejected != 9 {
			t.Errorf("%d refused:\n%v", refused, r)
		}
		get(t, srv, "http://api.test/", "")
		if r := srv.Report(); r.Violations != 1 || r.Forgiven != 0 {
			t.Errorf("one more:\n%v", r)
		}
		get(t, srv, "http://api.test/", "other")
		if r := srv.Report(); r.Violations != 1 || r.Accepted != 2 {
			t.Errorf("another client was told nothing:\n%v", r)
		}
	})
}

func TestABucketForgivesWhoComesBeforeItsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{
			Limit:   func() limiter.Core { return &limiter.TokenBucket{Rate: 1, Burst: 2} },
			Dialect: heedtest.RateLimit, Latency: time.Millisecond,
		}
		get(t, srv, "http://api.test/", "")
		get(t, srv, "http://api.test/", "") // nothing remaining, full in 2 s
		time.Sleep(1500 * time.Millisecond)
		get(t, srv, "http://api.test/", "")
		if r := srv.Report(); r.Accepted != 3 || r.Violations != 1 || r.Forgiven != 1 {
			t.Errorf("got\n%v", r)
		}
	})
}

func TestALostTellingBindsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Limit: perHour(1), Dialect: heedtest.RetryAfter, Latency: time.Second}
		get(t, srv, "http://api.test/", "")
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // gives up while the refusal comes back
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := srv.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		get(t, srv, "http://api.test/", "")
		if r := srv.Report(); r.Rejected != 2 || r.Violations != 0 {
			t.Errorf("got\n%v", r)
		}
	})
}

func TestWhatWasSentArrivesThoughItsClientGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Limit: perHour(1), MaxConcurrent: 1, Latency: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := srv.RoundTrip(req); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 300*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		if r := srv.Report(); r.Accepted != 0 {
			t.Errorf("it has arrived too soon:\n%v", r)
		}
		time.Sleep(700*time.Millisecond + 1)
		r := srv.Report()
		if r.Accepted != 1 || r.Events[0].At.Sub(began) != time.Second || r.Events[0].Status != 0 {
			t.Errorf("it has not arrived at the end of its way: %+v", r)
		}
		if got := get(t, srv, "http://api.test/", "").StatusCode; got != http.StatusTooManyRequests {
			t.Errorf("it spent nothing: the next got %d", got)
		}
		if got := get(t, srv, "http://api.test/", "x").StatusCode; got != http.StatusOK {
			t.Errorf("it is still being served: another client got %d", got)
		}
	})
}

func TestJitterLetsRequestsOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		srv := &heedtest.Server{Latency: 10 * time.Millisecond, Jitter: 30 * time.Millisecond, Rand: rnd.Float64}
		done := make(chan time.Duration)
		for i := range 100 {
			go func() {
				began := time.Now()
				get(t, srv, fmt.Sprint("http://api.test/", i), "")
				done <- time.Since(began)
			}()
			time.Sleep(time.Millisecond)
		}
		least, most := time.Hour, time.Duration(0)
		for range 100 {
			d := <-done
			least, most = min(least, d), max(most, d)
		}
		if least < 20*time.Millisecond || most >= 80*time.Millisecond || most-least < 30*time.Millisecond {
			t.Errorf("round trips took from %v to %v", least, most)
		}
		events, overtaken := srv.Report().Events, 0
		for i := 1; i < len(events); i++ {
			if events[i].At.Before(events[i-1].At) {
				t.Error("events are not in order of arrival")
			}
			if events[i].Sent.Before(events[i-1].Sent) {
				overtaken++
			}
		}
		if overtaken < 10 {
			t.Errorf("%d overtook", overtaken)
		}
	})
}

func TestTooManyAtOnceSpendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{
			Limit: perHour(10), Dialect: heedtest.RateLimit, MaxConcurrent: 3,
			Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }),
		}
		statuses := make(chan int)
		for i := range 5 {
			go func() {
				time.Sleep(time.Duration(i))
				statuses <- get(t, srv, "http://api.test/", "").StatusCode
			}()
		}
		count := map[int]int{}
		for range 5 {
			count[<-statuses]++
		}
		r := srv.Report()
		if count[200] != 3 || count[429] != 2 || r.Crowded != 2 || r.Peak != 3 || r.Violations != 0 {
			t.Errorf("got %v\n%v", count, r)
		}
		if left := get(t, srv, "http://api.test/", "").Header.Get("RateLimit-Remaining"); left != "6" {
			t.Errorf("%s remain of 10 after 4", left)
		}
	})
}

func TestAQueueLetsThroughAtAConstantRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, queue := range []bool{true, false} {
			srv := &heedtest.Server{
				Limit:   func() limiter.Core { return &limiter.LeakyBucket{Rate: 2, Queue: 4} },
				Dialect: heedtest.RateLimit, Queue: queue,
			}
			type answer struct {
				status int
				after  time.Duration
				left   string
			}
			answers := make(chan answer)
			began := time.Now()
			for i := range 6 {
				go func() {
					time.Sleep(time.Duration(i))
					resp := get(t, srv, "http://api.test/", "")
					answers <- answer{resp.StatusCode, time.Since(began).Round(time.Millisecond), resp.Header.Get("RateLimit-Remaining")}
				}()
			}
			got := map[answer]int{}
			for range 6 {
				got[<-answers]++
			}
			step := time.Duration(0)
			if queue {
				step = 500 * time.Millisecond
			}
			for i := range 4 {
				if want := (answer{200, time.Duration(i) * step, fmt.Sprint(3 - i)}); got[want] != 1 {
					t.Errorf("queue %v: no %+v in %v", queue, want, got)
				}
			}
			if got[answer{429, 0, "0"}] != 2 {
				t.Errorf("queue %v: %v", queue, got)
			}
			if r := srv.Report(); queue && r.Peak != 3 { // the first goes through before the second comes
				t.Errorf("those that are held are served: %v", r)
			}
		}
	})
}

func TestALeavingClientGivesItsPlaceInService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{
			Limit: func() limiter.Core { return &limiter.LeakyBucket{Rate: 0.1, Queue: 4} }, Queue: true, MaxConcurrent: 1,
		}
		get(t, srv, "http://api.test/", "")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Respond(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if got := get(t, srv, "http://api.test/", "").StatusCode; got != 200 {
			t.Errorf("the next got %d", got)
		}
	})
}

func TestKeyAndCostSeeTheServersRequest(t *testing.T) {
	srv := &heedtest.Server{
		Limit: perHour(10), Dialect: heedtest.RateLimit,
		Key: func(r *http.Request) string {
			if r.RequestURI == "" || r.URL.Host != "" {
				t.Errorf("not a server's request: %+v", r)
			}
			return r.Host
		},
		Cost: func(r *http.Request) float64 {
			switch r.URL.Path {
			case "/nan":
				return math.NaN()
			case "/negative":
				return -5
			}
			return 4
		},
	}
	for _, c := range []struct{ url, left string }{
		{"http://a.test/", "6"}, {"http://b.test", "6"}, {"http://a.test/nan", "6"}, {"http://a.test/negative", "6"}, {"http://a.test/", "2"},
	} {
		if got := get(t, srv, c.url, "").Header.Get("RateLimit-Remaining"); got != c.left {
			t.Errorf("%s: %s remain, want %s", c.url, got, c.left)
		}
	}
}

func TestTheSilentestClientIsForgottenFirst(t *testing.T) {
	srv := &heedtest.Server{Limit: perHour(1), MaxClients: 2}
	for i, c := range []struct {
		who  string
		want int
	}{{"a", 200}, {"b", 200}, {"a", 429}, {"c", 200}, {"a", 429}, {"b", 200}} {
		if got := get(t, srv, "http://api.test/", c.who).StatusCode; got != c.want {
			t.Errorf("%d: %s got %d, want %d", i, c.who, got, c.want)
		}
	}
	if n := len(srv.Report().Clients); n != 2 {
		t.Errorf("%d clients are remembered", n)
	}
}

func TestNoCredentialIsInWhatIsKept(t *testing.T) {
	srv := &heedtest.Server{Limit: perHour(1), Dialect: heedtest.GitHub}
	const secret = "s3cr3t-t0k3n"
	for range 2 {
		resp := get(t, srv, "http://user:"+secret+"@api.test/path?key="+secret, "Bearer "+secret)
		for name, values := range resp.Header {
			if strings.Contains(fmt.Sprint(values), secret) {
				t.Errorf("%s: %v", name, values)
			}
		}
	}
	r := srv.Report()
	if all := fmt.Sprintf("%+v\n%v", r, r); strings.Contains(all, secret) || strings.Contains(fmt.Sprintf("%#v", srv.Report()), secret) {
		t.Errorf("the credential is in %s", all)
	}
	if e := r.Events[1]; len(e.Client) != 8 || e.Path != "/path" || e.Method != http.MethodGet || e.Status != 403 {
		t.Errorf("the event is %+v", e)
	}
}

func TestWhatAClientSendsIsBoundedWhenKept(t *testing.T) {
	srv := &heedtest.Server{MaxEvents: 3}
	long := strings.Repeat("x", 100_000)
	for i := range 5 {
		req, err := http.NewRequest(long[:1000], fmt.Sprint("http://api.test/", i, long), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Respond(req); err != nil {
			t.Fatal(err)
		}
	}
	r := srv.Report()
	if len(r.Events) != 3 || r.Dropped != 2 || r.Accepted != 5 {
		t.Errorf("%d events, %d dropped", len(r.Events), r.Dropped)
	}
	if e := r.Events[0]; len(e.Path) != 256 || !strings.HasPrefix(e.Path, "/2x") || len(e.Method) != 32 {
		t.Errorf("the oldest is %+v", e)
	}
}

func TestTheServersClockRulesItsWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Limit: perWindow(1, time.Minute), Dialect: heedtest.RetryAfter, Skew: 45 * time.Second}
		get(t, srv, "http://api.test/", "")
		resp := get(t, srv, "http://api.test/", "")
		if got := resp.Header.Get("Retry-After"); got != "15" {
			t.Errorf("Retry-After %s at :45 of the server's minute", got)
		}
		date, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil || time.Until(date) != 45*time.Second {
			t.Errorf("Date is off by %v, %v", time.Until(date), err)
		}
	})
}
