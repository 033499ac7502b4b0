package limiter

import (
	"math"
	"math/bits"
	"time"
)

// drain is a level that runs off at a constant rate: what a leaky bucket holds, and what a token bucket lacks. The rate is a
// fraction of whole numbers, and the level is kept in quanta times its denominator, so a nanosecond takes exactly num off and
// nothing is ever rounded away.
type drain struct {
	num, den uint64 // quanta per nanosecond; den 0: not set up yet
	level    wide   // in quanta/den at the instant last
	last     instant
}

// decide is the whole of both buckets: a cost is allowed while level+cost is within the capacity.
func (d *drain) decide(now time.Time, rate, capacity, cost float64, spend bool) Result {
	q, bounded := quotaOf(capacity)
	if !bounded || rate >= tooMuch {
		return unbounded(cost)
	}
	if d.den == 0 {
		d.num, d.den = fraction(rate, q.per)
	}
	asked, need := instantOf(now), q.quanta(cost)
	at, level := d.at(asked)
	full := product(q.max, d.den)
	after := level.plus(product(need, d.den))
	r := Result{Limit: q.limit}
	switch {
	case need > q.max:
		r.RetryAfter = Never
	case full.less(after):
		r.RetryAfter = d.wait(asked, at, after.minus(full))
	default:
		r.Allowed = true
		level = after
		if spend && need > 0 {
			d.level, d.last = after, at
		}
	}
	left, _ := full.minus(level).over(d.den)
	r.Remaining = q.units(left)
	if !spend && r.Allowed {
		_, level = d.at(asked)
	}
	if !level.isZero() {
		r.Reset = d.wait(asked, at, level)
	}
	return r
}

// at is the level at an instant, which counts as that of the last spending when it is earlier: a clock that goes back drains nothing.
func (d *drain) at(asked instant) (instant, wide) {
	at := max(asked, d.last)
	return at, d.level.minus(product(uint64(at-d.last), d.num))
}

// wait is the time from asked until the amount has run off, counting from at.
func (d *drain) wait(asked, at instant, amount wide) time.Duration {
	n, ok := amount.overUp(d.num)
	if !ok || n > math.MaxInt64 {
		return Never
	}
	if n += uint64(at - asked); n > math.MaxInt64 {
		return Never
	}
	return time.Duration(n)
}

// fraction reads a rate in units per second as quanta per nanosecond. A rate is seldom a number that binary can hold: 100 a minute
// is 5/3 a second, and a month has no finite expansion either. So it is read as the first continued fraction that is the same
// float64, which for a rate made by dividing two ordinary numbers is the exact quotient. A rate that is not positive is 0.
func fraction(rate, per float64) (num, den uint64) {
	grain := uint64(finestPer / per)
	if !(rate >= 1e-15) {
		return 0, 1
	}
	// rate = mantissa * 2^exp exactly, as top/bottom with all but the first quotient in 64 bits.
	frac, exp := math.Frexp(rate)
	mantissa := uint64(math.Ldexp(frac, 53))
	exp -= 53
	if shift := bits.TrailingZeros64(mantissa); exp < 0 {
		shift = min(shift, -exp)
		mantissa, exp = mantissa>>shift, exp+shift
	}
	if exp >= 0 {
		return mantissa << exp, grain
	}
	var (
		top, bottom = mantissa, uint64(0)
		a, rest     uint64
		p0, q0      = uint64(0), uint64(1) // convergents before the first, and the first to come
		p1, q1      = uint64(1), uint64(0)
		limit       = uint64(tooMuch) / grain
	)
	if exp > -64 {
		bottom = 1 << -exp
		a, rest = top/bottom, top%bottom
	} else {
		// Below 1 the first quotient is 0 and the second divides 2^-exp, which needs more than 64 bits, by the mantissa.
		p0, q0, p1, q1 = 1, 0, 0, 1
		big := wide{hi: 1 << (-exp - 64)}
		var ok bool
		if a, ok = big.over(mantissa); !ok {
			return 0, 1
		}
		_, rest = bits.Div64(big.hi%mantissa, big.lo, mantissa)
		bottom = mantissa
	}
	for {
		hp, p := bits.Mul64(a, p1)
		hq, q := bits.Mul64(a, q1)
		if p, q = p+p0, q+q0; hp|hq != 0 || p >= tooMuch || q > limit {
			break // as near as the numbers go
		}
		p0, q0, p1, q1 = p1, q1, p, q
		if rest == 0 || float64(p1)/float64(q1) == rate {
			break
		}
		top, bottom = bottom, rest
		a, rest = top/bottom, top%bottom
	}
	return p1, q1 * grain
}
