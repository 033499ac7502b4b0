package heed

import (
	"math"
	"time"
)

// load is a scope's traffic in one unit: all that was ever sent, and what of it is not answered yet.
type load struct{ spent, inflight float64 }

// limitID is what makes two readings speak of one limit.
type limitID struct {
	name, partition, from string
	unit                  Unit
}

// window is what is known of one limit that a server reports: the pure model
// behind the numbers. It believes the smallest remaining that any answer of the
// window told, less what is in flight: answers come back in any order, and
// within one window remaining only falls. A remaining that rises before the
// reset shows a bucket that drips; then the newest answer counts.
type window struct {
	id     limitID
	limit  Limit
	quota  float64 // 0: not known
	length int64   // nanoseconds between two resets, told or seen; 0: not known
	seen   bool    // length was seen, not told
	ends   edge
	before edge  // the end of the window before, once rolled
	newest int64 // monotonic send time of the newest answer that was believed
	heard  int64 // monotonic receive time of that answer

	told     float64 // the least that any answer of the window said remains
	toldAt   int64   // monotonic instant at which that answer came
	landed   float64 // units sent and answered until then; later ones may be counted in a newer window
	tail     float64 // units answered since the window may have ended: they may be counted in the next
	own      float64 // the same by our own count, for answers that say nothing
	metered  bool    // some answer stated what remains
	beside   bool    // answers report a limit in requests beside it
	rolled   bool    // the reset has passed and no answer has confirmed the new window yet
	fresh    bool    // rolled, and the ledger has not yet taken notice
	doubtful bool    // rolled while the clocks disagreed
	rolledAt int64
	late     int64 // how much later than told this server's resets turned out to be

	slowed int64   // when a refusal last slowed the rate
	rises  int     // answers that told more than was left, before the reset
	rate   float64 // of a dripping bucket: units per second; 0: not a bucket
}

// bucketRises is how many rises make a window a bucket: one may be a refund.
const bucketRises = 2

// roll starts the next window once the end of the current one has surely passed.
func (w *window) roll(now instant) {
	if w.rate > 0 || !w.ends.known() || w.ends.left(now) > 0 {
		return // a bucket has no window: what its answers tell is all there is
	}
	units := w.quota
	if units <= 0 {
		units = max(w.told, 1) // one probe tells the rest
	}
	units = max(units-w.tail, min(units, 1))
	w.told, w.own, w.tail = units, units, 0
	w.rolled, w.fresh, w.rolledAt = true, true, now.mono
	w.doubtful = w.ends.doubtful(now)
	w.before, w.ends = w.ends, edge{}
}

// measure learns the window's length from two resets in a row, when no answer tells it.
func (w *window) measure(from, to edge) {
	d := to.hi - from.hi
	if from.wall != to.wall || d < int64(time.Second) || w.length > 0 && (!w.seen || d >= w.length) {
		return
	}
	w.length, w.seen = d, true
}

// available is what may still be spent at now, in-flight units taken off.
func (w *window) available(now instant, inflight float64) float64 {
	if w.rate > 0 {
		return min(w.quota, w.told+w.rate*time.Duration(now.mono-w.toldAt).Seconds()) - inflight
	}
	return min(w.told, w.own) - inflight
}

// low is the share of the quota below which sends are spread over what is left of the window.
const low = 0.2

// overdue is how long nothing must have been sent until what is still
// unanswered no longer counts, where no window's end bounds the wait for it.
const overdue = int64(5 * time.Second)

// never marks a wait that ends with an event and not with time.
const never = time.Duration(math.MaxInt64)

// wait is how long a cost must wait under this limit, with ahead units already
// queued before it, inflight units unanswered, and the last send at last.
func (w *window) wait(now instant, cost, ahead, inflight float64, last int64) time.Duration {
	w.roll(now)
	if !w.metered || cost == 0 {
		return 0
	}
	if w.quota > 0 {
		cost = min(cost, w.quota) // what costs more than a whole window goes when a window is whole
	}
	if last != 0 && now.mono-last >= overdue && (w.rate > 0 || !w.ends.known()) {
		inflight = 0 // one goes nevertheless: sends that stay unanswered must not hold up everybody
	}
	free := w.available(now, inflight) - ahead
	switch {
	case w.rate > 0:
		if free >= cost {
			return 0
		}
		return seconds((cost - free) / w.rate)
	case free >= cost:
		return w.spread(now, free, last)
	case !w.ends.known():
		if inflight > 0 {
			return never // an answer is on its way and will tell
		}
		// Nothing left and no word of when there will be more: one probe, a second after the last word.
		return max(0, time.Duration(w.heard+int64(time.Second)-now.mono))
	}
	d := max(0, w.ends.left(now))
	if w.quota > 0 && w.length > 0 { // those ahead may need windows of their own
		d += time.Duration(math.Floor(max(0, cost-free-1)/w.quota)) * time.Duration(w.length)
	}
	return d
}

// spread paces the last units over what is left of the window, so that they are
// not raced for with others and the window does not end in silence.
func (w *window) spread(now instant, free float64, last int64) time.Duration {
	if w.quota <= 0 || free > w.quota*low || !w.ends.known() || last == 0 {
		return 0
	}
	left := int64(w.ends.left(now)) + (now.mono - last) // at the last send
	if left <= 0 {
		return 0
	}
	return max(0, time.Duration(last+int64(float64(left)/(free+1))-now.mono))
}

// share is what a cost takes of this limit. Points that nobody declared are one a
// call, unless a limit in requests stands beside it and paces the calls already.
func (w *window) share(c Cost) float64 {
	if w.beside {
		return c.of(w.id.unit)
	}
	return c.counted().of(w.id.unit)
}

// charge takes an answered cost off our own count.
func (w *window) charge(cost float64, now instant) {
	w.own = max(0, w.own-cost)
	if w.ends.known() && w.ends.now(now) > w.ends.lo {
		w.tail += cost
	}
}

// hear takes what an answer says remains.
func (w *window) hear(remaining float64, received instant, l load) {
	w.told, w.toldAt, w.landed = remaining, received.mono, l.spent-l.inflight
}

// believe starts a window from what an answer says. What is in flight may or
// may not be in its figure already, and will be charged as it lands.
func (w *window) believe(remaining float64, e edge, received instant, l load) {
	w.hear(remaining, received, l)
	w.own, w.ends, w.rolled, w.tail = remaining+l.inflight, e, false, 0
}

// learn takes one reading into account, of a request sent at sent and answered at received.
func (w *window) learn(r *Reading, e edge, sent, received instant, l load, refused bool) {
	newest := sent.mono >= w.newest
	if e.known() {
		e = e.later(w.late)
	}
	if newest {
		w.limit = r.Limit
		if r.Has&HasQuota != 0 {
			w.quota = r.Limit.Quota
		}
		if r.Limit.Window > 0 {
			w.length, w.seen = int64(r.Limit.Window), false
		}
	}
	if r.Has&HasRemaining == 0 {
		return
	}
	defer func() {
		if newest {
			w.newest, w.heard = sent.mono, received.mono
		}
		w.metered = true
	}()
	switch {
	case !w.metered:
		w.believe(r.Remaining, e, received, l)
		return
	case !w.rolled && !e.known() && !w.ends.known():
		// No resets at all. Only who was sent after the last word came knows better; of flights that overlap the least counts.
		if sent.mono > w.toldAt {
			w.believe(r.Remaining, e, received, l)
		} else if r.Remaining < w.told {
			w.hear(r.Remaining, received, l)
		}
		return
	}
	if !e.known() && !w.rolled {
		// No word of the reset: of the window that is known, if that has not ended.
		if w.roll(sent); !w.rolled {
			w.roll(received)
		}
		if !w.rolled {
			w.same(r, w.ends, sent, received, l, refused)
			return
		}
	}
	if w.rolled {
		w.confirm(r, e, sent, received, l)
		return
	}
	if w.rate > 0 {
		w.drip(r, e, sent, received, refused)
		w.refill(r, e, sent, received)
		return
	}
	if met, ok := w.ends.meet(e); ok {
		w.same(r, met, sent, received, l, refused)
		return
	}
	if !newest || sent.mono <= w.toldAt && e.wall == w.ends.wall && e.hi <= w.ends.lo {
		return // an overtaken answer of an earlier window
	}
	remaining := r.Remaining
	if w.ends.known() && w.ends.lo > w.ends.now(received) {
		// The reset moved before it was due: a bucket, or a window that slides.
		if sent.mono <= w.toldAt {
			remaining = min(remaining, w.told) // flights that overlap: the least counts
		} else if remaining > w.told {
			w.rises++
		}
	} else {
		w.measure(w.ends, e)
	}
	w.drip(r, e, sent, received, refused)
	if w.rate > 0 {
		w.refill(r, e, sent, received)
		return
	}
	w.believe(remaining, e, received, l)
}

// confirm hears the first answers after the reset has passed by our reckoning.
func (w *window) confirm(r *Reading, e edge, sent, received instant, l load) {
	after := sent.mono >= w.rolledAt
	switch {
	case after && r.Remaining == 0 && e.known() && int64(e.left(received)) <= w.late:
		// The server still speaks of the old window: its resets come later
		// than it tells. Wait on, and remember by how much.
		w.late = min(max(4*w.late, int64(50*time.Millisecond)), int64(time.Second))
		w.believe(0, edge{lo: received.mono, hi: received.mono + w.late}, received, l)
	case e.known() && e.left(received) > 0:
		if !after && r.Remaining < w.told && e.left(received) < time.Second {
			return // still of the old window, whose end lies within the rounding
		}
		w.measure(w.before, e)
		w.believe(r.Remaining, e, received, l)
	case after && sent.mono > w.toldAt:
		w.hear(r.Remaining, received, l)
		w.own = r.Remaining + l.inflight
	case after:
		w.told = min(w.told, r.Remaining)
	}
}

// same hears a further answer of the current window.
func (w *window) same(r *Reading, met edge, sent, received instant, l load, refused bool) {
	if r.Remaining > w.told && sent.mono > w.toldAt {
		// Sent after less had been told, and yet more is left. Had the window been reset since, nearly all
		// would be: all but what was sent since.
		early := w.ends.lo > w.ends.now(received)
		if partly := r.Remaining+l.spent-w.landed < w.quota; early || partly {
			w.rises++
		}
	}
	w.drip(r, met, sent, received, refused)
	if w.rate > 0 {
		w.refill(r, met, sent, received)
		return
	}
	if r.Remaining < w.told {
		w.hear(r.Remaining, received, l)
	}
	if w.ends = met; met.lo > met.now(received) {
		w.tail = 0
	}
}

// drip keeps the rate of a bucket: its reset is when it will be full, so what
// is missing over that time is the slowest rate at which it can be refilling. A
// refusal says that the rate was too high, once for all that was under way.
func (w *window) drip(r *Reading, e edge, sent, received instant, refused bool) {
	if w.rises < bucketRises || w.quota <= 0 {
		return
	}
	if refused && w.rate > 0 {
		if sent.mono >= w.slowed {
			w.rate *= slower
			w.slowed = received.mono
		}
		return
	}
	if left := e.left(received).Seconds(); left > 0 && sent.mono >= w.slowed {
		w.rate = max(w.rate, under*(w.quota-r.Remaining)/max(left, 1e-3))
	}
}

const (
	under  = 0.99 // of the rate that a bucket shows: pacing at the very edge loses to every rounding
	slower = 0.8  // of the rate, after a refusal
)

// refill takes the level of a bucket from an answer. One whose request was sent
// after the last word came is the newer truth; one that was under way with it
// may have been overtaken, so only the smaller counts.
func (w *window) refill(r *Reading, e edge, sent, received instant) {
	level := r.Remaining
	if sent.mono <= w.toldAt {
		level = min(level, w.told+w.rate*time.Duration(received.mono-w.toldAt).Seconds())
	}
	w.told, w.toldAt = level, received.mono
	if e.known() {
		w.ends = e
	}
}
