package heedtest

import (
	"errors"
	"fmt"
	"io"
)

// ErrCut says that the server cut the connection: its handler panicked or
// aborted. It unwraps to io.EOF before the answer's header, which is what a
// client finds on a real connection; a body already begun ends in
// io.ErrUnexpectedEOF.
var ErrCut = errors.New("heedtest: the connection was cut")

// cutError ties ErrCut to what a client knows.
type cutError struct{ cause any }

func (e *cutError) Error() string {
	if e.cause == nil {
		return "heedtest: the handler aborted, so the connection was cut before an answer"
	}
	return fmt.Sprintf("heedtest: the handler panicked (%v), so the connection was cut before an answer", e.cause)
}

func (e *cutError) Unwrap() []error { return []error{ErrCut, io.EOF} }

// lengthError is a body that does not keep its length: mostly one that was
// read before and is sent again without GetBody.
type lengthError struct{ declared, read int64 }

func (e *lengthError) Error() string {
	return fmt.Sprintf("heedtest: ContentLength=%d with Body length %d: a body that is sent again must be made anew by GetBody", e.declared, e.read)
}
