package heedtest_test

import (
	"flag"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

var arrivals = flag.Int("arrivals", manyArrivals, "random arrivals for each limiter to be compared with its definition")

// A definition restates a limiter by brute force: from the list of what was
// spent so far, does a cost fit at an instant? Instants are nanoseconds of
// the server's clock. Everything is in whole numbers, so there is no rounding
// to agree on.
type definition func(spent []spending, at, cost int64) bool

type spending struct{ at, cost int64 }

const (
	quota  = 20
	second = int64(time.Second)
	window = 10 * second
	rate   = 2 // a second
)

// Of the costs in the window that at lies in.
func fixedWindow(spent []spending, at, cost int64) bool {
	for _, s := range spent {
		if s.at/window == at/window {
			cost += s.cost
		}
	}
	return cost <= quota
}

// Of the costs in the last window, which ends at at.
func slidingLog(spent []spending, at, cost int64) bool {
	for _, s := range spent {
		if s.at+window > at {
			cost += s.cost
		}
	}
	return cost <= quota
}

// Of this fixed window and the overlapping part of the one before.
func slidingCounter(spent []spending, at, cost int64) bool {
	var before int64
	for _, s := range spent {
		switch at/window - s.at/window {
		case 0:
			cost += s.cost
		case 1:
			before += s.cost
		}
	}
	return before*(window-at%window) <= (quota-cost)*window
}

// Over every span that ends now: no more than the burst and what the rate
// adds in it.
func tokenBucket(spent []spending, at, cost int64) bool {
	if cost > quota {
		return false
	}
	for _, s := range slices.Backward(spent) {
		cost += s.cost
		if (cost-quota)*second > rate*(at-s.at) {
			return false
		}
	}
	return true
}

// A level that rises by each cost and leaks in between, but not below empty.
func leakyBucket(spent []spending, at, cost int64) bool {
	var level, last int64
	for _, s := range spent {
		level = max(0, level-rate*(s.at-last)) + s.cost*second
		last = s.at
	}
	return max(0, level-rate*(at-last))+cost*second <= quota*second
}

// What is older than this has no effect on any of them, if nothing was spent
// for a window before it: the buckets are whole after quota/rate = window.
func forget(spent []spending, at int64) []spending {
	for i := len(spent) - 1; i >= 0; i-- {
		next := at
		if i+1 < len(spent) {
			next = spent[i+1].at
		}
		if at-spent[i].at > 2*window && next-spent[i].at >= window {
			return spent[i+1:]
		}
	}
	return spent
}

func TestEveryLimiterFollowsItsDefinitionThroughTheServer(t *testing.T) {
	for _, c := range []struct {
		name string
		core func() limiter.Core
		fits definition
	}{
		{"FixedWindow", func() limiter.Core { return &limiter.FixedWindow{Limit: quota, Window: time.Duration(window)} }, fixedWindow},
		{"SlidingLog", func() limiter.Core { return &limiter.SlidingLog{Limit: quota, Window: time.Duration(window)} }, slidingLog},
		{"SlidingCounter", func() limiter.Core { return &limiter.SlidingCounter{Limit: quota, Window: time.Duration(window)} }, slidingCounter},
		{"TokenBucket", func() limiter.Core { return &limiter.TokenBucket{Burst: quota, Rate: rate} }, tokenBucket},
		{"LeakyBucket", func() limiter.Core { return &limiter.LeakyBucket{Queue: quota, Rate: rate} }, leakyBucket},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { compare(t, c.core, c.fits) })
		})
	}
}

func compare(t *testing.T, core func() limiter.Core, fits definition) {
	const skew = 37*time.Second + 123456789
	rnd := rand.New(rand.NewPCG(1, 2))
	var cost int64
	srv := &heedtest.Server{
		Limit: core, Dialect: heedtest.RateLimit, Skew: skew, MaxEvents: -1,
		Cost: func(*http.Request) float64 { return float64(cost) },
	}
	req, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	var spent []spending
	var told time.Duration
	accepted, rejected := 0, 0
	for i := range *arrivals {
		switch p := rnd.IntN(100); {
		case p < 10: // in the same instant
		case p < 20 && told > 0: // at the end of the told wait, and just before and after
			time.Sleep(max(0, told+time.Duration(rnd.IntN(3)-1)))
		case p < 24: // at the edge of a window, and just before and after
			into := time.Now().Add(skew).UnixNano() % window
			time.Sleep(time.Duration(window-into) + time.Duration(rnd.IntN(3)-1))
		case p < 25: // after a while
			time.Sleep(time.Duration(rnd.Int64N(3 * window)))
		default:
			time.Sleep(time.Duration(rnd.ExpFloat64() * float64(400*time.Millisecond)))
		}
		cost = 1 + rnd.Int64N(3)
		at := time.Now().Add(skew).UnixNano()
		spent = forget(spent, at)
		resp, err := srv.Respond(req)
		if err != nil {
			t.Fatal(err)
		}
		ok := fits(spent, at, cost)
		if got := resp.StatusCode == http.StatusOK; got != ok {
			t.Fatalf("arrival %d, a cost of %d after %v at %d: accepted %v, want %v", i, cost, spent, at, got, ok)
		}
		told = 0
		if ok {
			accepted++
			spent = append(spent, spending{at, cost})
		} else {
			rejected++
			wait := number(t, resp, "Retry-After")
			told = time.Duration(wait * second)
			if !fits(spent, at+wait*second, cost) || fits(spent, at+(wait-1)*second, cost) {
				t.Fatalf("arrival %d, a cost of %d after %v at %d: Retry-After %d is not the first whole second", i, cost, spent, at, wait)
			}
		}
		left := number(t, resp, "RateLimit-Remaining")
		if left > 0 && !fits(spent, at, left) || fits(spent, at, left+1) {
			t.Fatalf("arrival %d, after %v at %d: %d remaining is wrong", i, spent, at, left)
		}
	}
	r := srv.Report()
	if r.Accepted != accepted || r.Rejected != rejected {
		t.Errorf("the report says %d accepted and %d rejected, it was %d and %d", r.Accepted, r.Rejected, accepted, rejected)
	}
	if min(accepted, rejected) < *arrivals/20 {
		t.Errorf("%d accepted and %d rejected: the arrivals test too little", accepted, rejected)
	}
}

func number(t *testing.T, resp *http.Response, name string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(resp.Header.Get(name), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
