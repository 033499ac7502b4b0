package limiter

import (
	"math"
	"time"
)

// instant counts nanoseconds from the first that time.Time.UnixNano can say (the year 1677) to the last (2262); what lies outside
// is moved to the nearer end. The zero instant is therefore before everything, so a core that was never used needs no flag. Eight
// bytes instead of the 24 of a time.Time matter when there is one per client.
type instant uint64

const (
	unixEpoch instant = 1 << 63
	lastSec           = math.MaxInt64/int64(time.Second) - 1
)

func instantOf(t time.Time) instant {
	switch s := t.Unix(); {
	case s < -lastSec:
		return 0
	case s > lastSec:
		return math.MaxUint64
	}
	return unixEpoch + instant(t.UnixNano())
}

// add moves on by d nanoseconds and stops at the end of time.
func (i instant) add(d uint64) instant {
	if d > uint64(math.MaxUint64-i) {
		return math.MaxUint64
	}
	return i + instant(d)
}

// until is the time from i to a later instant; 0 when it is not later, Never when a Duration cannot hold it.
func (i instant) until(later instant) time.Duration {
	switch {
	case later <= i:
		return 0
	case uint64(later-i) > math.MaxInt64:
		return Never
	}
	return time.Duration(later - i)
}

// phase is how far i lies inside its window, when windows of the given length tile time from the anchor, in both directions.
func (i instant) phase(anchor instant, length uint64) uint64 {
	var into uint64
	if i >= anchor {
		into = uint64(i-anchor) % length
	} else {
		into = length - 1 - uint64(anchor-i-1)%length
	}
	return min(into, uint64(i))
}

// windowOf reads a configured window length: 0 is a second, and a negative one is not a window.
func windowOf(d time.Duration) (length uint64, ok bool) {
	if d == 0 {
		d = time.Second
	}
	return uint64(d), d > 0
}

// noWindow answers for a limiter whose window is negative: it admits nothing, because a mistake must not open the door.
func noWindow(limit float64) Result {
	if !(limit > 0) {
		limit = 0
	}
	return Result{Limit: limit, RetryAfter: Never, Reset: Never}
}
