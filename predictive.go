package heed

import (
	"context"
	"hash/maphash"
	"net/http"
	"time"
)

// Throttle waits before a limit is hit rather than after. The zero value
// learns every limit that answers report and obeys it; Rules add what is known
// beforehand. It is configuration only, copied at first use.
//
// Calls of one scope that match the same Rules go in order of arrival. A call
// that cannot go within its bound or its deadline is refused as soon as that
// can be foreseen, with a [LimitError].
type Throttle struct {
	// MaxWait bounds all waits of one call together. Zero: 65 minutes; negative: only the context bounds them.
	MaxWait time.Duration
	// MaxQueue bounds the waiters of one scope that match the same Rules. Zero: 100,000; negative: nobody waits, whoever would have to is refused.
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
	return l.send(c, req, grant)
}

// unsendable refuses what no transport can send, before it costs anything.
func unsendable(req *http.Request) error {
	if req.URL == nil || req.URL.Host == "" || req.URL.Scheme == "" {
		return errScheme
	}
	return nil
}

// send passes the request down. Whatever happens there, a panic included, the
// flight ends, and a slot is given back or lent to the answer's body.
func (l *throttleLayer) send(c *call, req *http.Request, grant Grant) (resp *http.Response, err error) {
	charged := true
	landed := false
	defer func() {
		if !landed && resp != nil { // a Budget or a hook panicked, so nobody is ever given the answer
			resp.Body.Close()
			resp = nil
		}
		if c.lane.bounded {
			l.lend(resp, c.scope, c.lane)
		}
	}()
	defer func() {
		l.land(c, grant, charged)
		landed = true
	}()
	c.feedback, c.received = Feedback{}, time.Time{}
	c.info.Attempts++
	l.watch.sent(c, req)
	resp, err = l.next.roundTrip(c, req)
	charged = err == nil || !unsent(err)
	return resp, err
}

// land books the end of a flight: what it cost, and what the answer said.
func (l *throttleLayer) land(c *call, grant Grant, charged bool) {
	if c.received.IsZero() { // a panic below
		c.received = time.Now()
	}
	now := l.line.at(c.received)
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
	wire := s.wire
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
			_ = l.budget.Learn(ctx, wire, word)
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

// foresee is how long the call's scope would make it wait now. Spreading the
// last units gives way to a bound here as it does in wait.
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
	if v.reason == ReasonPace && l.throttle.MaxQueue >= 0 {
		if left, bounded, _ := c.patience(l.throttle.MaxWait, defaultMaxWait); bounded && v.wait > left {
			return 0
		}
	}
	return v.wait
}
