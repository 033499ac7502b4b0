package heed

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Throttle waits before a limit is hit rather than after. The zero value
// learns every limit that answers report and obeys it; Rules add what is known
// beforehand. It is configuration only, copied at first use.
//
// Calls of one scope go in order of arrival. A call that could not go within
// its bound or its deadline is refused at once, with a [LimitError].
type Throttle struct {
	// MaxWait bounds all waits of one call together. Zero: 65 minutes; negative: only the context bounds them.
	MaxWait time.Duration
	// MaxQueue bounds the waiters of one scope. Zero: 100,000; negative: nobody waits, whoever would have to is refused.
	MaxQueue int
	// Rules are limits known beforehand. All that match a request apply.
	Rules []Rule
	// Identity names who asks, in place of the credential that a request
	// carries, for instance the user behind rotating tokens. It is called for
	// each send, must be safe for concurrent use, and its result is kept only as a hash. Nil: the credential.
	Identity func(*http.Request) string
}

const defaultMaxQueue = 100_000

// maxNap bounds one sleep, so that a step of the wall clock is noticed.
const maxNap = 30 * time.Second

func (t *Throttle) validate() (rules, error) { return compileRules(t.Rules) }

// throttleLayer makes every send wait its turn under all limits known for its
// scope, and then pays. It reads the clock; the ledger decides.
type throttleLayer struct {
	next     layer
	throttle Throttle
	rules    rules
	scopes   *scopes
	budget   Budget
	seed     maphash.Seed
	line     timeline
	random   func() float64
	watch    *watch
}

func (l *throttleLayer) name() string { return "Throttle" }

func (l *throttleLayer) roundTrip(c *call, req *http.Request) (*http.Response, error) {
	if bad := unsendable(req); bad != nil {
		closeBody(req)
		return nil, bad
	}
	s := l.scopes.get(keyOf(req, c, l.throttle.Identity, l.seed), l.line.now)
	c.scope, c.info.Scope = s, s.name
	var hits []int
	if len(l.rules) > 0 {
		hits = l.rules.match(req)
	}
	grant, err := l.admit(c, req, s, hits)
	if err != nil {
		closeBody(req)
		return nil, err
	}
	c.info.Attempts++
	l.watch.sent(c, req)
	resp, err := l.send(c, req, grant)
	if c.lane.bounded {
		if resp == nil {
			l.leave(s, c.lane)
		} else {
			l.lend(resp, s, c.lane)
		}
	}
	return resp, err
}

// unsendable refuses what no transport can send, before it costs anything.
func unsendable(req *http.Request) error {
	if req.URL == nil || req.URL.Host == "" || req.URL.Scheme == "" {
		return errScheme
	}
	return nil
}

// send passes the request down. Whatever happens there, the flight ends.
func (l *throttleLayer) send(c *call, req *http.Request, grant Grant) (resp *http.Response, err error) {
	landed := false
	defer func() {
		if !landed { // a panic below
			l.land(c, grant, true)
		}
	}()
	c.feedback = Feedback{}
	resp, err = l.next.roundTrip(c, req)
	landed = true
	l.land(c, grant, err == nil || !unsent(err))
	return resp, err
}

// land books the end of a flight: what it cost, and what the answer said.
func (l *throttleLayer) land(c *call, grant Grant, charged bool) {
	now := l.line.now()
	s, fb := c.scope, &c.feedback
	random := 0.0
	if fb.Limited || fb.Kind != KindNone {
		random = l.random()
	}
	s.mu.Lock()
	s.ledger.land(now, l.local(c.lane), c.cost, charged)
	held := s.ledger.learn(c.sent, now, fb, random)
	if held > 0 {
		for _, q := range s.lanes {
			q.queue.dismiss(s.ledger.hold, verdict{wait: held, reason: ReasonHold})
		}
	}
	s.wake()
	s.mu.Unlock()
	if held > 0 {
		l.watch.held(c, held)
	}
	if l.budget != nil {
		used := c.cost
		if !charged {
			used = Cost{}
		}
		ctx := context.WithoutCancel(c.Context)
		_ = l.budget.Settle(ctx, grant, used)
		if fb.Limited || !fb.RetryAt.IsZero() || len(fb.Readings) > 0 {
			word := *fb
			word.Sent = c.sent.time()
			_ = l.budget.Learn(ctx, s.wire, word)
		}
	}
}

// local is the known limits that this Transport's own ledger counts: none when a Budget does.
func (l *throttleLayer) local(q *lane) []Limit {
	if l.budget != nil {
		return nil
	}
	return q.known
}

// admit waits until the call may be sent, and spends.
func (l *throttleLayer) admit(c *call, req *http.Request, s *scope, hits []int) (Grant, error) {
	if err := context.Cause(c.Context); err != nil {
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
	if q.queue.n == 0 && l.budget == nil && s.free(l.rules, q) {
		if v := s.ledger.decide(now, q.known, c.cost, 0); v.wait == 0 && !v.impossible {
			l.spend(c, req, s, now)
			s.mu.Unlock()
			return Grant{}, nil
		}
	}
	return l.wait(c, req, s, now)
}

// spend books a send that may go now. The scope is locked.
func (l *throttleLayer) spend(c *call, req *http.Request, s *scope, now instant) {
	s.ledger.spend(now, l.local(c.lane), c.cost, quiet(req))
	s.occupy(l.rules, c.lane, 1)
	c.sent = now
}

// quiet sends are not waited for by newcomers: their answers may take for ever.
func quiet(req *http.Request) bool {
	streams := req.Body != nil && req.ContentLength < 0
	accept := req.Header["Accept"]
	return streams || len(accept) > 0 && strings.Contains(accept[0], "text/event-stream")
}

// wait is the way in for whoever cannot go at once. It is entered with the scope locked, and leaves it unlocked.
func (l *throttleLayer) wait(c *call, req *http.Request, s *scope, now instant) (Grant, error) {
	q := &c.lane.queue
	most := l.throttle.MaxQueue
	if most == 0 {
		most = defaultMaxQueue
	}
	if q.n >= most {
		v := s.ledger.decide(now, l.local(c.lane), c.cost, q.n)
		v.reason = ReasonQueue
		s.mu.Unlock()
		return Grant{}, c.refuse(v, now, time.Duration(0), "the queue's bound", false)
	}
	w := &waiter{seq: c.seq, signal: make(chan struct{}, 1)}
	left, bounded, deadline := c.patience(l.throttle.MaxWait, defaultMaxWait)
	if bounded {
		w.bound, w.late = now.mono+int64(left), deadline
	}
	ahead := q.insert(w)
	v := s.ledger.decide(now, l.local(c.lane), c.cost, ahead)
	told := false
	var notBefore int64 // what the Budget said
	for {
		if w.refused != nil {
			v = *w.refused
		}
		if v.reason == ReasonPace && hopeless(v, w, now) {
			v = verdict{} // there are units: spreading them gives way to a deadline
		}
		if v.impossible || w.refused != nil || hopeless(v, w, now) {
			q.remove(w)
			s.mu.Unlock()
			return Grant{}, c.refuse(v, now, v.wait, bound(w), w.late)
		}
		first := q.head == w
		if first && v.wait == 0 && !s.free(l.rules, c.lane) {
			v = verdict{wait: never, reason: ReasonConcurrency}
		}
		if first && v.wait == 0 {
			l.spend(c, req, s, now)
			if l.budget == nil {
				q.remove(w)
				s.mu.Unlock()
				return Grant{}, nil
			}
			s.mu.Unlock()
			grant, err := l.budget.Take(c, s.onWire(req, l.throttle.Identity), c.lane.known, c.cost)
			now = l.line.now()
			s.mu.Lock()
			if err == nil && grant.OK {
				c.sent = now
				q.remove(w)
				s.mu.Unlock()
				return grant, nil
			}
			s.ledger.land(now, nil, c.cost, false)
			s.occupy(l.rules, c.lane, -1)
			s.wake()
			if err != nil {
				q.remove(w)
				s.mu.Unlock()
				if ended := c.Err(); ended != nil {
					return Grant{}, c.cancelled(err)
				}
				return Grant{}, &CallError{Info: c.info, Err: fmt.Errorf("the Budget gave no answer, so nothing was sent: %w", err)}
			}
			v = verdict{wait: max(grant.Wait, time.Millisecond), reason: ReasonBudget, limit: binding(c.lane.known, grant)}
			notBefore = now.mono + int64(v.wait)
			if hopeless(v, w, now) {
				continue
			}
		}
		s.mu.Unlock()
		reason := v.reason
		if !first || reason == "" {
			reason = ReasonQueue
		}
		if !told {
			told = true
			l.watch.waiting(c, req, reason, v)
		}
		began := now.mono
		err := nap(c, w, v, first, now)
		now = l.line.now()
		c.note(reason, time.Duration(now.mono-began))
		s.mu.Lock()
		if err != nil {
			q.remove(w)
			s.mu.Unlock()
			return Grant{}, c.cancelled(nil)
		}
		if w.bound != 0 && now.mono >= w.bound {
			w.refused = &verdict{reason: reason, limit: v.limit}
			continue
		}
		v.wait = 0 // as foreseen at the start; only the first in line knows better
		if q.head == w {
			v = s.ledger.decide(now, l.local(c.lane), c.cost, 0)
			if d := time.Duration(notBefore - now.mono); v.wait < d {
				v = verdict{wait: d, reason: ReasonBudget, limit: v.limit}
			}
		}
	}
}

// nap waits until there is something to look at: time passed, a signal, or the caller went away.
func nap(c *call, w *waiter, v verdict, first bool, now instant) error {
	d := never
	if first {
		d = min(v.wait, maxNap)
		if v.wait == never {
			d = never
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
		return c.Err()
	}
}

// hopeless says that the wait ends after the waiter may go.
func hopeless(v verdict, w *waiter, now instant) bool {
	return w.bound != 0 && v.wait != never && v.wait > time.Duration(w.bound-now.mono)
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
func (c *call) refuse(v verdict, now instant, within time.Duration, bound string, deadline bool) error {
	e := &LimitError{Scope: c.scope.name, Reason: v.reason, Limit: v.limit, Info: c.info, deadline: deadline, bound: bound}
	if within > 0 && within < never {
		e.within, e.RetryAt = within, now.time().Add(within)
	}
	return e
}

// leave gives back a concurrency slot.
func (l *throttleLayer) leave(s *scope, q *lane) {
	s.mu.Lock()
	s.occupy(l.rules, q, -1)
	s.wake()
	s.mu.Unlock()
}

// lend keeps a concurrency slot until the body ends: at its end, an error, or Close.
func (l *throttleLayer) lend(resp *http.Response, s *scope, q *lane) {
	if resp.Body == nil || resp.Body == http.NoBody {
		l.leave(s, q)
		return
	}
	held := slot{ReadCloser: resp.Body, leave: sync.OnceFunc(func() { l.leave(s, q) })}
	if rw, ok := resp.Body.(io.ReadWriteCloser); ok { // 101 and CONNECT
		resp.Body = &duplexSlot{held, rw}
		return
	}
	resp.Body = &held
}

type slot struct {
	io.ReadCloser
	leave func()
}

func (b *slot) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.leave()
	}
	return n, err
}

func (b *slot) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}

type duplexSlot struct {
	slot
	io.Writer
}

// foresee is how long the call's scope would make it wait now.
func (l *throttleLayer) foresee(c *call) time.Duration {
	if c.scope == nil {
		return 0
	}
	now := l.line.now()
	c.scope.mu.Lock()
	defer c.scope.mu.Unlock()
	v := c.scope.ledger.decide(now, l.local(c.lane), c.cost, 0)
	if v.wait == never || v.reason == ReasonProbe {
		return 0
	}
	return v.wait
}
