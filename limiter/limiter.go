package limiter

import (
	"sync"
	"time"
)

// Core is one client's limiter as a pure decision: no lock, no clock, no goroutine. It is not safe for concurrent use; [Limiter] and
// [Keyed] are. [FixedWindow], [SlidingLog], [SlidingCounter], [TokenBucket] and [LeakyBucket] are the five of this package.
//
// A cost is in units and may be a fraction. A cost of 0 is allowed and changes nothing; a negative or NaN cost is refused with
// RetryAfter Never. An instant earlier than that of the last spending counts as that instant, so a clock that goes back creates no
// units; RetryAfter and Reset are still counted from the instant that was given. Only the wall clock reading of an instant is used,
// and only between the years 1678 and 2262.
type Core interface {
	// Take spends cost units when they fit. A Take that is refused changes nothing.
	Take(now time.Time, cost float64) Result

	// Peek decides as Take would and spends nothing, so its Reset leaves the cost out.
	Peek(now time.Time, cost float64) Result
}

// Limiter is a Core behind a mutex with a clock. It is safe for concurrent use. The zero Limiter has no core and admits nothing.
//
// Its clock is the wall clock, except that it does not follow it back: after a backward step it runs on, at the pace of the
// monotonic clock, from where it was. So a step neither creates units nor freezes the limiter until the wall has caught up.
type Limiter struct {
	mu    sync.Mutex
	core  Core
	clock clock
}

// New returns a Limiter around a core, which must not be used elsewhere from then on.
func New(c Core) *Limiter { return &Limiter{core: c} }

// Allow spends one unit now if it fits, and reports whether it did.
func (l *Limiter) Allow() bool { return l.Take(1).Allowed }

// Take spends cost units now if they fit.
func (l *Limiter) Take(cost float64) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decide(l.clock.now(), cost, true)
}

// Peek decides as Take would, without spending.
func (l *Limiter) Peek(cost float64) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decide(l.clock.now(), cost, false)
}

// TakeAt is Take at an instant that the caller gives.
func (l *Limiter) TakeAt(now time.Time, cost float64) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decide(now, cost, true)
}

// PeekAt is Peek at an instant that the caller gives.
func (l *Limiter) PeekAt(now time.Time, cost float64) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.decide(now, cost, false)
}

func (l *Limiter) decide(now time.Time, cost float64, spend bool) Result {
	switch {
	case l.core == nil:
		return Result{RetryAfter: Never, Reset: Never}
	case spend:
		return l.core.Take(now, cost)
	}
	return l.core.Peek(now, cost)
}
