package heed

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
)

// admit waits until the call may be sent, and spends.
func (l *throttleLayer) admit(c *call, req *http.Request, s *scope, hits []int) (Grant, error) {
	if c.over() != nil {
		return Grant{}, c.cancelled(nil)
	}
	now := l.line.now()
	s.mu.Lock()
	q := s.lane(l.rules, hits)
	c.lane, c.cost = q, c.wishes.Cost
	if c.cost == (Cost{}) {
		c.cost = q.cost
	}
	if c.cost == (Cost{}) {
		c.cost = Cost{Requests: 1}
	}
	if !c.cost.valid() { // one NaN would make every later sum one
		s.mu.Unlock()
		return Grant{}, &CallError{Info: c.info, Err: fmt.Errorf("Call.Cost %+v has a part that is negative or not a number, so nothing was sent; correct it", c.cost)}
	}
	if q.queue.n == 0 && l.budget == nil && s.free(l.rules, q) && !s.behind(q, c.seq) {
		if v := s.ledger.decide(now, q.known, c.cost, 0); v.wait == 0 && !v.impossible {
			l.spend(c, req, s, now)
			s.mu.Unlock()
			return Grant{}, nil
		}
	}
	if l.throttle.MaxQueue < 0 && l.budget != nil {
		return l.ask(c, req, s, now)
	}
	return l.wait(c, req, s, now)
}

// ask is the way in where nobody may wait: a Budget is asked once. It is
// entered with the scope locked, and leaves it unlocked.
func (l *throttleLayer) ask(c *call, req *http.Request, s *scope, now instant) (Grant, error) {
	defer s.mu.Unlock()
	v := s.ledger.decide(now, nil, c.cost, 0)
	if v.wait == 0 {
		grant, denied, err := l.claim(c, req, s, now)
		if err != nil || denied.wait == 0 {
			return grant, err
		}
		v = denied
	}
	v.reason = ReasonQueue
	return Grant{}, c.refuse(v, now, "", false)
}

// spend books a send that may go now. The scope is locked.
func (l *throttleLayer) spend(c *call, req *http.Request, s *scope, now instant) {
	s.ledger.spend(now, l.local(c.lane), c.cost, quiet(req))
	s.occupy(l.rules, c.lane, 1)
	c.sent = now
}

// quiet sends are not waited for by newcomers: their answers may take for ever.
func quiet(req *http.Request) bool {
	return req.Body != nil && req.ContentLength < 0 || slices.ContainsFunc(req.Header["Accept"], streams)
}

// wait is the way in for whoever cannot go at once: a place in the lane's
// queue, in which only the first in line looks whether it may go. It is entered
// with the scope locked, and leaves it unlocked.
func (l *throttleLayer) wait(c *call, req *http.Request, s *scope, now instant) (Grant, error) {
	q := &c.lane.queue
	v := s.ledger.decide(now, l.local(c.lane), c.cost, q.n)
	if most := l.throttle.MaxQueue; q.n >= max(0, most) && (most != 0 || q.n >= defaultMaxQueue) {
		s.mu.Unlock()
		v.reason = ReasonQueue
		return Grant{}, c.refuse(v, now, "", false)
	}
	w := &waiter{seq: c.seq, signal: make(chan struct{}, 1)}
	left, bounded, deadline := c.patience(l.throttle.MaxWait, defaultMaxWait)
	if bounded {
		w.bound, w.late = now.mono+min(int64(left), math.MaxInt64-now.mono), deadline
	}
	ahead := q.insert(w)
	defer func() { // whatever happens, a panic of a hook or a Budget included, nobody is left standing in the way
		if q.head == w {
			s.lacks(c.lane, Limit{})
		}
		q.remove(w)
		s.mu.Unlock()
	}()
	if ahead != q.n-1 { // a retry came back to its place
		v = s.ledger.decide(now, l.local(c.lane), c.cost, ahead)
	}
	for told := false; ; {
		if v.reason == ReasonPace && hopeless(v, w, now) {
			v = w.rest(now) // there are units: spreading them gives way to a deadline, but a Budget's word does not
		}
		if w.refused != nil {
			v = *w.refused
		}
		if v.impossible || w.refused != nil || hopeless(v, w, now) {
			return Grant{}, c.refuse(v, now, bound(w), w.late)
		}
		first := q.head == w
		if first && v.wait == 0 && s.behind(c.lane, c.seq) {
			v = verdict{wait: never, reason: ReasonQueue}
		} else if first && v.wait == 0 {
			grant, denied, err := l.claim(c, req, s, now)
			if err != nil || denied.wait == 0 {
				return grant, err
			}
			v, now = denied, l.line.now()
			w.notBefore, w.denied = now.mono+int64(v.wait), v.limit
			if v.wait == never {
				w.notBefore = 0
			}
			if hopeless(v, w, now) {
				continue
			}
		}
		reason := v.reason
		if !first || reason == "" {
			reason = ReasonQueue
		}
		if first {
			short := Limit{}
			if reason == ReasonRule || reason == ReasonBudget {
				short = v.limit
			}
			s.lacks(c.lane, short)
		}
		var cancelled error
		s.unlocked(func() {
			if !told {
				told = true
				l.watch.waiting(c, req, reason, v)
			}
			began := now.mono
			err := nap(c, w, v, first, now)
			now = l.line.now()
			c.note(reason, time.Duration(now.mono-began))
			if err != nil {
				cancelled = c.cancelled(nil)
			}
		})
		if cancelled != nil {
			return Grant{}, cancelled
		}
		v.wait = 0 // what was foreseen is past; only the first in line knows better
		if q.head == w {
			v = l.look(c, w, s, now)
		}
		// Whoever has waited to the end of a bound and may go now, goes: a timer that came late is no reason to have waited in vain.
		if w.bound != 0 && now.mono >= w.bound && (w.late || q.head != w || v.wait > 0 || !s.free(l.rules, c.lane) || s.behind(c.lane, c.seq)) {
			w.refused = &verdict{reason: reason, limit: v.limit}
		}
	}
}

// look decides anew for the first in line. The scope is locked.
func (l *throttleLayer) look(c *call, w *waiter, s *scope, now instant) verdict {
	v := s.ledger.decide(now, l.local(c.lane), c.cost, 0)
	if rest := w.rest(now); v.wait < rest.wait {
		return rest
	}
	return v
}

// rest is what is left of the wait that a Budget named; to ask it earlier is to ask in vain.
func (w *waiter) rest(now instant) verdict {
	if d := time.Duration(w.notBefore - now.mono); d > 0 {
		return verdict{wait: d, reason: ReasonBudget, limit: w.denied}
	}
	return verdict{}
}

// claim takes what the first in line needs: concurrency slots, its own
// ledger's units, and a Budget's. The scope is locked, but not while a Budget
// is asked; whatever was taken is given back when something is denied.
func (l *throttleLayer) claim(c *call, req *http.Request, s *scope, now instant) (g Grant, denied verdict, err error) {
	if !s.free(l.rules, c.lane) {
		return g, verdict{wait: never, reason: ReasonConcurrency}, nil
	}
	l.spend(c, req, s, now)
	if l.budget == nil {
		return g, denied, nil
	}
	granted := false
	defer func() {
		if !granted {
			s.ledger.land(now, nil, c.cost, false)
			s.occupy(l.rules, c.lane, -1)
			s.wake()
		}
	}()
	s.unlocked(func() {
		g, err = l.budget.Take(c, s.onWire(req, l.throttle.Identity), c.lane.known, c.cost)
		now = l.line.now()
	})
	granted = err == nil && g.OK
	var limited *LimitError
	switch {
	case granted:
		c.sent = now
		return g, denied, nil
	case err == nil:
		return g, verdict{wait: max(g.Wait, time.Millisecond), reason: ReasonBudget, limit: binding(c.lane.known, g)}, nil
	case c.over() != nil:
		return g, denied, c.cancelled(err)
	case errors.As(err, &limited): // a store's name of the scope is not for people
		return g, denied, c.refuse(verdict{reason: limited.Reason, limit: limited.Limit, impossible: true}, now, "", false)
	default:
		return g, denied, &CallError{Info: c.info, Err: fmt.Errorf("the Budget gave no answer, so nothing was sent: %w", err)}
	}
}

// nap waits until there is something to look at: time passed, a signal, or the caller went away.
func nap(c *call, w *waiter, v verdict, first bool, now instant) error {
	d := never
	if first {
		d = min(v.wait, maxNap)
		if v.wait == never {
			d = time.Duration(overdue) // the answer that would tell may never come
		}
	}
	if w.bound != 0 {
		d = min(d, max(0, time.Duration(w.bound-now.mono)))
	}
	var clock <-chan time.Time
	if d != never {
		timer := time.NewTimer(d)
		defer timer.Stop()
		clock = timer.C
	}
	select {
	case <-w.signal:
		return nil
	case <-clock:
		return nil
	case <-c.Done():
	case <-c.gone:
	}
	return c.over()
}

// hopeless says that the wait ends after the waiter may go. That of a probe is
// no more than an upper bound: the first answer ends it.
func hopeless(v verdict, w *waiter, now instant) bool {
	if v.reason == ReasonProbe {
		return false
	}
	return w.bound != 0 && v.wait != never && v.wait > max(0, time.Duration(w.bound-now.mono))
}

func bound(w *waiter) string {
	if w.late {
		return "the caller's deadline"
	}
	return "its bound (Throttle.MaxWait or Call.MaxWait)"
}

func binding(known []Limit, g Grant) Limit {
	if g.Binding >= 0 && g.Binding < len(known) {
		return known[g.Binding]
	}
	return Limit{}
}

// refuse makes the error of a call that was not sent.
func (c *call) refuse(v verdict, now instant, bound string, deadline bool) error {
	e := &LimitError{Scope: c.scope.name, Reason: v.reason, Limit: v.limit, Info: c.info, deadline: deadline, bound: bound}
	if v.wait > 0 && v.wait < never && !v.impossible {
		e.within, e.RetryAt = v.wait, now.time().Add(v.wait)
	}
	return e
}
