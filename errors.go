package heed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrLimited is what every [LimitError] is: the call was not sent, because a
// limit would have made it wait longer than it may, or for ever.
var ErrLimited = errors.New("heed: limited")

// LimitError says that a call was refused here, before it was sent, because of
// a limit. It Is [ErrLimited]; it Is context.DeadlineExceeded, and Timeout
// reports true, when the caller's own deadline is why it may not wait.
type LimitError struct {
	// Scope is who shares the limit: scheme, host, and a short hash that tells credentials apart.
	Scope string
	// Reason is what it would have waited for.
	Reason Reason
	// Limit is the binding limit. Zero: the reason is not a limit.
	Limit Limit
	// RetryAt is when it would have gone, as far as is known. Zero: not known, or never.
	RetryAt time.Time
	// Info is what had happened to the call until then.
	Info Info

	deadline bool
	bound    string
	within   time.Duration
}

// Error says what was refused, why, and what to do.
func (e *LimitError) Error() string {
	var b strings.Builder
	b.WriteString("heed: ")
	if e.Scope != "" {
		b.WriteString(e.Scope + ": ")
	}
	b.WriteString("not sent: ")
	switch e.Reason {
	case ReasonImpossible:
		fmt.Fprintf(&b, "the cost is more than %s ever allows; split the call or correct its cost", e.Limit.describe())
		return b.String()
	case ReasonQueue:
		if e.bound == "" {
			b.WriteString("the queue is full; send less at once or raise Throttle.MaxQueue")
			return b.String()
		}
		b.WriteString("must wait for others of the scope")
	case ReasonHold:
		b.WriteString("the server asked for a wait")
	case ReasonLimit, ReasonPace, ReasonRule:
		fmt.Fprintf(&b, "%s is used up", e.Limit.describe())
	case "":
		b.WriteString("it must wait")
	default:
		fmt.Fprintf(&b, "it must wait (%s)", e.Reason)
	}
	if e.within > 0 {
		fmt.Fprintf(&b, " for another %v", e.within.Round(time.Millisecond))
	}
	switch {
	case e.bound == "":
	case e.within > 0:
		fmt.Fprintf(&b, ", which is past %s", e.bound)
	default:
		fmt.Fprintf(&b, ", and the wait would go past %s", e.bound)
	}
	if e.RetryAt.IsZero() {
		b.WriteString("; send less at once, or let it wait longer")
		return b.String()
	}
	whole := e.RetryAt.UTC().Add(time.Second - 1).Truncate(time.Second) // never too early
	fmt.Fprintf(&b, "; try again after %s", whole.Format(time.RFC3339))
	return b.String()
}

// Is reports whether the error is target: ErrLimited, or context.DeadlineExceeded when a deadline is why.
func (e *LimitError) Is(target error) bool {
	return target == ErrLimited || e.deadline && target == context.DeadlineExceeded
}

// Timeout reports whether the caller's deadline is why, as net.Error has it.
func (e *LimitError) Timeout() bool { return e.deadline }

// describe names a limit for a person.
func (l Limit) describe() string {
	unit := l.Unit
	if unit == "" {
		unit = UnitRequests
	}
	s := "the limit"
	if l.Name != "" {
		s = fmt.Sprintf("the limit %q", l.Name)
	}
	if l.Quota > 0 {
		s += fmt.Sprintf(" of %g %s", l.Quota, unit)
		if l.Window > 0 {
			s += fmt.Sprintf(" per %v", l.Window)
		}
	}
	return s
}

// CallError is any other end of a call without a response: the last failure,
// or the cancellation of a wait, with what had happened until then.
type CallError struct {
	Info Info
	// Err is why. After a cancelled wait it holds the context's cause and the
	// last real failure, both findable with errors.Is and errors.As.
	Err error
}

// Error gives the cause, and the number of sends when there were several.
func (e *CallError) Error() string {
	if e.Err == nil {
		return "heed: the call failed for a reason that nobody gave"
	}
	if e.Info.Attempts > 1 {
		return fmt.Sprintf("heed: after %d sends: %v", e.Info.Attempts, e.Err)
	}
	return e.Err.Error()
}

// Unwrap gives Err.
func (e *CallError) Unwrap() error { return e.Err }

// Timeout reports whether the cause was a timeout, as net.Error has it.
func (e *CallError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// statusError is an answer that a call was still waiting to retry when it was
// cancelled; it keeps the status findable in the error.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("the last answer had status %d", e.status) }
