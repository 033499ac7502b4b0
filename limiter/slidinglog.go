package limiter

import (
	"math"
	"time"
)

// SlidingLog remembers when each unit was spent, and lets through at most Limit units in any span of Window: an entry counts until
// exactly Window after it was made. It is the only one of the five that is exact over every span, and the only one whose memory
// grows with the limit: 16 bytes for each instant at which something was spent, so up to Limit entries with costs of 1, and up to
// Limit divided by the smallest cost when costs are below 1. The memory grows as it is needed and is then reused.
//
// A decision takes amortised constant time. What costs more than its neighbours may search the log, in time logarithmic in its
// length.
//
// Set the fields before the first use and leave them alone; it must not be copied after that. Not safe for concurrent use: New and
// Keyed add the lock.
type SlidingLog struct {
	// Limit is how many units any span of Window lets through. 0, negative and NaN: nothing but costs of 0. +Inf, and from about
	// 4e18 units on: no limit.
	Limit float64

	// Window is the length of the span. 0 is a second; negative admits nothing.
	Window time.Duration

	ring    []entry
	head, n int    // the oldest entry and how many there are; after the first spending there is always one
	gone    uint64 // the running total at the entry before head
}

// entry is an instant at which something was spent. It holds the running total and not the cost, so that what is spent between two
// entries is one subtraction (which may wrap around) and the entry that frees enough is found by halving.
type entry struct {
	at    instant
	total uint64 // with this entry
}

// Take spends cost units when the last Window leaves room for them. See [Core].
func (l *SlidingLog) Take(now time.Time, cost float64) Result { return l.decide(now, cost, true) }

// Peek answers as Take would, without spending. See [Core].
func (l *SlidingLog) Peek(now time.Time, cost float64) Result { return l.decide(now, cost, false) }

func (l *SlidingLog) decide(now time.Time, cost float64, spend bool) Result {
	length, ok := windowOf(l.Window)
	if !ok {
		return noWindow(l.Limit)
	}
	q, bounded := quotaOf(l.Limit)
	if !bounded {
		return unbounded(cost)
	}
	asked, need := instantOf(now), q.quanta(cost)
	at, total := asked, l.gone
	if l.n > 0 {
		newest := l.entry(l.n - 1)
		at, total = max(asked, newest.at), newest.total
	}
	live := l.first(0, func(e *entry) bool { return e.at.add(length) > at })
	before := l.gone
	if live > 0 {
		before = l.entry(live - 1).total
	}
	used := total - before
	left := q.max - min(used, q.max)
	r := Result{Limit: q.limit}
	switch {
	case need <= left:
		r.Allowed = true
		left -= need
		if spend && need > 0 {
			l.drop(live, before)
			l.push(entry{at, total + need}, q)
			used += need
		}
	case need > q.max:
		r.RetryAfter = Never
	default:
		room := q.max - need
		frees := l.first(live, func(e *entry) bool { return total-e.total <= room })
		r.RetryAfter = asked.until(l.entry(frees).at.add(length))
	}
	r.Remaining = q.units(left)
	if used > 0 {
		r.Reset = asked.until(l.entry(l.n - 1).at.add(length))
	}
	return r
}

// entry is the i-th oldest.
func (l *SlidingLog) entry(i int) *entry {
	if i += l.head; i >= len(l.ring) {
		i -= len(l.ring)
	}
	return &l.ring[i]
}

// first is the first entry from i on that holds, when from some entry on all hold; l.n when none does. It looks near i first, in
// ever longer steps, because the answer is nearly always there.
func (l *SlidingLog) first(i int, holds func(*entry) bool) int {
	step := 1
	for i < l.n && !holds(l.entry(i)) {
		// entry i does not hold: skip it, and with it all up to the next that does not.
		for i+step < l.n && !holds(l.entry(i+step)) {
			i += step
			step *= 2
		}
		i++
		step = 1
	}
	return i
}

// drop forgets the n oldest entries; total is the running total at the newest of them.
func (l *SlidingLog) drop(n int, total uint64) {
	if n == 0 {
		return
	}
	if l.head += n; l.head >= len(l.ring) {
		l.head -= len(l.ring)
	}
	l.n, l.gone = l.n-n, total
}

func (l *SlidingLog) push(e entry, q quota) {
	if l.n > 0 {
		if newest := l.entry(l.n - 1); newest.at == e.at {
			newest.total = e.total
			return
		}
	}
	if l.n == len(l.ring) {
		l.grow(q)
	}
	l.n++
	*l.entry(l.n - 1) = e
}

// grow doubles the ring, but not past what costs of 1 can fill.
func (l *SlidingLog) grow(q quota) {
	size := max(4, 2*l.n)
	if whole := math.Ceil(q.limit); float64(l.n) < whole && whole < float64(size) {
		size = int(whole)
	}
	ring := make([]entry, size)
	copied := copy(ring, l.ring[l.head:])
	copy(ring[copied:], l.ring[:l.head])
	l.ring, l.head = ring, 0
}
