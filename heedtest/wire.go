package heedtest

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// travel takes a request to the server, where it is decided, and through its
// queue if it has one. A client that gives up on the way gets its error at
// once, while what was sent arrives all the same.
func (s *Server) travel(ctx context.Context, v *visit, way time.Duration) error {
	left, err := sleep(ctx, way)
	if err != nil {
		time.AfterFunc(max(left, 0), func() {
			v.arrival()
			v.abandon()
		})
		return err
	}
	v.arrival()
	if v.held > 0 {
		if _, err = sleep(ctx, v.held); err != nil {
			v.abandon()
		}
	}
	return err
}

// sleep waits for d or the end of ctx; then it says what was left of d.
func sleep(ctx context.Context, d time.Duration) (left time.Duration, err error) {
	if d <= 0 {
		return 0, ctx.Err()
	}
	end := time.Now().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return 0, nil
	case <-ctx.Done():
		return time.Until(end), ctx.Err()
	}
}

// drainLimit is what a server reads of a body that nobody wanted before it
// answers: the same as net/http's.
const drainLimit = 256 << 10

// upload is the body of a request as the server reads it. The client's reader
// is closed once, whoever is first: the server at its end, or the context,
// since a close is what frees a reader that waits.
type upload struct {
	body     io.ReadCloser
	declared int64 // -1: not
	close    sync.Once

	read int64
	err  error // of the client's reader; not io.EOF
	end  bool
}

func newUpload(r *http.Request) *upload {
	u := &upload{body: r.Body, declared: r.ContentLength}
	if u.body == nil || u.body == http.NoBody {
		u.end = true
		return u
	}
	if u.declared == 0 {
		u.declared = -1 // a body and no length: it is not known (http.Request)
	}
	return u
}

// Read gives the handler the client's bytes, and to both the error that a
// length that is not kept is for a real transport.
func (u *upload) Read(p []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	if u.end {
		return 0, io.EOF
	}
	n, err := u.body.Read(p)
	u.read += int64(n)
	switch {
	case u.declared >= 0 && u.read > u.declared, err == io.EOF && u.declared >= 0 && u.read < u.declared:
		u.err = &lengthError{declared: u.declared, read: u.read}
		return n, u.err
	case err == io.EOF:
		u.end = true
	case err != nil:
		u.err = err
	}
	return n, err
}

// Close is the handler's; the server closes when all is said.
func (u *upload) Close() error { return nil }

// finish reads what a server reads and closes. Its error is the client's own:
// the reader that failed, or a length that was not kept.
func (u *upload) finish() error {
	if !u.end && u.err == nil {
		_, _ = io.CopyN(io.Discard, u, drainLimit) // an error is in u.err
	}
	u.shut()
	return u.err
}

func (u *upload) shut() {
	u.close.Do(func() {
		if u.body != nil {
			_ = u.body.Close() // its error would be of no use to the answer
		}
	})
}
