package heed

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Jitter is pure arithmetic over a source of randomness in [0, 1). Nothing here reads a clock.

// upperHalf spreads a backoff over its upper half: never more than d, never
// less than half of it, so that neither the cap nor the floor gathers everyone
// on one instant.
func upperHalf(d time.Duration, random float64) time.Duration {
	if d <= 0 {
		return 0
	}
	half := d / 2
	return d - half + min(half, time.Duration(unit(random)*float64(half))) // half as a float may round up
}

// onTop adds to a wait that a server named, and never takes from it: up to a
// tenth, at most a second.
func onTop(d time.Duration, random float64) time.Duration {
	if d <= 0 {
		return 0
	}
	more := time.Duration(unit(random) * float64(min(d/10, time.Second)))
	if d > math.MaxInt64-more {
		return math.MaxInt64
	}
	return d + more
}

// unit keeps a caller's source within [0, 1].
func unit(random float64) float64 {
	if !(random >= 0) {
		return 0
	}
	return min(random, 1)
}

// curve is exponential growth with a cap, as a [backoff.BackOff]. It never
// overflows, at any attempt. Not safe for concurrent use: each call has its own.
type curve struct {
	base, cap time.Duration
	random    func() float64
	n         int
}

var _ backoff.BackOff = (*curve)(nil)

// NextBackOff gives the next pause, spread over its upper half.
func (c *curve) NextBackOff() time.Duration {
	d := doubled(c.base, c.n, c.cap)
	if c.n < math.MaxInt {
		c.n++
	}
	return upperHalf(d, c.random())
}

// Reset starts anew.
func (c *curve) Reset() { c.n = 0 }

// doubled is base * 2^n, at most limit: clamped before it becomes a Duration.
func doubled(base time.Duration, n int, limit time.Duration) time.Duration {
	if d := math.Ldexp(float64(base), min(n, 1000)); d < float64(limit) {
		return time.Duration(d)
	}
	return limit
}

// source is the Transport's randomness.
func source(f func() float64) func() float64 {
	if f != nil {
		return f
	}
	return rand.Float64
}
