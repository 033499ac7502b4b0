package heed

import (
	"math"
	"testing"
	"time"
)

func TestABackoffIsSpreadOverItsUpperHalf(t *testing.T) {
	for _, x := range []struct {
		d      time.Duration
		random float64
		want   time.Duration
	}{
		{time.Second, 0, time.Second / 2}, {time.Second, 1, time.Second}, {time.Second, 0.5, 750 * time.Millisecond},
		{3, 0, 2}, {3, 1, 3}, {1, 0, 1}, {0, 0.5, 0}, {-time.Second, 0.5, 0},
		{time.Second, -3, time.Second / 2}, {time.Second, 7, time.Second}, {time.Second, math.NaN(), time.Second / 2},
		{time.Second, math.Inf(1), time.Second}, {math.MaxInt64, 0.999, 0},
	} {
		got := upperHalf(x.d, x.random)
		if x.want == 0 && x.d > 0 { // only the bounds are known
			if got < x.d/2 || got > x.d {
				t.Errorf("upperHalf(%v, %v) = %v", x.d, x.random, got)
			}
			continue
		}
		if got != x.want {
			t.Errorf("upperHalf(%v, %v) = %v, want %v", x.d, x.random, got, x.want)
		}
	}
}

func TestAWaitThatAServerNamedOnlyGrows(t *testing.T) {
	for _, x := range []struct {
		d      time.Duration
		random float64
		want   time.Duration
	}{
		{time.Second, 0, time.Second}, {time.Second, 1, 1100 * time.Millisecond}, {time.Hour, 1, time.Hour + time.Second},
		{5, 1, 5}, {0, 1, 0}, {-5, 1, 0}, {math.MaxInt64, 0, math.MaxInt64}, {math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64 - int64Second/2, 1, math.MaxInt64}, {time.Minute, math.NaN(), time.Minute}, {time.Minute, -1, time.Minute},
	} {
		if got := onTop(x.d, x.random); got != x.want {
			t.Errorf("onTop(%v, %v) = %v, want %v", x.d, x.random, got, x.want)
		}
	}
}

const int64Second = time.Second

func TestJitterKeepsItsBoundsWhateverTheDice(t *testing.T) {
	r := dice(t)
	for range 5000 {
		d, random := time.Duration(r.Int64()>>r.IntN(60)), r.NormFloat64()
		if got := upperHalf(d, random); got < d/2 || got > d {
			t.Fatalf("upperHalf(%v, %v) = %v", d, random, got)
		}
		if got := onTop(d, random); got < d || got-d > time.Second {
			t.Fatalf("onTop(%v, %v) = %v", d, random, got)
		}
	}
}

func TestGrowthDoublesUpToItsCapAndNeverOverflows(t *testing.T) {
	for _, x := range []struct {
		base  time.Duration
		n     int
		limit time.Duration
		want  time.Duration
	}{
		{time.Second, 0, time.Minute, time.Second}, {time.Second, 3, time.Minute, 8 * time.Second}, {time.Second, 6, time.Minute, time.Minute},
		{time.Second, 63, time.Minute, time.Minute}, {time.Second, 64, time.Minute, time.Minute}, {time.Second, math.MaxInt, time.Minute, time.Minute},
		{time.Hour, 0, time.Minute, time.Minute}, {0, 5, time.Minute, 0}, {1, 62, math.MaxInt64, 1 << 62}, {1, 63, math.MaxInt64, math.MaxInt64},
	} {
		if got := doubled(x.base, x.n, x.limit); got != x.want {
			t.Errorf("%v doubled %d times is %v, want %v", x.base, x.n, got, x.want)
		}
	}
}

func TestACurveGrowsIsCappedAndBeginsAnew(t *testing.T) {
	c := &curve{base: time.Second, cap: 5 * time.Second, random: func() float64 { return 1 }}
	for round := range 2 {
		for i, want := range []time.Duration{1, 2, 4, 5, 5} {
			if got := c.NextBackOff(); got != want*time.Second {
				t.Errorf("round %d, pause %d is %v, want %v", round, i, got, want*time.Second)
			}
		}
		c.Reset()
	}
	c.n = math.MaxInt
	if got := c.NextBackOff(); got != 5*time.Second || c.n != math.MaxInt {
		t.Errorf("after endless attempts the pause is %v and the count %d", got, c.n)
	}
}

func TestWithoutASourceThereIsOne(t *testing.T) {
	if v := source(nil)(); !(v >= 0 && v < 1) {
		t.Errorf("the default source gives %v", v)
	}
	if v := source(func() float64 { return 0.25 })(); v != 0.25 {
		t.Errorf("a source of one's own gives %v", v)
	}
}
