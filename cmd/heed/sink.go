package main

import "fmt"

// sink is where bodies go. Safe for concurrent use.
type sink interface {
	// begin opens the place of an item's body. Items begin in the order of the list.
	begin(*item) (delivery, error)
	// room waits until the sink is ready for another item, or done is closed.
	room(done <-chan struct{})
	// close ends the sink when every delivery has ended.
	close()
}

// delivery is one body on its way. It belongs to one goroutine, and is ended
// exactly once. Its errors are *outputError.
type delivery interface {
	Write([]byte) (int, error)
	// end keeps what was written, or throws it away.
	end(keep bool) error
}

// outputError says that something fetched could not be written.
type outputError struct {
	what string // what cannot be done
	err  error
	hint string // what to do
	// alone: it is about this item only, so the others go on.
	alone bool
}

// Error is one line: what happened, why, and what to do.
func (e *outputError) Error() string {
	return fmt.Sprintf("%s: %s; %s", e.what, cause(e.err), e.hint)
}

// Unwrap gives the cause.
func (e *outputError) Unwrap() error { return e.err }
