package limiter

import "time"

// SlidingCounter approximates a sliding window with two counters: what the current fixed window has spent, plus what the previous
// one spent weighted by how much of it a window ending now still overlaps. It assumes that the previous window was spent evenly;
// where it was not, it errs: see the comparison in the package documentation. Two counters stand in for a whole SlidingLog.
//
// The windows tile time from the Unix epoch. The weighted count is computed exactly; only the assumption is approximate.
//
// Set the fields before the first use and leave them alone; it must not be copied after that. Not safe for concurrent use: New and
// Keyed add the lock.
type SlidingCounter struct {
	// Limit is how many units the weighted count may reach. 0, negative and NaN: nothing but costs of 0. +Inf, and from about 4e18
	// units on: no limit.
	Limit float64

	// Window is the length of a window. 0 is a second; negative admits nothing.
	Window time.Duration

	last          instant // of the latest spending
	previous, now uint64  // spent in the window before that of last, and in that of last
}

// Take spends cost units when the weighted count leaves room for them. See [Core].
func (c *SlidingCounter) Take(now time.Time, cost float64) Result { return c.decide(now, cost, true) }

// Peek answers as Take would, without spending. See [Core].
func (c *SlidingCounter) Peek(now time.Time, cost float64) Result { return c.decide(now, cost, false) }

func (c *SlidingCounter) decide(now time.Time, cost float64, spend bool) Result {
	length, ok := windowOf(c.Window)
	if !ok {
		return noWindow(c.Limit)
	}
	q, bounded := quotaOf(c.Limit)
	if !bounded {
		return unbounded(cost)
	}
	asked, need := instantOf(now), q.quanta(cost)
	at := max(asked, c.last)
	into := at.phase(unixEpoch, length)
	start := at - instant(into)
	previous, current := c.spent(start, length)

	// previous*(length-into)/length is at most previous, so it fits; rounding it up rounds the room down to whole quanta, which
	// changes no decision because costs are whole quanta too.
	weighted, _ := product(previous, length-into).overUp(length)
	left := q.max - min(current+weighted, q.max)
	r := Result{Limit: q.limit}
	switch {
	case need <= left:
		r.Allowed = true
		left -= need
		current += need
		if spend && need > 0 {
			c.last, c.previous, c.now = at, previous, current
		}
		if !spend {
			current -= need
		}
	case need > q.max:
		r.RetryAfter = Never
	default:
		r.RetryAfter = asked.until(fits(start, length, previous, current, q.max-need))
	}
	r.Remaining = q.units(left)
	switch {
	case current > 0:
		r.Reset = asked.until(start.add(2 * length))
	case previous > 0:
		r.Reset = asked.until(start.add(length))
	}
	return r
}

// spent is what the window that begins at start, which is not before that of the last spending, and the one before it have spent.
func (c *SlidingCounter) spent(start instant, length uint64) (previous, current uint64) {
	held := c.last - instant(c.last.phase(unixEpoch, length))
	switch {
	case start == held:
		return c.previous, c.now
	case start == held.add(length):
		return c.now, 0
	}
	return 0, 0
}

// fits is the first instant at which the weighted count is no more than room. Within this window that is when previous has shrunk
// to what current leaves of room; if current alone is too much, it is when current, as the previous window of the next one, has.
func fits(start instant, length, previous, current, room uint64) instant {
	if current > room {
		start, previous, current = start.add(length), current, 0
	}
	overlap, ok := product(room-current, length).over(previous)
	if !ok || overlap > length {
		return start
	}
	return start.add(length - overlap)
}
