package heed

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Retry says which failed calls are sent again. The zero value is on, with the
// defaults written on each field. It is configuration only, copied at first use.
//
// GET, HEAD, OPTIONS, TRACE, PUT, DELETE and QUERY are sent again after a
// failure (RFC 9110, 9.2.2); any method after a refusal by a rate limit or a
// connection that was never made, and when it carries Idempotency-Key or
// X-Idempotency-Key or is marked with [Call].Idempotent. A body is sent again
// through GetBody only; one without is streamed once. The waits that a server
// names are kept by [Throttle], for the whole scope; the pauses of failures
// without a named wait are Retry's own.
type Retry struct {
	// MaxAttempts bounds the sends of one call. Zero: 7, in which refusals by a
	// rate limit do not count. Positive: every send counts, 1 is one send. Negative: no retry.
	MaxAttempts int
	// BaseDelay is the first pause; it doubles each time. Zero: 1 s.
	BaseDelay time.Duration
	// MaxDelay caps the pauses, not the waits that a server names. Zero: 30 s.
	MaxDelay time.Duration
	// MaxWait bounds all waits of one call together. Where the next, named by a
	// server or a pause, would go beyond it, the answer is returned at once. Zero:
	// 65 minutes; negative: no bound.
	MaxWait time.Duration
	// Backoff makes the pauses of one call. Nil: exponential growth from
	// BaseDelay to MaxDelay, jittered over the upper half. backoff.Stop ends the call.
	Backoff func() backoff.BackOff
	// Statuses are the status codes worth another try. Nil: 408, 420, 425, 429,
	// 500, 502, 503, 504, 509 and 529, and 413 when it names a wait (RFC 9110,
	// 15.5.14). A refusal by a rate limit always is, but for one by an
	// allowance or a ban (KindQuota, KindBan) that names no wait.
	Statuses []int
	// Reserve is the retry budget of a scope: retries that may be spent without
	// a success. Each costs one unit, after a rate limit a tenth; each success
	// gives a tenth back. Zero: 10; negative: no budget.
	Reserve float64
}

const (
	defaultAttempts  = 7
	defaultBase      = time.Second
	defaultCap       = 30 * time.Second
	defaultMaxWait   = 65 * time.Minute
	defaultReserve   = 10.0
	reserveCeiling   = 100.0
	reservePerGood   = 0.1
	reserveThrottled = 0.1
)

var defaultStatuses = []int{408, 420, 425, 429, 500, 502, 503, 504, 509, 529}

// Stop is why a failed call is not sent again.
type Stop string

// Reasons to stop.
const (
	StopOff       Stop = "off"         // retrying is off
	StopNested    Stop = "nested"      // another heed above retries
	StopFinal     Stop = "final"       // neither status nor error promises better luck
	StopMethod    Stop = "method"      // the request may have had an effect
	StopBody      Stop = "body"        // the body cannot be sent twice
	StopAttempts  Stop = "attempts"    // MaxAttempts is reached
	StopWait      Stop = "wait"        // the wait is longer than the call may wait
	StopDeadline  Stop = "deadline"    // the caller's deadline comes before the wait ends
	StopBudget    Stop = "budget"      // the scope's retry budget is spent
	StopBackoff   Stop = "backoff"     // the BackOff said stop
	StopCancelled Stop = "cancelled"   // the caller went away
	StopRefused   Stop = "not-allowed" // the throttle refused to send
)

func (r *Retry) validate() (mistakes []error) {
	bad := func(format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("heed: Retry."+format, args...))
	}
	if r.BaseDelay < 0 {
		bad("BaseDelay is %v; give a positive pause, or 0 for %v", r.BaseDelay, defaultBase)
	}
	if r.MaxDelay < 0 {
		bad("MaxDelay is %v; give a positive cap, or 0 for %v", r.MaxDelay, defaultCap)
	}
	if r.Reserve != r.Reserve {
		bad("Reserve is not a number; give 0 for %v, or a negative one for no budget", defaultReserve)
	}
	for i, s := range r.Statuses {
		if s < 100 || s > 999 {
			bad("Statuses[%d] is %d, which is no status code", i, s)
		}
	}
	return mistakes
}

func (r *Retry) curve(random func() float64) backoff.BackOff {
	if r.Backoff != nil {
		if b := r.Backoff(); b != nil {
			return b
		}
	}
	c := &curve{base: r.BaseDelay, cap: r.MaxDelay, random: random}
	if c.base <= 0 { // below zero only in Call.Retry, which nobody validates
		c.base = defaultBase
	}
	if c.cap <= 0 {
		c.cap = defaultCap
	}
	return c
}

// outcome is one attempt's end, as the decision needs it.
type outcome struct {
	status  int   // 0: no answer
	err     error // nil: an answer came
	limited bool
	final   bool          // refused by an allowance or a ban, and no wait named: time alone changes nothing
	unsent  bool          // provably: the connection was never made
	held    bool          // the throttle holds the whole scope for it
	told    time.Duration // the wait that the server named, 0: none
}

// traits are what the decision needs of a request.
type traits struct {
	idempotent, replayable bool
	misfit                 bool // no transport will ever send it
}

// judge decides whether to try again, apart from waits and budgets: pure.
func (r *Retry) judge(t traits, o outcome, counted, sends int) (stop Stop) {
	switch {
	case r.MaxAttempts < 0:
		return StopOff
	case o.err != nil && (t.misfit || permanent(o.err)):
		return StopFinal
	case o.err == nil && (o.final || !o.limited && !r.retryable(o)):
		return StopFinal
	case !t.idempotent && !o.limited && !o.unsent:
		return StopMethod
	case !t.replayable:
		return StopBody
	case r.MaxAttempts > 0 && sends >= r.MaxAttempts,
		r.MaxAttempts == 0 && !o.limited && counted >= defaultAttempts:
		return StopAttempts
	}
	return ""
}

// retryable says that an answer's status is worth another try.
func (r *Retry) retryable(o outcome) bool {
	if r.Statuses != nil {
		return slices.Contains(r.Statuses, o.status)
	}
	return o.status >= 400 && slices.Contains(defaultStatuses, o.status) || o.status == http.StatusRequestEntityTooLarge && o.told > 0
}

// retryLayer sends a call until it succeeds or there is a reason to stop. It
// holds no lock and no slot while it waits.
type retryLayer struct {
	next   layer
	retry  Retry
	random func() float64
	clones bool // Base may write to a header map
	meter  *throttleLayer
	watch  *watch
}

func (l *retryLayer) name() string { return "Retry" }

func (l *retryLayer) roundTrip(c *call, req *http.Request) (*http.Response, error) {
	policy := &l.retry
	if c.wishes.Retry != nil {
		policy = c.wishes.Retry
	}
	if policy.MaxAttempts < 0 && !c.nested {
		c.above.Store(false) // a heed below may retry what this one does not
	}
	var pauses backoff.BackOff
	var past error // the last real failure
	counted := 0   // sends that were no refusals
	for {
		attempt, err := l.attempt(c, req)
		if err != nil {
			c.info.Stopped = StopBody
			return nil, l.final(c, req, nil, join(err, past))
		}
		before := c.info.Attempts
		resp, err := l.send(c, attempt)
		if err != nil && c.info.Attempts == before {
			if c.info.Stopped = unsentWhy(c, err); c.info.Stopped == StopCancelled {
				err = c.cancelled(past)
			}
			return nil, l.final(c, req, nil, err)
		}
		o := c.outcome(resp, err)
		if !o.limited {
			counted++
		}
		if !l.failed(o, policy) {
			l.meter.succeeded(c, policy)
			return resp, nil
		}
		if o.err != nil && c.over() != nil {
			c.info.Stopped = StopCancelled
			return nil, l.final(c, req, nil, c.cancelled(join(err, past)))
		}
		stop := l.stop(c, req, policy, o, counted)
		var pause time.Duration
		if stop == "" {
			pause, stop = l.pause(c, policy, o, &pauses)
		}
		if stop == "" && !l.meter.afford(c, policy, o.limited) {
			stop = StopBudget
		}
		if stop != "" {
			c.info.Stopped = stop
			return resp, l.final(c, req, resp, err)
		}
		l.watch.retrying(c, req, o, pause)
		discard(resp)
		past = o.cause()
		if err := c.sleep(pause, ReasonBackoff); err != nil {
			c.info.Stopped = StopCancelled
			return nil, l.final(c, req, nil, c.cancelled(past))
		}
	}
}

// send passes one attempt down. Whoever panics there has not closed its body.
func (l *retryLayer) send(c *call, attempt *http.Request) (*http.Response, error) {
	returned := false
	defer func() {
		if !returned {
			closeBody(attempt)
		}
	}()
	resp, err := l.next.roundTrip(c, attempt)
	returned = true
	return resp, err
}

// unsentWhy is why an attempt did not come as far as Base.
func unsentWhy(c *call, err error) Stop {
	switch {
	case errors.Is(err, ErrLimited):
		return StopRefused
	case c.over() != nil:
		return StopCancelled
	case errors.Is(err, errScheme):
		return StopFinal
	}
	return StopRefused
}

// failed says whether there is anything to decide about.
func (l *retryLayer) failed(o outcome, policy *Retry) bool {
	return o.err != nil || o.limited || policy.retryable(o) || o.status >= 500
}

// stop decides whether to go on, apart from waiting.
func (l *retryLayer) stop(c *call, req *http.Request, policy *Retry, o outcome, counted int) Stop {
	if c.nested {
		return StopNested
	}
	t := traits{
		idempotent: c.wishes.Idempotent || idempotent(req),
		replayable: req.Body == nil || req.Body == http.NoBody || req.GetBody != nil,
		misfit:     o.err != nil && misfit(req, o.err),
	}
	return policy.judge(t, o, counted, c.info.Attempts)
}

// pause is the wait before the next send that is Retry's own, and whether all
// the waits ahead are more than the call may wait: then nothing is begun, and
// the answer in hand stays readable.
func (l *retryLayer) pause(c *call, policy *Retry, o outcome, pauses *backoff.BackOff) (own time.Duration, stop Stop) {
	// The throttle holds the whole scope after a refusal, and after an overload that names a wait.
	ahead := l.meter.foresee(c)
	if ahead == 0 || !o.held {
		if *pauses == nil {
			*pauses = policy.curve(l.random)
		}
		own = (*pauses).NextBackOff()
		if own == backoff.Stop {
			return 0, StopBackoff
		}
		own = max(own, onTop(o.told, l.random()))
	}
	left, bounded, deadline := c.patience(policy.MaxWait, defaultMaxWait)
	switch wait := max(own, ahead); {
	case bounded && deadline && wait >= left:
		return 0, StopDeadline
	case bounded && wait > left:
		return 0, StopWait
	}
	// What is left of the wait after the pause is the throttle's, which has a bound of its own.
	left, bounded, _ = c.patience(l.meter.throttle.MaxWait, defaultMaxWait)
	if ahead > own && (bounded && ahead > left || l.meter.throttle.MaxQueue < 0) {
		return 0, StopWait
	}
	return own, ""
}

// attempt makes the request of one send: a header map of its own where the
// base might write to it, a fresh body from the second send on.
func (l *retryLayer) attempt(c *call, req *http.Request) (*http.Request, error) {
	o := &c.first
	if c.info.Attempts > 0 {
		o = new(outgoing) // the first may still be read below
	}
	r := o.copy(c, req, l.clones)
	if c.info.Attempts > 0 && req.GetBody != nil && req.Body != nil && req.Body != http.NoBody {
		body, err := req.GetBody()
		if err != nil {
			return nil, fmt.Errorf("the request's GetBody failed: %w", err)
		}
		r.Body = body
	}
	return r, nil
}

// final gives a failed call its last error; an answer has none.
func (l *retryLayer) final(c *call, req *http.Request, resp *http.Response, err error) error {
	l.watch.gaveUp(c, req, resp, err)
	if err == nil || resp != nil {
		return nil
	}
	var limited *LimitError
	var failed *CallError
	if noTLS, ok := err.(tls.RecordHeaderError); ok && string(noTLS.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch // as http.Client has it, which cannot see through a CallError
	}
	switch {
	case errors.As(err, &limited):
		limited.Info = c.info
		return err
	case errors.As(err, &failed):
		failed.Info = c.info
		return err
	}
	return &CallError{Info: c.info, Err: err}
}

// outcome reads what the layers below left in the call.
func (c *call) outcome(resp *http.Response, err error) outcome {
	o := outcome{err: err}
	if resp == nil {
		o.unsent = unsent(err)
		return o
	}
	o.status, o.limited = resp.StatusCode, c.feedback.Limited
	if at := c.feedback.RetryAt; !at.IsZero() {
		o.told = max(0, time.Until(at))
	}
	c.info.Status, c.info.Asked = o.status, o.told
	switch c.feedback.Kind {
	case KindQuota, KindBan:
		o.final = o.limited && !c.feedback.RetryAt.After(c.received)
	}
	o.held = o.limited || o.told > 0 && c.feedback.Kind == KindOverload
	return o
}

// cause is what is worth keeping of an attempt when the wait after it is cancelled.
func (o outcome) cause() error {
	if o.err != nil {
		return o.err
	}
	return &statusError{o.status}
}

// sleep waits, and gives an error when the caller went away.
func (c *call) sleep(d time.Duration, reason Reason) error {
	if d <= 0 {
		return c.over()
	}
	began := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.Done():
	case <-c.gone:
	}
	c.note(reason, time.Since(began))
	return c.over()
}
