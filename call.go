package heed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// Call is what one request wishes; see [WithCall]. The zero value wishes nothing.
type Call struct {
	// Cost is what the request spends. Zero: what its Rule says, else one
	// request. With a part that is negative or not a number the call fails unsent.
	Cost Cost
	// MaxWait bounds all waits of the call together. Zero: the Transport's bounds; negative: only the context.
	MaxWait time.Duration
	// Scope names who shares the request's limits, in place of its host and credential.
	Scope string
	// Idempotent says that the request may safely be sent twice, whatever its method.
	Idempotent bool
	// NoCache passes the cache by: nothing is answered from it and nothing stored.
	NoCache bool
	// Retry replaces the Transport's Retry. Nil: the Transport's.
	Retry *Retry
}

type wishKey struct{}

// WithCall returns a context that carries wishes for the requests made with
// it. It merges: zero fields of c keep what ctx already has. On a redirect to
// another origin Scope, Cost and Idempotent no longer apply.
func WithCall(ctx context.Context, c Call) context.Context {
	if old, ok := ctx.Value(wishKey{}).(*Call); ok {
		if c.Cost == (Cost{}) {
			c.Cost = old.Cost
		}
		if c.MaxWait == 0 {
			c.MaxWait = old.MaxWait
		}
		if c.Scope == "" {
			c.Scope = old.Scope
		}
		c.Idempotent = c.Idempotent || old.Idempotent
		c.NoCache = c.NoCache || old.NoCache
		if c.Retry == nil {
			c.Retry = old.Retry
		}
	}
	return context.WithValue(ctx, wishKey{}, &c)
}

// Wait is one cause of waiting and how long it took.
type Wait struct {
	Reason Reason
	For    time.Duration
}

// Info is what happened to one call.
type Info struct {
	// Scope is who shares its limits, as in [LimitError]. Empty: it never came to the throttle.
	Scope string
	// Attempts is how often it was sent. Zero: answered from the cache, or refused before.
	Attempts int
	// Waits are the causes of waiting, summed by cause; together they are the time it waited.
	Waits []Wait
	// Status is that of the last answer, also of one that was thrown away to
	// try again. Zero: there was none.
	Status int
	// Cache is "hit", "revalidated", "stored", "bypass" or "miss". Empty: no cache was asked.
	Cache string
	// Stopped is why a failed call was not sent again. Empty: it did not fail.
	Stopped Stop
	// Asked is the wait that the last answer asked for. Zero: none.
	Asked time.Duration
}

// Waited is the sum of all waits.
func (i Info) Waited() (d time.Duration) {
	for _, w := range i.Waits {
		d += w.For
	}
	return d
}

// InfoOf tells what happened to the call that resp answers. It is the zero Info when resp did not come through heed.
func InfoOf(resp *http.Response) Info {
	if resp == nil || resp.Request == nil {
		return Info{}
	}
	if c, ok := resp.Request.Context().Value(callKey{}).(*call); ok {
		return c.info
	}
	return Info{}
}

// InfoOfError tells what happened to the call that ended in err, through any wrapping.
func InfoOfError(err error) Info {
	var limited *LimitError
	if errors.As(err, &limited) {
		return limited.Info
	}
	var failed *CallError
	if errors.As(err, &failed) {
		return failed.Info
	}
	return Info{}
}

type callKey struct{}

// call is the state of one RoundTrip. It is the context of the requests sent
// for it, so that a response finds its Info with no allocation of its own.
type call struct {
	context.Context
	wishes *Call  // never nil; read only
	seq    uint64 // order of arrival, kept by retries
	cost   Cost
	info   Info
	waited time.Duration
	nested bool            // an outer heed retries already
	above  atomic.Bool     // what is below has a heed above it: true until RoundTrip returns
	gone   <-chan struct{} // Request.Cancel: some callers still cancel by it

	// Of the current attempt.
	scope    *scope
	lane     *lane
	sent     instant
	received time.Time // when Base had ended
	feedback Feedback
	readings [1]Reading // room for what nearly every answer says

	first outgoing // of the first attempt; part of the call, since nearly every call needs just one
}

// unwished is what most calls wish. Nobody writes to it.
var unwished Call

// Value answers for the call itself and asks the caller's context for all else.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// begin makes the state of one RoundTrip.
func begin(req *http.Request, seq uint64) *call {
	ctx := req.Context()
	//lint:ignore SA1019 some callers, http.Client.Timeout among them, still cancel by it
	c := &call{Context: ctx, seq: seq, wishes: &unwished, gone: req.Cancel}
	if w, ok := ctx.Value(wishKey{}).(*Call); ok {
		c.wishes = w
		if crossed(req) {
			less := *w
			less.Scope, less.Cost, less.Idempotent = "", Cost{}, false
			c.wishes = &less
		}
	}
	if outer, ok := ctx.Value(callKey{}).(*call); ok && outer.above.Load() {
		c.nested = true
	}
	c.above.Store(true)
	return c
}

// crossed says that req is a redirect hop to another origin than the call began at.
func crossed(req *http.Request) bool {
	first := req
	for range 64 {
		if first.Response == nil || first.Response.Request == nil {
			break
		}
		first = first.Response.Request
	}
	if first.URL == nil {
		return true
	}
	return first.URL.Scheme != req.URL.Scheme || first.URL.Host != req.URL.Host
}

// note adds a wait to the call's account.
func (c *call) note(reason Reason, d time.Duration) {
	if d <= 0 {
		return
	}
	c.waited += d
	for i := range c.info.Waits {
		if c.info.Waits[i].Reason == reason {
			c.info.Waits[i].For += d
			return
		}
	}
	c.info.Waits = append(c.info.Waits, Wait{reason, d})
}

// patience is how much longer the call may wait in a layer whose own bound is
// limit, and whether the caller's deadline is the nearer bound. bounded is
// false when nothing but cancellation ends the wait.
func (c *call) patience(limit, standard time.Duration) (left time.Duration, bounded, deadline bool) {
	if c.wishes.MaxWait != 0 {
		limit = c.wishes.MaxWait
	}
	if limit == 0 {
		limit = standard
	}
	if limit > 0 {
		left, bounded = max(0, limit-c.waited), true
	}
	if at, ok := c.Deadline(); ok {
		if d := time.Until(at); !bounded || d < left {
			return d, true, true
		}
	}
	return left, bounded, false
}

// errGone is the end of a call by its Request.Cancel.
var errGone = fmt.Errorf("the request's Cancel channel was closed: %w", context.Canceled)

// over says that the caller went away; nil while it has not.
func (c *call) over() error {
	if err := c.Err(); err != nil {
		return err
	}
	select {
	case <-c.gone:
	default:
		return nil
	}
	if at, ok := c.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded // http.Client.Timeout ends both, in any order
	}
	return errGone
}

// cancelled gives the error of a call that is over: why it ended, and the last
// real failure, each once.
func (c *call) cancelled(last error) error {
	ended, cause := c.over(), context.Cause(c.Context)
	if cause == nil {
		cause = ended
	}
	err := last
	if !errors.Is(last, cause) {
		err = join(cause, last)
	}
	if ended != nil && !errors.Is(err, ended) {
		err = errors.Join(ended, err)
	}
	return &CallError{Info: c.info, Err: err}
}

// join is errors.Join that leaves a single error as it is.
func join(err, last error) error {
	if last == nil {
		return err
	}
	return errors.Join(err, last)
}
