package heed

import "time"

// instant is one reading of the clock, made in a shell from one time.Now: wall
// nanoseconds for absolute resets, monotonic nanoseconds for spacing. Pure
// cores take instants, so that clock steps and suspends are rows of a table.
type instant struct{ wall, mono int64 }

// timeline turns time.Now into instants.
type timeline struct{ zero time.Time }

// newTimeline begins an hour ago, so that no instant is zero and none that
// matters is negative: zero means "never" in the cores.
func newTimeline() timeline { return timeline{time.Now().Add(-time.Hour)} }

func (l timeline) at(t time.Time) instant {
	return instant{wall: t.UnixNano(), mono: int64(t.Sub(l.zero))}
}

func (l timeline) now() instant { return l.at(time.Now()) }

func (i instant) time() time.Time { return time.Unix(0, i.wall) }

// edge is when a window ends, as the interval (lo, hi] that all that was told
// leaves open: on the wall clock for instants that the server named, on the monotonic
// clock for deltas. The zero edge is unknown.
type edge struct {
	lo, hi int64
	wall   bool
	mono   int64 // of a wall edge: hi on the monotonic clock, as the two stood when it was told
}

func (e edge) known() bool { return e.hi != 0 }

// now is the instant on the edge's own clock.
func (e edge) now(at instant) int64 {
	if e.wall {
		return at.wall
	}
	return at.mono
}

// left is how long until the edge has surely passed. A wall edge has passed when
// either clock says so: the monotonic one stands still while the machine sleeps,
// and the wall clock may have been set back since.
func (e edge) left(at instant) time.Duration {
	d := e.hi - e.now(at)
	if e.mono != 0 {
		d = min(d, e.mono-at.mono)
	}
	return time.Duration(d)
}

// doubtful says that the two clocks no longer agree on how long is left: the machine slept, or the wall clock was set.
func (e edge) doubtful(at instant) bool {
	return e.mono != 0 && time.Duration((e.hi-at.wall)-(e.mono-at.mono)).Abs() > time.Second
}

// later moves the edge.
func (e edge) later(d int64) edge {
	e.hi += d
	if e.mono != 0 {
		e.mono += d
	}
	return e
}

// meet intersects two edges of one window; ok is false when they contradict each other.
func (e edge) meet(f edge) (edge, bool) {
	if e.wall != f.wall || f.lo >= e.hi || f.hi <= e.lo {
		return e, false
	}
	return edge{lo: max(e.lo, f.lo), hi: min(e.hi, f.hi), wall: e.wall, mono: min(e.mono, f.mono)}, true
}

// offset is what is known of (server clock - local clock), in nanoseconds. Each
// answer's Date is whole seconds of an instant between our send and receive, so
// it bounds the offset from both sides; answers narrow it together to about a round trip.
type offset struct {
	lo, hi int64
	known  bool
}

// narrow takes one answer's Date into account, and starts anew when it contradicts what was known (a clock was stepped).
func (o *offset) narrow(date time.Time, sent, received instant) {
	d := date.UnixNano()
	lo, hi := d-received.wall, d+int64(time.Second)-sent.wall
	if !o.known || lo > o.hi || hi < o.lo {
		*o = offset{lo, hi, true}
		return
	}
	o.lo, o.hi = max(o.lo, lo), min(o.hi, hi)
}

// edgeOf reads a reading's reset as an edge. An instant of the server's clock
// lies on it somewhere in the second before the one named (servers round up so
// as not to call anybody too early); a delta likewise.
func (o *offset) edgeOf(r *Reading, fb *Feedback, sent, received instant) edge {
	if r.Reset.IsZero() {
		return edge{}
	}
	ahead := int64(r.Reset.Sub(received.time()))
	if !r.absolute {
		return edge{lo: sent.mono + ahead - int64(time.Second), hi: received.mono + ahead}
	}
	e := edge{lo: received.wall + ahead - int64(time.Second), hi: received.wall + ahead, wall: true}
	if !fb.Date.IsZero() && o.known {
		server := fb.Date.UnixNano() + ahead
		e.lo, e.hi = server-int64(time.Second)-o.hi, server-o.lo
	}
	e.mono = received.mono + e.hi - received.wall
	return e
}
