package limiter

import "time"

// TokenBucket holds up to Burst units, gains Rate units a second, starts full, and lets a cost through when it holds that much. In
// any span of T seconds it lets through at most Burst + Rate*T units. It is what is usual where bursts are welcome and the mean
// matters.
//
// The count is exact: the rate is taken as a fraction, so after any number of units the bucket is where the definition puts it.
//
// Set the fields before the first use and leave them alone; it must not be copied after that. Not safe for concurrent use: New and
// Keyed add the lock.
type TokenBucket struct {
	// Rate is in units per second. 0, negative, NaN, and below 1e-15: nothing comes back, so Burst units are all there will ever
	// be. +Inf, and from about 4e18 on: no limit, and Burst is not looked at.
	Rate float64

	// Burst is the capacity in units: the most that is let through at once. 0 is 1, so that single units pass at the Rate.
	// Negative and NaN: nothing but costs of 0. +Inf, and from about 4e18 units on: no limit.
	Burst float64

	missing drain // what the bucket lacks to be full
}

// Take spends cost units when the bucket holds them. See [Core].
func (b *TokenBucket) Take(now time.Time, cost float64) Result {
	return b.missing.decide(now, b.Rate, orOne(b.Burst), cost, true)
}

// Peek answers as Take would, without spending. See [Core].
func (b *TokenBucket) Peek(now time.Time, cost float64) Result {
	return b.missing.decide(now, b.Rate, orOne(b.Burst), cost, false)
}

// orOne gives a capacity that was not set its default.
func orOne(capacity float64) float64 {
	if capacity == 0 {
		return 1
	}
	return capacity
}
