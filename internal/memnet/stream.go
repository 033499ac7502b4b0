package memnet

import (
	"io"
	"os"
	"sync"
	"time"
)

// DefaultBuffer is how many bytes one direction holds when nothing else is
// said: as much as a usual TCP window, so that a request and its answer pass
// without either side waiting for the other.
const DefaultBuffer = 64 << 10

// A Stream is one direction of a connection: bytes go in at one end and come
// out at the other, at most max of them are held between. Writes block only
// while it is full. All methods are safe for concurrent use; concurrent
// writes do not interleave.
type Stream struct {
	max     int
	writing sync.Mutex // held over one whole Write, so that two do not interleave

	mu    sync.Mutex
	turn  sync.Cond // anything below has changed
	buf   []byte
	off   int   // buf[:off] has been read
	wdone error // what a read finds after the last byte; nil while the writer lives
	rdone error // what a write finds; nil while the reader lives. A read then finds io.ErrClosedPipe
	rdl   deadline
	wdl   deadline
}

// NewStream makes a stream that holds at most max bytes; 0 or less means
// DefaultBuffer.
func NewStream(max int) *Stream {
	if max <= 0 {
		max = DefaultBuffer
	}
	s := &Stream{max: max}
	s.turn.L = &s.mu
	return s
}

// Read takes what is there, and waits only when nothing is. What was written
// before CloseWrite is read before its error; an end by CloseRead or a passed
// deadline (os.ErrDeadlineExceeded) is seen at once.
func (s *Stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.rdone != nil:
			return 0, io.ErrClosedPipe
		case s.rdl.expired:
			return 0, os.ErrDeadlineExceeded
		case s.off < len(s.buf):
			n := copy(p, s.buf[s.off:])
			if s.off += n; s.off == len(s.buf) {
				s.buf, s.off = s.buf[:0], 0
			}
			s.turn.Broadcast()
			return n, nil
		case s.wdone != nil:
			return 0, s.wdone
		case len(p) == 0:
			return 0, nil
		}
		s.turn.Wait()
	}
}

// Write puts all of p in, waiting while the stream is full. After CloseRead
// it gives that error, after CloseWrite io.ErrClosedPipe, past the write
// deadline os.ErrDeadlineExceeded; n says what went in before.
func (s *Stream) Write(p []byte) (n int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.wdone != nil:
			return n, io.ErrClosedPipe
		case s.rdone != nil:
			return n, s.rdone
		case s.wdl.expired:
			return n, os.ErrDeadlineExceeded
		case n == len(p):
			return n, nil
		}
		if k := min(s.max-(len(s.buf)-s.off), len(p)-n); k > 0 {
			s.put(p[n : n+k])
			n += k
			s.turn.Broadcast()
			continue
		}
		s.turn.Wait()
	}
}

// put appends under the lock; the read part is dropped before the slice
// grows, so that a stream never keeps more than about twice its bound.
func (s *Stream) put(p []byte) {
	if s.off > 0 && len(s.buf)+len(p) > cap(s.buf) {
		s.buf = s.buf[:copy(s.buf, s.buf[s.off:])]
		s.off = 0
	}
	s.buf = append(s.buf, p...)
}

// CloseWrite ends the stream at the writer's side: reads get what is left and
// then err (nil means io.EOF). Only the first call counts.
func (s *Stream) CloseWrite(err error) {
	if err == nil {
		err = io.EOF
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wdone == nil {
		s.wdone = err
		s.wdl.stop()
		s.turn.Broadcast()
	}
}

// CloseRead ends the stream at the reader's side: what is held is dropped,
// reads give io.ErrClosedPipe and writes give err (nil means io.ErrClosedPipe
// too) from now on. Only the first call counts.
func (s *Stream) CloseRead(err error) {
	if err == nil {
		err = io.ErrClosedPipe
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rdone == nil {
		s.rdone = err
		s.buf, s.off = nil, 0
		s.rdl.stop()
		s.turn.Broadcast()
	}
}

// SetReadDeadline makes reads fail from the instant t on, those that already
// wait included; the zero time takes the deadline away.
func (s *Stream) SetReadDeadline(t time.Time) { s.setDeadline(&s.rdl, t, &s.rdone) }

// SetWriteDeadline is SetReadDeadline for writes.
func (s *Stream) SetWriteDeadline(t time.Time) { s.setDeadline(&s.wdl, t, &s.wdone) }

func (s *Stream) setDeadline(d *deadline, t time.Time, done *error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *done == nil {
		d.set(s, t)
	}
}

// deadline is expired from an instant on. The flag is set by the timer and
// not found by comparing clocks: a wall clock that steps back between the
// timer and the comparison would otherwise leave a reader waiting for ever.
type deadline struct {
	expired bool
	timer   *time.Timer
	turn    int // which setting this is, so that a late timer of an older one does nothing
}

func (d *deadline) stop() {
	d.turn++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *deadline) set(s *Stream, t time.Time) {
	d.stop()
	d.expired = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.expired = true
		s.turn.Broadcast()
		return
	}
	turn := d.turn
	d.timer = time.AfterFunc(left, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.turn == turn {
			d.expired = true
			s.turn.Broadcast()
		}
	})
}
