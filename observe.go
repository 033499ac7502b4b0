package heed

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Event is what a hook of [Observer] is told. Fields that do not apply are
// zero. It holds no secret: no header, user info or query.
type Event struct {
	// Context is the caller's.
	Context context.Context
	Method  string
	// URL is scheme, host and path alone.
	URL string
	// Scope is who shares the limits; see [LimitError.Scope].
	Scope string
	// Attempt counts sends from 1; in Waiting it is the send that waits.
	Attempt int
	// Status of the answer; 0: there was none.
	Status int
	// Reason of a wait or a stop.
	Reason Reason
	// Stop is why a failed call is not sent again.
	Stop Stop
	// Wait is how long is or was waited, or how long a scope is held.
	Wait time.Duration
	// Took is the time from send to answer.
	Took time.Duration
	// Reading is a limit as an answer reports it; in Waiting its Limit is the one that binds.
	Reading Reading
	// Limited says that a limit refused the request.
	Limited bool
	// Cache is the outcome, in the words of [Info.Cache].
	Cache string
	// Err is the failure.
	Err error
}

// Observer is a struct of optional hooks, in the manner of
// httptrace.ClientTrace. Hooks run in the calling goroutine, outside every
// lock, and may run concurrently for different calls; a slow hook slows its
// own call. A hook must not wait for another call of the same scope, which may
// stand in line behind the one that the hook is told of. A nil Observer and a nil hook cost nothing.
type Observer struct {
	// Waiting fires when a call begins to wait, with the reason and the wait as foreseen.
	Waiting func(Event)
	// Sent fires just before each send.
	Sent func(Event)
	// Answered fires after each answer or failure of a send.
	Answered func(Event)
	// LimitSeen fires for each limit that an answer reports.
	LimitSeen func(Event)
	// Held fires when an answer puts its whole scope on hold.
	Held func(Event)
	// Retrying fires when a call is going to be sent again, with the pause before it.
	Retrying func(Event)
	// GaveUp fires when a failed call is not sent again, with the reason.
	GaveUp func(Event)
	// Cached fires once for each call that asked the cache, with the outcome.
	Cached func(Event)
}

// event makes the part that all events of a call share.
func (c *call) event(req *http.Request) Event {
	e := Event{Context: c.Context, Method: req.Method, URL: redact(req.URL), Attempt: c.info.Attempts}
	if c.scope != nil {
		e.Scope = c.scope.name
	}
	return e
}

// redact keeps of a URL what is no secret: scheme, host and path.
func redact(u *url.URL) string {
	if u == nil {
		return ""
	}
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return clean.String()
}
