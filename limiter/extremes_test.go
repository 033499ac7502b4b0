package limiter

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var inf, nan = math.Inf(1), math.NaN()

// TestEveryExtremeConfigurationBehavesAsDocumented asks each core for the costs in order, at the same instant.
func TestEveryExtremeConfigurationBehavesAsDocumented(t *testing.T) {
	type ask struct {
		cost       float64
		allowed    bool
		remaining  float64
		retryAfter time.Duration
		reset      time.Duration
	}
	const month = 30 * 24 * time.Hour
	for _, c := range []struct {
		name  string
		core  Core
		limit float64
		asks  []ask
	}{
		{"a bucket without rate spends its burst once", &TokenBucket{Rate: 0, Burst: 2}, 2, []ask{
			{1, true, 1, 0, Never}, {1, true, 0, 0, Never}, {1, false, 0, Never, Never}}},
		{"a negative rate is none", &TokenBucket{Rate: -5, Burst: 1}, 1, []ask{{1, true, 0, 0, Never}, {1, false, 0, Never, Never}}},
		{"a NaN rate is none", &TokenBucket{Rate: nan, Burst: 1}, 1, []ask{{1, true, 0, 0, Never}, {1, false, 0, Never, Never}}},
		{"a bucket without burst lets single units through", &TokenBucket{Rate: 2}, 1, []ask{
			{1.5, false, 1, Never, 0}, {1, true, 0, 0, time.Second / 2}, {1, false, 0, time.Second / 2, time.Second / 2}}},
		{"a negative burst admits nothing", &TokenBucket{Rate: 2, Burst: -1}, 0, []ask{{1, false, 0, Never, 0}, {0, true, 0, 0, 0}}},
		{"a NaN burst admits nothing", &TokenBucket{Rate: 2, Burst: nan}, 0, []ask{{1e-9, false, 0, Never, 0}}},
		{"an infinite rate is no limit", &TokenBucket{Rate: inf, Burst: 1}, inf, []ask{{1e300, true, inf, 0, 0}, {inf, true, inf, 0, 0}, {nan, false, inf, Never, 0}}},
		{"an infinite burst is no limit", &TokenBucket{Rate: 1, Burst: inf}, inf, []ask{{1e300, true, inf, 0, 0}, {-1, false, inf, Never, 0}}},
		{"one a month", &TokenBucket{Rate: 1 / month.Seconds()}, 1, []ask{
			{1, true, 0, 0, month}, {1, false, 0, month, month}, {0.5, false, 0, month / 2, month}, {1e-9, false, 0, 2592 * time.Microsecond, month}}},
		{"a million a second", &TokenBucket{Rate: 1e6, Burst: 1e6}, 1e6, []ask{
			{1e6, true, 0, 0, time.Second}, {1, false, 0, time.Microsecond, time.Second}}},
		{"one in thirty million years", &TokenBucket{Rate: 1e-15}, 1, []ask{
			{1, true, 0, 0, Never}, {1e-9, false, 0, 1e15, Never}, {1, false, 0, Never, Never}}},
		{"less than one in thirty million years", &TokenBucket{Rate: 0.9e-15}, 1, []ask{
			{1, true, 0, 0, Never}, {1e-9, false, 0, Never, Never}}},
		{"a queue of none", &LeakyBucket{Rate: 10}, 1, []ask{{1, true, 0, 0, time.Second / 10}, {1, false, 0, time.Second / 10, time.Second / 10}}},
		{"a queue that does not leak", &LeakyBucket{Queue: 1}, 1, []ask{{1, true, 0, 0, Never}, {1, false, 0, Never, Never}}},
		{"a negative queue admits nothing", &LeakyBucket{Rate: 10, Queue: -3}, 0, []ask{{1, false, 0, Never, 0}}},
		{"an infinite leak is no limit", &LeakyBucket{Rate: inf}, inf, []ask{{5, true, inf, 0, 0}}},

		{"a window of a limit of none", &FixedWindow{}, 0, []ask{{1, false, 0, Never, time.Second}, {0, true, 0, 0, time.Second}}},
		{"a window of a NaN limit", &FixedWindow{Limit: nan}, 0, []ask{{1, false, 0, Never, time.Second}}},
		{"a window of a negative limit", &FixedWindow{Limit: -1}, 0, []ask{{1, false, 0, Never, time.Second}}},
		{"a window without a limit", &FixedWindow{Limit: inf}, inf, []ask{{1e300, true, inf, 0, 0}, {nan, false, inf, Never, 0}}},
		{"a negative window", &FixedWindow{Limit: 5, Window: -1}, 5, []ask{{1, false, 0, Never, Never}, {0, false, 0, Never, Never}}},
		{"a window without length is a second", &FixedWindow{Limit: 1}, 1, []ask{{1, true, 0, 0, time.Second}, {1, false, 0, time.Second, time.Second}}},
		{"nonsense costs", &FixedWindow{Limit: 5}, 5, []ask{
			{-1, false, 5, Never, time.Second}, {nan, false, 5, Never, time.Second}, {inf, false, 5, Never, time.Second}, {-inf, false, 5, Never, time.Second}, {5.000000001, false, 5, Never, time.Second}}},
		{"a cost too small to count still costs", &FixedWindow{Limit: 1}, 1, []ask{{1e-300, true, 0.999999999, 0, time.Second}}},
		{"the longest window", &FixedWindow{Limit: 1, Window: math.MaxInt64}, 1, []ask{{1, true, 0, 0, noon.Sub(noon) + time.Duration(math.MaxInt64-noon.UnixNano())}}},

		{"a log of a limit of none", &SlidingLog{}, 0, []ask{{1, false, 0, Never, 0}, {0, true, 0, 0, 0}}},
		{"a log of a NaN limit", &SlidingLog{Limit: nan}, 0, []ask{{1, false, 0, Never, 0}}},
		{"a log without a limit", &SlidingLog{Limit: inf}, inf, []ask{{1e300, true, inf, 0, 0}}},
		{"a log of a negative window", &SlidingLog{Limit: 5, Window: -1}, 5, []ask{{1, false, 0, Never, Never}}},
		{"a log without length is a second", &SlidingLog{Limit: 1}, 1, []ask{{1, true, 0, 0, time.Second}, {0.5, false, 0, time.Second, time.Second}}},

		{"a counter of a limit of none", &SlidingCounter{}, 0, []ask{{1, false, 0, Never, 0}, {0, true, 0, 0, 0}}},
		{"a counter without a limit", &SlidingCounter{Limit: inf}, inf, []ask{{1e300, true, inf, 0, 0}}},
		{"a counter of a negative window", &SlidingCounter{Limit: 5, Window: -1}, 5, []ask{{1, false, 0, Never, Never}}},
		{"a counter without length is a second", &SlidingCounter{Limit: 1}, 1, []ask{
			{1, true, 0, 0, 2 * time.Second}, {1, false, 0, 2 * time.Second, 2 * time.Second}, {0.25, false, 0, 1250 * time.Millisecond, 2 * time.Second}}},

		{"a limit of bytes", &SlidingLog{Limit: 1e12}, 1e12, []ask{{1e12 - 1, true, 1, 0, time.Second}, {1, true, 0, 0, time.Second}, {1, false, 0, time.Second, time.Second}}},
		{"a limit of very many", &TokenBucket{Rate: 1e15, Burst: 4e18}, 4e18, []ask{
			{4e18, true, 0, 0, 4000 * time.Second}, {1e6, false, 0, 1, 4000 * time.Second}, {1e9, false, 0, time.Microsecond, 4000 * time.Second}}},
		{"a limit past counting", &TokenBucket{Rate: 1, Burst: 5e18}, inf, []ask{{5e18, true, inf, 0, 0}, {5e18, true, inf, 0, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, a := range c.asks {
				want := Result{Allowed: a.allowed, Limit: c.limit, Remaining: a.remaining, RetryAfter: a.retryAfter, Reset: a.reset}
				if diff := cmp.Diff(want, c.core.Take(noon, a.cost)); diff != "" {
					t.Errorf("ask %d, a cost of %v (-want +got):\n%s", i, a.cost, diff)
				}
			}
		})
	}
}

// A float64 that loses 1e-16 of itself with every unit is off by 1e-7 after a thousand million; 0.1 has no end in binary.
func TestNothingDriftsOverAThousandMillionUnits(t *testing.T) {
	t.Parallel()
	const each, times = 1e4 + 0.1, 100_000
	b := &TokenBucket{Rate: 100. / 60, Burst: each}
	w := &SlidingLog{Limit: each, Window: 6000*time.Second + 60*time.Millisecond}
	now := noon
	for range times {
		r := b.Take(now, each)
		if !r.Allowed || r.Remaining != 0 || r.Reset != 6000*time.Second+60*time.Millisecond {
			t.Fatalf("at %v the full bucket said %+v", now, r)
		}
		if r := w.Take(now, each); !r.Allowed || r.Remaining != 0 {
			t.Fatalf("at %v the empty log said %+v", now, r)
		}
		if now = now.Add(r.Reset - 1); b.Peek(now, each).Allowed || w.Peek(now, each).Allowed {
			t.Fatalf("at %v, a nanosecond before the time, the cost was allowed", now)
		}
		now = now.Add(1)
	}
}

// The same with single units that never leave the bucket full, so that no fresh start hides an error.
func TestABucketThatIsNeverFullDoesNotDrift(t *testing.T) {
	t.Parallel()
	n := 10 * *arrivals
	if underRace {
		n /= 5
	}
	b := &TokenBucket{Rate: 1. / 3, Burst: 10}
	b.Take(noon, 9.5)
	for i := range n {
		if r := b.Take(noon.Add(time.Duration(i+1)*3*time.Second), 1); !r.Allowed || r.Remaining != 0.5 {
			t.Fatalf("after %d units of one in three seconds each the bucket said %+v, want 0.5 left as at first", i, r)
		}
	}
}

func TestTenTenthsAreOne(t *testing.T) {
	for name, c := range fresh() {
		for range 10 {
			c.Take(noon, 0.1)
		}
		if r := c.Take(noon, 9); !r.Allowed || r.Remaining != 0 {
			t.Errorf("%s: after ten tenths and nine of ten units: %+v", name, r)
		}
	}
}

// fresh is one of each, ten units each.
func fresh() map[string]Core {
	return map[string]Core{
		"FixedWindow":    &FixedWindow{Limit: 10, Window: time.Minute},
		"SlidingLog":     &SlidingLog{Limit: 10, Window: time.Minute},
		"SlidingCounter": &SlidingCounter{Limit: 10, Window: time.Minute},
		"TokenBucket":    &TokenBucket{Rate: 1. / 6, Burst: 10},
		"LeakyBucket":    &LeakyBucket{Rate: 1. / 6, Queue: 10},
	}
}

func TestTimeGoingBackCreatesNoUnits(t *testing.T) {
	for name, c := range fresh() {
		if !c.Take(noon, 10).Allowed {
			t.Fatalf("%s: ten of ten units were refused", name)
		}
		for _, back := range []time.Duration{1, time.Minute, time.Hour, 200 * 365 * 24 * time.Hour} {
			r := c.Take(noon.Add(-back), 1)
			if r.Allowed || r.Remaining != 0 {
				t.Errorf("%s: %v earlier a unit was there: %+v", name, back, r)
			}
			if later := c.Peek(noon.Add(-back).Add(r.RetryAfter), 1); !later.Allowed {
				t.Errorf("%s: asked %v earlier it said to wait %v, and then %+v", name, back, r.RetryAfter, later)
			}
		}
		// There and back again, many times: the way forward counts once.
		for range 100 {
			c.Take(noon.Add(-30*time.Second), 1)
			if c.Take(noon, 1).Allowed {
				t.Fatalf("%s: a unit came from going back and forth", name)
			}
		}
	}
}

func TestInstantsOutOfRangeAreAnswered(t *testing.T) {
	for name, c := range fresh() {
		for _, at := range []time.Time{{}, time.Unix(-1<<60, 0), time.Unix(math.MinInt64/nano, 0), noon, time.Unix(math.MaxInt64/nano, 0), time.Unix(1<<60, 0), {}} {
			if r := c.Take(at, 1); r.Remaining < 0 || r.RetryAfter < Never || r.Reset < Never {
				t.Errorf("%s at %v: %+v", name, at, r)
			}
		}
	}
}

func TestARefusedTakeAndAPeekChangeNothing(t *testing.T) {
	for name, s := range map[string]struct{ used, same Core }{
		"FixedWindow":    {&FixedWindow{Limit: 10}, &FixedWindow{Limit: 10}},
		"SlidingLog":     {&SlidingLog{Limit: 10}, &SlidingLog{Limit: 10}},
		"SlidingCounter": {&SlidingCounter{Limit: 10}, &SlidingCounter{Limit: 10}},
		"TokenBucket":    {&TokenBucket{Rate: 10, Burst: 10}, &TokenBucket{Rate: 10, Burst: 10}},
		"LeakyBucket":    {&LeakyBucket{Rate: 10, Queue: 10}, &LeakyBucket{Rate: 10, Queue: 10}},
	} {
		for i, cost := range []float64{3, 2.5, 4} {
			at := noon.Add(time.Duration(i) * 100 * time.Millisecond)
			s.used.Take(at, cost)
			s.same.Take(at, cost)
		}
		for _, at := range []time.Time{noon.Add(-time.Hour), noon, noon.Add(time.Second), noon.Add(time.Hour)} {
			s.used.Peek(at, 1)
			s.used.Take(at, 0)
			s.used.Take(at, 10.5)
			s.used.Take(at, nan)
		}
		s.used.Take(noon.Add(200*time.Millisecond), 5)
		if diff := cmp.Diff(s.same, s.used, cmp.Exporter(anyType)); diff != "" {
			t.Errorf("%s changed (-before +after):\n%s", name, diff)
		}
	}
}

// The fields are to be left alone, but a limit that was lowered all the same must not wrap around into an enormous one.
func TestALimitThatIsLoweredBelowWhatIsSpentLeavesNothing(t *testing.T) {
	cores := fresh()
	for _, c := range cores {
		c.Take(noon, 8)
	}
	cores["FixedWindow"].(*FixedWindow).Limit = 5
	cores["SlidingLog"].(*SlidingLog).Limit = 5
	cores["SlidingCounter"].(*SlidingCounter).Limit = 5
	cores["TokenBucket"].(*TokenBucket).Burst = 5
	cores["LeakyBucket"].(*LeakyBucket).Queue = 5
	for name, c := range cores {
		r := c.Take(noon, 1)
		if r.Allowed || r.Remaining != 0 || r.Limit != 5 {
			t.Errorf("%s: %+v", name, r)
		}
		if !c.Peek(noon.Add(r.RetryAfter), 1).Allowed {
			t.Errorf("%s: after %v it was refused", name, r.RetryAfter)
		}
	}
}
