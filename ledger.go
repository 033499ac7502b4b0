package heed

import (
	"time"
)

// Reason says why a call waits or was refused. One value is carried by errors,
// hooks, log lines and [Info].
type Reason string

// Reasons of waits and refusals.
const (
	// ReasonHold: the server told everybody in the scope to wait (Retry-After or its kin).
	ReasonHold Reason = "hold"
	// ReasonLimit: a limit that the server reports has no units left.
	ReasonLimit Reason = "limit"
	// ReasonPace: the last units of a window are spread over what is left of it.
	ReasonPace Reason = "pace"
	// ReasonRule: a limit of a Rule.
	ReasonRule Reason = "rule"
	// ReasonConcurrency: a Rule's Concurrency is used up.
	ReasonConcurrency Reason = "concurrency"
	// ReasonProbe: the scope is unknown, or was just held; a few requests go
	// first, and the others when they are answered, after half a second at most.
	ReasonProbe Reason = "probe"
	// ReasonBudget: the shared Budget has no units.
	ReasonBudget Reason = "budget"
	// ReasonQueue: others of the scope were first, or too many wait already.
	ReasonQueue Reason = "queue"
	// ReasonBackoff: the pause before a retry.
	ReasonBackoff Reason = "backoff"
	// ReasonImpossible: the cost is more than a limit ever allows.
	ReasonImpossible Reason = "impossible"
)

// maxWindows bounds the limits kept of one scope: a server may invent names without end.
const maxWindows = 32

// Backoff of a whole scope after refusals that name no wait.
const (
	penaltyBase = time.Second
	penaltyCap  = 30 * time.Second
)

// rampStep bounds how long newcomers of an unknown scope wait for the answers of those that went first.
const rampStep = 500 * time.Millisecond

// ledger is all that is known about the limits of one scope: a pure core that
// is fed with instants and never waits. Not safe for concurrent use.
type ledger struct {
	windows  []window
	meters   []*meter
	clock    offset
	hold     int64 // monotonic; 0: none
	refusals int   // in a row, without a told wait
	inflight Cost
	spent    Cost // ever
	flights  int
	last     int64 // monotonic instant of the last send
	ahead    int64 // the furthest that the wall clock ever was ahead of the monotonic one

	ramp      int   // sends that may be unanswered at once; <0: no bound any more
	rampSince int64 // when the current step began; 0: nobody has gone yet
}

// verdict is a decision: go now, wait, or refuse.
type verdict struct {
	wait       time.Duration // 0: go; never: until something happens
	reason     Reason
	limit      Limit
	impossible bool
}

// decide says when a cost may be sent that has ahead others queued before it.
func (l *ledger) decide(now instant, known []Limit, cost Cost, ahead int) verdict {
	if d := time.Duration(l.hold - now.mono); l.hold != 0 && d > 0 {
		return verdict{wait: d, reason: ReasonHold}
	}
	var v verdict
	for i := range l.windows {
		w := &l.windows[i]
		unit := w.share(cost)
		d := w.wait(now, unit, float64(ahead)*unit, l.inflight.of(w.id.unit), l.last)
		if d > v.wait {
			v = verdict{wait: d, reason: ReasonLimit, limit: w.limit}
			if w.available(now, l.inflight.of(w.id.unit)) >= unit+float64(ahead)*unit {
				v.reason = ReasonPace
			}
		}
	}
	l.notice()
	for _, k := range known {
		d, impossible := l.meter(k).wait(l.pace(now), cost)
		if impossible {
			return verdict{reason: ReasonImpossible, limit: k, impossible: true}
		}
		if d > v.wait {
			v = verdict{wait: d, reason: ReasonRule, limit: k}
		}
	}
	if v.wait == 0 && len(known) == 0 {
		if d := l.probing(now); d > 0 {
			return verdict{wait: d, reason: ReasonProbe}
		}
	}
	return v
}

// longWindow is the length from which a new window is begun with one request:
// were its start misjudged, one refusal would tell, and a round trip is cheap beside it.
const longWindow = int64(5 * time.Second)

// notice begins a new window carefully when it is long or nobody knows how long, and when its beginning is in doubt.
func (l *ledger) notice() {
	for i := range l.windows {
		w := &l.windows[i]
		if w.fresh {
			w.fresh = false
			if w.length >= longWindow || w.length == 0 || w.doubtful {
				l.ramp, l.rampSince = 1, 0
			}
		}
	}
}

// probing is the slow start of a scope of which nothing is known: one goes
// alone, then two, then four, each step until an answer comes or the step's time is over.
func (l *ledger) probing(now instant) time.Duration {
	if l.ramp < 0 {
		return 0
	}
	if l.ramp == 0 {
		l.ramp = 1
	}
	for l.flights >= l.ramp && l.rampSince != 0 {
		if d := time.Duration(l.rampSince + int64(rampStep) - now.mono); d > 0 {
			return d
		}
		l.step(now)
		if l.ramp < 0 {
			break
		}
	}
	return 0
}

func (l *ledger) step(now instant) {
	l.ramp *= 2
	l.rampSince = now.mono
	if l.ramp > 4 {
		l.ramp = -1
	}
}

// meter finds or makes the count of a known limit.
func (l *ledger) meter(k Limit) *meter {
	for _, m := range l.meters {
		if m.limit == k {
			return m
		}
	}
	m := newMeter(k)
	l.meters = append(l.meters, m)
	return m
}

// spend records a send that decide has allowed. quiet sends (streams) hold nobody up behind them.
func (l *ledger) spend(now instant, known []Limit, cost Cost, quiet bool) {
	l.inflight, l.spent = l.inflight.plus(cost.counted()), l.spent.plus(cost.counted())
	l.flights++
	l.last = now.mono
	switch {
	case quiet && l.rampSince == 0:
		l.ramp = -1
	case l.ramp > 0 && l.rampSince == 0:
		l.rampSince = now.mono
	}
	if len(known) > 0 {
		at := l.pace(now)
		for _, k := range known {
			l.meter(k).spend(at, cost)
		}
	}
}

// land ends a flight. charged: the server may have counted it; otherwise it was provably never sent.
func (l *ledger) land(now instant, known []Limit, cost Cost, charged bool) {
	used := cost
	if !charged {
		used = Cost{}
	}
	l.settle(now, known, cost, used)
}

// settle ends a flight that took a cost and used another.
func (l *ledger) settle(now instant, known []Limit, taken, used Cost) {
	l.inflight = l.inflight.minus(taken.counted())
	if l.flights--; l.flights == 0 {
		l.inflight = Cost{} // no drift
	}
	for i := range l.windows {
		l.windows[i].charge(l.windows[i].share(used), now)
	}
	if used == taken {
		return
	}
	l.spent = l.spent.minus(taken.counted()).plus(used.counted())
	at := l.pace(now)
	for _, k := range known {
		m := l.meter(k)
		m.refund(at, taken.minus(used))
		m.spend(at, used.minus(taken))
	}
}

// pace is the clock of the meters: the wall clock, which windows of the
// calendar need, except that it does not follow it back. A step neither forgives
// what was spent nor freezes what is left.
func (l *ledger) pace(now instant) time.Time {
	l.ahead = max(l.ahead, now.wall-now.mono)
	return time.Unix(0, now.mono+l.ahead)
}

// learn takes an answer's word, after its land. The result is how long the scope is held from now on, if this answer held it.
func (l *ledger) learn(sent, received instant, fb *Feedback, random float64) (held time.Duration) {
	if !fb.Date.IsZero() {
		l.clock.narrow(fb.Date, sent, received)
	}
	beside := fb.reports(UnitRequests)
	for i := range fb.Readings {
		r := &fb.Readings[i]
		if r.momentary {
			continue // the hold of the refusal is all there is to it
		}
		if w := l.window(r); w != nil {
			w.beside = beside
			w.learn(r, l.clock.edgeOf(r, fb, sent, received), sent, received, load{l.spent.of(w.id.unit), l.inflight.of(w.id.unit)}, fb.Limited)
		}
	}
	var told time.Duration
	if !fb.RetryAt.IsZero() {
		told = fb.RetryAt.Sub(received.time())
	}
	switch {
	case (fb.Limited || fb.Kind == KindOverload) && told > 0:
		held = onTop(told, random)
		l.refusals = 0
	case fb.Limited && sent.mono >= l.hold:
		// A refusal without a hint: the scope backs off, longer each time.
		held = penalty(l.refusals, random)
		l.refusals++
	case !fb.Limited && fb.Kind == KindNone && sent.mono >= l.hold:
		l.refusals = 0 // an answer that was under way before the last refusal says nothing of now
	}
	if at := received.mono + int64(held); held > 0 && at > l.hold {
		l.hold = at
		l.ramp, l.rampSince = 1, 0 // afterwards not all at once
		return held
	}
	l.advance(sent, received, fb)
	return 0
}

// advance lets more go after an answer: all, once a limit is known.
func (l *ledger) advance(sent, now instant, fb *Feedback) {
	if l.ramp < 0 || l.rampSince == 0 || sent.mono < l.rampSince {
		return // or it belongs to an earlier step
	}
	for i := range fb.Readings {
		if fb.Readings[i].Has&HasRemaining != 0 {
			l.ramp = -1
			return
		}
	}
	l.step(now)
}

// window finds or makes the model of the limit that r speaks of; nil when there are too many.
func (l *ledger) window(r *Reading) *window {
	id := limitID{r.Limit.Name, r.Limit.Partition, r.From, r.Limit.Unit}
	for i := range l.windows {
		if l.windows[i].id == id {
			return &l.windows[i]
		}
	}
	if len(l.windows) >= maxWindows {
		oldest := 0
		for i := range l.windows {
			if l.windows[i].heard < l.windows[oldest].heard {
				oldest = i
			}
		}
		l.windows[oldest] = window{id: id}
		return &l.windows[oldest]
	}
	l.windows = append(l.windows, window{id: id})
	return &l.windows[len(l.windows)-1]
}

// idle says that forgetting the ledger now would forgive nothing.
func (l *ledger) idle(now instant) bool {
	at := l.pace(now)
	for _, m := range l.meters {
		if !m.whole(at) {
			return false
		}
	}
	return l.flights == 0 && l.debt(now) == 0
}

// debt is until when the scope must not send, on the monotonic clock; 0: it may.
func (l *ledger) debt(now instant) int64 {
	var until int64
	if l.hold > now.mono {
		until = l.hold
	}
	for i := range l.windows {
		w := &l.windows[i]
		w.roll(now)
		if w.metered && w.available(now, 0) < 1 && w.ends.known() {
			until = max(until, now.mono+int64(w.ends.left(now)))
		}
	}
	at := l.pace(now)
	for _, m := range l.meters {
		if d, impossible := m.wait(at, Cost{1, 1, 1, 1}); d > 0 && !impossible {
			until = max(until, now.mono+int64(d))
		}
	}
	return until
}

// penalty is the pause of a scope after n refusals in a row that named no wait.
func penalty(n int, random float64) time.Duration {
	return upperHalf(doubled(penaltyBase, n, penaltyCap), random)
}
