package limiter

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// together runs f in n goroutines at once and waits for them.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func TestALimiterAdmitsExactlyItsLimitToSixtyFourGoroutines(t *testing.T) {
	const limit = 1000
	for name, c := range map[string]Core{
		"FixedWindow":    &FixedWindow{Limit: limit, Window: time.Hour},
		"SlidingLog":     &SlidingLog{Limit: limit, Window: time.Hour},
		"SlidingCounter": &SlidingCounter{Limit: limit, Window: time.Hour},
		"TokenBucket":    &TokenBucket{Burst: limit},
		"LeakyBucket":    &LeakyBucket{Queue: limit},
	} {
		l := New(c)
		var admitted atomic.Int64
		together(64, func(i int) {
			for range 2 * limit / 64 {
				l.PeekAt(noon, 1)
				if l.TakeAt(noon, 1).Allowed {
					admitted.Add(1)
				}
			}
		})
		if admitted.Load() != limit {
			t.Errorf("%s: %d of %d units were admitted", name, admitted.Load(), limit)
		}
	}
}

func TestALimiterReadsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(&TokenBucket{Rate: 2, Burst: 1})
		if !l.Allow() || l.Allow() {
			t.Fatal("a full bucket of one must admit one")
		}
		r := l.Take(1)
		if r.Allowed || r.RetryAfter != time.Second/2 {
			t.Fatalf("an empty bucket of two a second said %+v", r)
		}
		time.Sleep(r.RetryAfter - 1)
		if l.Peek(1).Allowed {
			t.Error("a nanosecond early it was allowed")
		}
		time.Sleep(time.Nanosecond)
		if !l.Peek(1).Allowed || !l.Take(1).Allowed {
			t.Error("after RetryAfter it was refused")
		}
	})
}

func TestTheZeroLimiterAdmitsNothing(t *testing.T) {
	var l Limiter
	if r := l.Take(1); l.Allow() || r.Allowed || r.RetryAfter != Never {
		t.Errorf("a Limiter without a core said %+v", r)
	}
}

func TestAClockFollowsTheWallForwardAndNotBack(t *testing.T) {
	const hour = time.Hour
	var c clock
	for _, r := range []struct {
		why             string
		wall, ran, want time.Duration // since noon, since the reading before, since noon
	}{
		{"the first reading is the wall's", 0, 99 * hour, 0},
		{"both clocks run", 1, 1, 1},
		{"the wall is set forward, or the machine slept", hour, 1, hour},
		{"they run on", hour + 5, 5, hour + 5},
		{"the wall is set back: only the monotonic clock counts", 10, 2, hour + 7},
		{"and so it goes on", 20, 10, hour + 17},
		{"until the wall has caught up", hour + 40, hour + 3, 2*hour + 20},
		{"further forward than we are ahead", 3 * hour, 1, 3 * hour},
		{"without a monotonic clock there is only the wall", 2 * hour, -hour, 2 * hour},
	} {
		if got := c.read(noon.Add(r.wall), r.ran).Sub(noon); got != r.want {
			t.Errorf("%s: %v, want %v", r.why, got, r.want)
		}
	}
}

// time.Now has a monotonic reading, and the readings that are handed on keep it.
func TestAClockKeepsTheMonotonicReading(t *testing.T) {
	var c clock
	first := c.now()
	if c.now().Before(first) {
		t.Error("the clock went back")
	}
	if c.last == c.last.Round(0) {
		t.Error("the monotonic reading is lost, so a step back of the wall would be followed")
	}
}
