package limiter

import "time"

// FixedWindow lets Limit units through in each window, and forgets everything at the window's end. It is what most servers that
// answer with a limit, a remaining and a reset run. It is the cheapest to keep and to explain; the price is the edge: Limit units
// just before the end of a window and Limit just after it are twice the limit within an instant.
//
// Set the fields before the first use and leave them alone; it must not be copied after that. Not safe for concurrent use: New and
// Keyed add the lock.
type FixedWindow struct {
	// Limit is how many units a window lets through. 0, negative and NaN: nothing but costs of 0. +Inf, and from about 4e18 units
	// on: no limit.
	Limit float64

	// Window is the length of a window. 0 is a second; negative admits nothing.
	Window time.Duration

	// Anchor is an instant at which a window begins; the windows tile time from there in both directions. Zero is the Unix epoch,
	// so that a window of a minute begins at :00 and one of a day at midnight UTC.
	Anchor time.Time

	start instant // of the window that used belongs to
	used  uint64
}

// Take spends cost units when they fit into the window that now lies in. See [Core].
func (w *FixedWindow) Take(now time.Time, cost float64) Result { return w.decide(now, cost, true) }

// Peek answers as Take would, without spending. See [Core].
func (w *FixedWindow) Peek(now time.Time, cost float64) Result { return w.decide(now, cost, false) }

func (w *FixedWindow) decide(now time.Time, cost float64, spend bool) Result {
	length, ok := windowOf(w.Window)
	if !ok {
		return noWindow(w.Limit)
	}
	q, bounded := quotaOf(w.Limit)
	if !bounded {
		return unbounded(cost)
	}
	anchor := unixEpoch
	if !w.Anchor.IsZero() {
		anchor = instantOf(w.Anchor)
	}
	at, need := instantOf(now), q.quanta(cost)
	start, used := at-instant(at.phase(anchor, length)), uint64(0)
	if start <= w.start { // the same window, or a clock that went back: what was spent stays spent
		start, used = w.start, w.used
	}
	r := Result{Limit: q.limit, Reset: at.until(start.add(length))}
	left := q.max - min(used, q.max)
	switch {
	case need <= left:
		r.Allowed = true
		left -= need
		if spend && need > 0 {
			w.start, w.used = start, used+need
		}
	case need > q.max:
		r.RetryAfter = Never
	default:
		r.RetryAfter = r.Reset
	}
	r.Remaining = q.units(left)
	return r
}
