package heedtest

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Listen serves on a free port of the loopback interface until the test ends,
// and returns the URL, without a slash at its end. HTTP/1.1 and, for clients
// that begin with it, unencrypted HTTP/2.
func (s *Server) Listen(tb testing.TB) string {
	tb.Helper()
	url, stop, err := s.Start()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	return url
}

// Start is Listen for programs that are no tests. stop closes every
// connection and returns when the last handler has; it may be called more
// than once, and must be called once.
func (s *Server) Start() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		if l, err = net.Listen("tcp6", "[::1]:0"); err != nil {
			return "", nil, fmt.Errorf("heedtest: no loopback port to listen on: %w", err)
		}
	}
	return "http://" + l.Addr().String(), run(l, s), nil
}

// run serves l until stop.
func run(l net.Listener, h http.Handler) (stop func()) {
	var conns sync.WaitGroup
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: time.Minute,
		Protocols:         new(http.Protocols),
		// A new connection is counted by Serve itself, so that no count begins
		// after Serve has ended.
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				conns.Done()
			}
		},
	}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // ends with http.ErrServerClosed, by stop
	}()
	return sync.OnceFunc(func() {
		_ = srv.Close() // its error is that of a listener, which is closed by now
		<-served
		conns.Wait()
	})
}
