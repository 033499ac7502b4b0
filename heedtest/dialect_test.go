package heedtest

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedhttp/heed/limiter"
)

// sheet is an answer as people read it.
func sheet(resp *http.Response) string {
	var b strings.Builder
	fmt.Fprintln(&b, resp.Status)
	names := make([]string, 0, len(resp.Header))
	for name := range resp.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, resp.Header.Get(name))
	}
	body, err := io.ReadAll(resp.Body)
	fmt.Fprintf(&b, "\n%s", body)
	if err != nil {
		fmt.Fprintln(&b, err)
	}
	return b.String()
}

// The bubble's clock begins at 2000-01-01T00:00:00Z, epoch second 946684800.
func TestEveryDialectOnAcceptOnExhaustionAndOnRefusal(t *testing.T) {
	for d := Silent; d <= GitHub; d++ {
		for _, skew := range []time.Duration{0, 5 * time.Minute, -5 * time.Minute} {
			name := fmt.Sprintf("%v%+d", d, int(skew.Minutes()))
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := &Server{
						Limit:   func() limiter.Core { return &limiter.FixedWindow{Limit: 2, Window: time.Minute} },
						Dialect: d, Skew: skew,
					}
					time.Sleep(12*time.Second + 300*time.Millisecond)
					var b strings.Builder
					for _, when := range []string{"accepted", "exhausted", "refused"} {
						req, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
						if err != nil {
							t.Fatal(err)
						}
						resp, err := srv.Respond(req)
						if err != nil {
							t.Fatal(err)
						}
						events := srv.Report().Events
						fmt.Fprintf(&b, "== %s, told to wait %v\n%s", when, events[len(events)-1].Told, sheet(resp))
					}
					golden(t, "dialect-"+name+".golden", b.String())
				})
			})
		}
	}
}

func TestWhatADialectSaysOfAResult(t *testing.T) {
	now := time.Unix(1000, 250_000_000)
	ok := func(remaining float64, reset time.Duration) limiter.Result {
		return limiter.Result{Allowed: true, Limit: 10, Remaining: remaining, Reset: reset}
	}
	no := func(remaining float64, retry, reset time.Duration) limiter.Result {
		return limiter.Result{Limit: 10, Remaining: remaining, RetryAfter: retry, Reset: reset}
	}
	for _, c := range []struct {
		name    string
		d       Dialect
		r       ruling
		status  int
		fields  string
		told    time.Duration
		isDrain bool
	}{
		{"no limiter, nothing to say", GitHub, ruling{}, 0, "", 0, false},
		{"an unlimited one has nothing to say", RateLimit, ruling{limited: true, result: limiter.Result{Allowed: true, Limit: math.Inf(1), Remaining: math.Inf(1)}}, 0, "", 0, false},
		{"half a unit is not shown, and is nothing remaining", RateLimit, ruling{limited: true, result: ok(0.5, time.Second)}, 0,
			"RateLimit-Limit: 10, RateLimit-Remaining: 0, RateLimit-Reset: 1", time.Second, true},
		{"whole seconds stay", RateLimit, ruling{limited: true, result: ok(1, 3*time.Second)}, 0,
			"RateLimit-Limit: 10, RateLimit-Remaining: 1, RateLimit-Reset: 3", 0, false},
		{"a nanosecond more is a second more", RateLimit, ruling{limited: true, result: ok(0, 3*time.Second+1)}, 0,
			"RateLimit-Limit: 10, RateLimit-Remaining: 0, RateLimit-Reset: 4", 4 * time.Second, true},
		{"an epoch reset at a whole second stays", XRateLimit, ruling{limited: true, result: ok(0, 750*time.Millisecond)}, 0,
			"X-RateLimit-Limit: 10, X-RateLimit-Remaining: 0, X-RateLimit-Reset: 1001", 750 * time.Millisecond, true},
		{"an epoch reset is rounded up", XRateLimit, ruling{limited: true, result: ok(0, 751*time.Millisecond)}, 0,
			"X-RateLimit-Limit: 10, X-RateLimit-Remaining: 0, X-RateLimit-Reset: 1002", 1750 * time.Millisecond, true},
		{"Retry-After goes before the reset", RateLimit, ruling{limited: true, result: no(0, 1500*time.Millisecond, 9*time.Second)}, 429,
			"RateLimit-Limit: 10, RateLimit-Remaining: 0, RateLimit-Reset: 9, Retry-After: 2", 2 * time.Second, false},
		{"a cost that never fits has no Retry-After", RateLimit, ruling{limited: true, result: no(10, limiter.Never, 0)}, 429,
			"RateLimit-Limit: 10, RateLimit-Remaining: 10, RateLimit-Reset: 0", 0, false},
		{"a refusal with units left tells no reset", XRateLimit, ruling{limited: true, result: no(2, time.Second, 9*time.Second)}, 429,
			"X-RateLimit-Limit: 10, X-RateLimit-Remaining: 2, X-RateLimit-Reset: 1010", 0, false},
		{"a limiter that never resets says no reset", GitHub, ruling{limited: true, result: no(0, limiter.Never, limiter.Never)}, 403,
			"X-RateLimit-Limit: 10, X-RateLimit-Remaining: 0, X-RateLimit-Used: 10, X-RateLimit-Resource: core", 0, false},
		{"nor does Draft10, which can leave out the window too", Draft10, ruling{limited: true, result: no(0, limiter.Never, limiter.Never)}, 429,
			`RateLimit-Policy: "default";q=10, RateLimit: "default";r=0`, 0, false},
		{"Draft10", Draft10, ruling{limited: true, window: 90 * time.Second, result: no(0, 5*time.Second, 30*time.Second)}, 429,
			`RateLimit-Policy: "default";q=10;w=90, RateLimit: "default";r=0;t=30, Retry-After: 5`, 5 * time.Second, false},
		{"too many at once is a 429 with what remains", XRateLimit, ruling{limited: true, crowded: true, result: ok(4, time.Second)}, 429,
			"X-RateLimit-Limit: 10, X-RateLimit-Remaining: 4, X-RateLimit-Reset: 1002", 0, false},
		{"too many at once has no Retry-After", RetryAfter, ruling{limited: true, crowded: true, result: no(0, time.Second, time.Second)}, 429, "", 0, false},
		{"GitHub's secondary limit is a 429", GitHub, ruling{crowded: true}, 429, "", 0, false},
		{"Silent", Silent, ruling{limited: true, result: no(0, time.Second, time.Second)}, 429, "", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := c.d.put(c.r, now)
			var fields []string
			for _, f := range n.fields {
				fields = append(fields, f.name+": "+f.value)
			}
			if got := strings.Join(fields, ", "); n.status != c.status || got != c.fields {
				t.Errorf("got %d %s\nwant %d %s", n.status, got, c.status, c.fields)
			}
			if n.told() != c.told || n.reset > 0 != c.isDrain {
				t.Errorf("told %v, by reset %v; want %v, %v", n.told(), n.reset > 0, c.told, c.isDrain)
			}
			if (n.status == 0) != (n.body == "") {
				t.Errorf("status %d with the body %q", n.status, n.body)
			}
		})
	}
}

func TestTheWindowOfALimiterIsTheTimeToGiveAllAnew(t *testing.T) {
	for _, c := range []struct {
		core limiter.Core
		want time.Duration
	}{
		{&limiter.FixedWindow{Window: time.Minute}, time.Minute},
		{&limiter.SlidingLog{Window: time.Minute}, time.Minute},
		{&limiter.SlidingCounter{Window: time.Minute}, time.Minute},
		{&limiter.FixedWindow{}, time.Second},
		{&limiter.FixedWindow{Window: -1}, 0},
		{&limiter.TokenBucket{Rate: 2, Burst: 10}, 5 * time.Second},
		{&limiter.TokenBucket{Rate: 2}, time.Second / 2},
		{&limiter.TokenBucket{Burst: 2}, 0},
		{&limiter.LeakyBucket{Rate: 0.5, Queue: 3}, 6 * time.Second},
		{foreign{}, 0},
	} {
		if got := windowOf(c.core); got != c.want {
			t.Errorf("%T%+v: %v, want %v", c.core, c.core, got, c.want)
		}
	}
}

type foreign struct{ limiter.Core }

func TestHugeAndOddNumbersStayHeaders(t *testing.T) {
	for _, c := range []struct {
		r    limiter.Result
		want string
	}{
		{limiter.Result{Allowed: true, Limit: 1e18, Remaining: 1e18, Reset: math.MaxInt64}, "1000000000000000000 1000000000000000000 9223372036"},
		{limiter.Result{Allowed: true, Limit: 0.5, Remaining: 0.25, Reset: -5}, "0 0 "},
		{limiter.Result{Allowed: true, Limit: -1, Remaining: -1}, "0 0 0"},
	} {
		n := RateLimit.put(ruling{limited: true, result: c.r}, time.Unix(0, 0))
		var values []string
		for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
			value := ""
			for _, f := range n.fields {
				if f.name == name {
					value = f.value
				}
			}
			values = append(values, value)
		}
		if got := strings.Join(values, " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
	}
}

func TestADialectHasAName(t *testing.T) {
	if got := fmt.Sprint(Silent, RetryAfter, XRateLimit, RateLimit, Draft10, GitHub, Dialect(-1), Dialect(6)); got != "Silent RetryAfter XRateLimit RateLimit Draft10 GitHub Dialect(-1) Dialect(6)" {
		t.Error(got)
	}
}
