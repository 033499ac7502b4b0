package limiter

import "time"

// LeakyBucket holds a level that leaks at Rate units a second; a cost is allowed while level+cost is at most Queue. Take and Peek use
// it as a meter. [LeakyBucket.Delay] uses it as a queue: what is accepted leaves at the constant Rate, each after what came before
// it, as nginx's limit_req does without nodelay (whose burst does not count the request being served: burst=20 is Queue 21).
//
// The level is exact: the rate is taken as a fraction, so it is where the definition puts it after any number of units.
//
// Set the fields before the first use and leave them alone; it must not be copied after that. Not safe for concurrent use: New and
// Keyed add the lock.
type LeakyBucket struct {
	// Rate is in units per second. 0, negative, NaN, and below 1e-15: nothing leaks, so Queue units are all that is ever accepted.
	// +Inf, and from about 4e18 on: no limit, and Queue is not looked at.
	Rate float64

	// Queue is the capacity in units, with the unit being served. 0 is 1: nothing waits. Negative and NaN: nothing but costs of 0.
	// +Inf, and from about 4e18 units on: no limit.
	Queue float64

	held drain
}

// Take adds cost units to the level when they fit. See [Core].
func (b *LeakyBucket) Take(now time.Time, cost float64) Result {
	return b.held.decide(now, b.Rate, orOne(b.Queue), cost, true)
}

// Peek answers as Take would, without spending. See [Core].
func (b *LeakyBucket) Peek(now time.Time, cost float64) Result {
	return b.held.decide(now, b.Rate, orOne(b.Queue), cost, false)
}

// Delay takes cost units like Take, and says how long what was accepted has to be held before it is let through: until all that was
// accepted before it has leaked out, rounded up to a nanosecond. When it is not accepted, nothing changes and the time is what Take
// gives as RetryAfter. Where nothing leaks only what finds the bucket empty is accepted, since the rest would be held for ever.
func (b *LeakyBucket) Delay(now time.Time, cost float64) (time.Duration, bool) {
	before := b.Peek(now, 0).Reset
	if before == Never {
		return Never, false
	}
	r := b.Take(now, cost)
	if !r.Allowed {
		return r.RetryAfter, false
	}
	return before, true
}
