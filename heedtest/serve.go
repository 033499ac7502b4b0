package heedtest

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"net/http"
	"strconv"
	"time"
)

// ServeHTTP implements http.Handler. With Latency or Jitter the ways are
// waited for here, so that a request counts as being served until its answer
// has been handed to the connection. A request whose context ends on the way
// is aborted as net/http wants it, by panic(http.ErrAbortHandler). See Grace
// for what counts as a violation on a socket.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.serve(w, r, s.grace(), connOf(r))
}

// connOf names the connection that a request came on, when requests on it
// follow each other; on an HTTP/2 connection they may have crossed a telling.
func connOf(r *http.Request) string {
	if r.ProtoMajor != 1 {
		return ""
	}
	return r.RemoteAddr
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, grace time.Duration, conn string) {
	v := s.departure(r, grace, conn)
	if err := s.travel(r.Context(), v, s.way()); err != nil {
		panic(http.ErrAbortHandler) // nobody is there to be answered
	}
	v.head(w.Header())
	b := &back{ResponseWriter: w, visit: v, ctx: r.Context()}
	if v.event.Rejected || s.Handler == nil {
		if !v.event.Rejected {
			v.leave(http.StatusOK)
		}
		status, body := cmp.Or(v.notice.status, http.StatusOK), cmp.Or(v.notice.body, bodyAccepted)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		b.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = b.Write([]byte(body)) // a client that is gone needs no answer
		}
		v.delivery()
		return
	}
	defer func() { v.leave(b.status) }()
	s.Handler.ServeHTTP(b, r)
	if b.status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	v.delivery() // again after a flush, which changes nothing
}

// back is the way back of an answer: its first byte takes the time that the
// way takes, and what it tells counts as told when it has gone out for
// certain: at a flush, or at the end.
type back struct {
	http.ResponseWriter
	visit  *visit
	ctx    context.Context
	status int
	told   bool
}

// Unwrap is for http.ResponseController.
func (b *back) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (b *back) WriteHeader(status int) {
	if b.status != 0 {
		return // only the first final status counts
	}
	if status >= 200 || status == http.StatusSwitchingProtocols {
		b.status = status
		if _, err := sleep(b.ctx, b.visit.s.way()); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	b.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (b *back) Write(p []byte) (int, error) {
	if b.status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	return b.ResponseWriter.Write(p)
}

// Flush implements http.Flusher, as far as what is below does.
func (b *back) Flush() { _ = b.FlushError() }

// FlushError is what http.ResponseController prefers to Flush.
func (b *back) FlushError() error {
	if b.status == 0 {
		b.WriteHeader(http.StatusOK)
	}
	err := http.NewResponseController(b.ResponseWriter).Flush()
	if err == nil && !b.told {
		b.told = true
		b.visit.delivery()
	}
	return err
}

// Hijack implements http.Hijacker, as far as what is below does.
func (b *back) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(b.ResponseWriter).Hijack()
	if err == nil && b.status == 0 {
		b.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}
