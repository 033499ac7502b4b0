package limiter

import (
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func anyType(reflect.Type) bool { return true }

func (a wide) big() *big.Int {
	hi := new(big.Int).Lsh(new(big.Int).SetUint64(a.hi), 64)
	return hi.Add(hi, new(big.Int).SetUint64(a.lo))
}

func TestWideNumbersCalculateAsBigOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	draw := func() uint64 { return rng.Uint64() >> (2 + rng.IntN(62)) }
	for range *arrivals / 10 {
		a, b, c, n := draw(), draw(), draw(), draw()
		x, y := product(a, b), product(c, n)
		bx, by := x.big(), y.big()
		if want := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b)); bx.Cmp(want) != 0 {
			t.Fatalf("%d*%d = %v", a, b, bx)
		}
		if got, want := x.plus(y).big(), new(big.Int).Add(bx, by); got.Cmp(want) != 0 {
			t.Fatalf("%v+%v = %v", bx, by, got)
		}
		if got, want := x.less(y), bx.Cmp(by) < 0; got != want {
			t.Fatalf("%v<%v = %v", bx, by, got)
		}
		want := new(big.Int).Sub(bx, by)
		if want.Sign() < 0 {
			want.SetInt64(0)
		}
		if got := x.minus(y).big(); got.Cmp(want) != 0 {
			t.Fatalf("%v-%v = %v", bx, by, got)
		}
		down, fits := x.over(n)
		up, fitsUp := x.overUp(n)
		if n == 0 {
			if fits || fitsUp {
				t.Fatalf("%v/0 fits", bx)
			}
			continue
		}
		q, m := new(big.Int).DivMod(bx, new(big.Int).SetUint64(n), new(big.Int))
		if fits != q.IsUint64() || fits && down != q.Uint64() {
			t.Fatalf("%v/%d = %d, %v", bx, n, down, fits)
		}
		if m.Sign() > 0 {
			q.Add(q, big.NewInt(1))
		}
		if fitsUp != q.IsUint64() || fitsUp && up != q.Uint64() {
			t.Fatalf("%v/%d, rounded up = %d, %v", bx, n, up, fitsUp)
		}
	}
}

// A rate that was made by a division is read as the quotient of exactly these numbers.
func TestARateIsReadAsTheFractionItWasMadeFrom(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	for i := range *arrivals / 10 {
		a, b := 1+rng.Int64N(1_000_000), 1+rng.Int64N(40_000_000)
		if i%2 == 0 {
			a, b = 1+rng.Int64N(1000), 1+rng.Int64N(100_000)
		}
		num, den := fraction(float64(a)/float64(b), 1e9)
		want := big.NewRat(a, b)
		if got := new(big.Rat).SetFrac(new(big.Int).SetUint64(num), new(big.Int).SetUint64(den)); got.Cmp(want) != 0 {
			t.Fatalf("%d/%d is read as %d/%d", a, b, num, den)
		}
	}
}

// Whatever the rate, the fraction is the float64 nearest to it, as long as it can be said with 62 bits each.
func TestAnyRateIsReadToItsLastBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 13))
	for range *arrivals / 10 {
		rate := math.Ldexp(1+rng.Float64(), rng.IntN(61+29)-29)
		num, den := fraction(rate, 1e9)
		if got := float64(num) / float64(den); got != rate {
			t.Fatalf("%v is read as %d/%d = %v", rate, num, den, got)
		}
		coarse, coarseDen := fraction(rate, 1e3)
		if got := float64(coarse) / float64(coarseDen) * 1e6; math.Abs(got/rate-1) > 1e-9 {
			t.Fatalf("%v is read as %d/%d of thousandths in a nanosecond", rate, coarse, coarseDen)
		}
	}
	for _, c := range []struct {
		rate     float64
		num, den uint64
	}{
		{0, 0, 1}, {-1, 0, 1}, {math.NaN(), 0, 1}, {9e-16, 0, 1}, {math.SmallestNonzeroFloat64, 0, 1},
		{1e-15, 1, 1e15}, {1 / 2592000., 1, 2592000}, {1, 1, 1}, {0.1, 1, 10}, {0.75, 3, 4}, {1e6, 1e6, 1}, {1e18, 1e18, 1}, {4e18, 4e18, 1}, {2.5, 5, 2},
	} {
		if num, den := fraction(c.rate, 1e9); num != c.num || den != c.den {
			t.Errorf("%v is read as %d/%d, want %d/%d", c.rate, num, den, c.num, c.den)
		}
	}
}

func TestWindowsTileTimeInBothDirectionsFromTheirAnchor(t *testing.T) {
	anchor := instantOf(noon.Add(17))
	for _, c := range []struct {
		at   time.Duration
		into uint64
	}{{17, 0}, {18, 1}, {16, 99}, {117, 0}, {116, 99}, {-83, 0}, {-84, 99}, {-82, 1}} {
		if got := instantOf(noon.Add(c.at)).phase(anchor, 100); got != c.into {
			t.Errorf("%d is %d into its window of 100 from 17, want %d", c.at, got, c.into)
		}
	}
	if got := instant(5).phase(unixEpoch, 1000); got > 5 {
		t.Errorf("the window at the beginning of time begins %d before it", got-5)
	}
}

func TestInstantsStopAtTheEndsOfTime(t *testing.T) {
	if got := instantOf(time.Unix(1, 5)) - unixEpoch; got != nano+5 {
		t.Errorf("a second and 5 ns after 1970 is %d", got)
	}
	if got := instantOf(time.Time{}); got != 0 {
		t.Errorf("the year 1 is %d, want the beginning", got)
	}
	if got := instantOf(time.Unix(1<<50, 0)); got != math.MaxUint64 {
		t.Errorf("the far future is %d, want the end", got)
	}
	if got := instant(math.MaxUint64 - 3).add(4); got != math.MaxUint64 {
		t.Errorf("past the end is %d", got)
	}
	if got := instant(0).until(1 << 63); got != Never {
		t.Errorf("a time too long to say is %d", got)
	}
	if got := instant(9).until(5); got != 0 {
		t.Errorf("the time until what is over is %d", got)
	}
}
