package limiter

import (
	"math"
	"time"
)

// Never is the RetryAfter of a cost that no waiting makes fit, and the Reset of a limiter that never becomes whole again. It is
// negative, so that a caller who sleeps for it by mistake does not sleep at all and asks again, instead of sleeping for ever.
const Never time.Duration = -1

// Result is what one decision says. It is a plain value, safe to copy and to share.
type Result struct {
	// Allowed reports whether the cost fits. After a Take that is allowed the cost is spent.
	Allowed bool

	// Limit is the quota or the capacity, in units, that Remaining counts against: what was configured, to the nearest grain of the
	// count. +Inf when there is no limit.
	Limit float64

	// Remaining is how many units are left after this decision: never negative, rounded down to the grain of the count (a
	// billionth of a unit for a limit up to four thousand million units; see the package documentation), +Inf without a limit.
	Remaining float64

	// RetryAfter is 0 when allowed. Otherwise it is the shortest time, counted from the instant that was asked about, after which
	// the same cost is allowed if nobody else spends: at that instant it is allowed and one nanosecond earlier it is not. It is
	// Never when the cost is above the capacity, when nothing flows back, when the cost is negative or NaN, and when the wait
	// would be longer than a time.Duration can say (292 years).
	RetryAfter time.Duration

	// Reset is the time until the limiter is whole again if nobody spends: the end of the window for FixedWindow, whether or not
	// it was used; the last entry leaving for SlidingLog; both windows gone for SlidingCounter; the bucket full for TokenBucket;
	// the queue empty for LeakyBucket. 0 means that it is whole now, Never that it will not be.
	Reset time.Duration
}

// quota is a limit made countable: units become whole numbers of quanta, because sums of whole numbers do not drift and ten costs
// of 0.1 are exactly 1, whatever the order in which they came and however many came before.
type quota struct {
	limit float64 // in units
	per   float64 // quanta in a unit
	max   uint64  // limit in quanta, below 1<<62; so that a sum of two never overflows
}

// tooMuch is above every quota.max. Costs that can never fit become it.
const tooMuch = 1 << 62

// A limit up to finest is counted in billionths: 2^32 * 1e9 is below tooMuch, and 2^32 * 5^9 below 2^53, so the float64 product of
// a whole number of units is exact. Larger limits are counted in millionths, thousandths and ones.
const (
	finest    = 1 << 32
	finestPer = 1e9
)

// quotaOf makes a limit countable; bounded is false when there is nothing to count against.
func quotaOf(limit float64) (q quota, bounded bool) {
	switch {
	case !(limit > 0): // NaN too: a limit that makes no sense must not open the door
		return quota{per: finestPer}, true
	case limit <= finest:
		q.per = finestPer
	case limit <= finest*1e3:
		q.per = 1e6
	case limit <= finest*1e6:
		q.per = 1e3
	case limit <= finest*1e9:
		q.per = 1
	default:
		return quota{}, false
	}
	q.max = q.quanta(limit)
	q.limit = q.units(q.max)
	return q, true
}

// quanta counts a cost. What is negative or NaN, and what is too big to count, becomes tooMuch; what is above zero is never free.
func (q quota) quanta(units float64) (n uint64) {
	x := units * q.per
	switch {
	case !(units >= 0) || x >= tooMuch:
		return tooMuch
	case q.per == finestPer: // whole units stay exact in the product up to finest
		n = uint64(math.RoundToEven(x))
	default:
		whole := math.Trunc(units)
		n = uint64(whole)*uint64(q.per) + uint64(math.RoundToEven((units-whole)*q.per))
	}
	if n == 0 && units > 0 {
		return 1
	}
	return n
}

// units is the way back from quanta.
func (q quota) units(n uint64) float64 {
	if q.per == finestPer {
		return float64(n) / finestPer
	}
	per := uint64(q.per)
	return float64(n/per) + float64(n%per)/q.per
}

// unbounded answers for a limiter without a limit.
func unbounded(cost float64) Result {
	r := Result{Allowed: cost >= 0, Limit: math.Inf(1), Remaining: math.Inf(1)}
	if !r.Allowed {
		r.RetryAfter = Never
	}
	return r
}
