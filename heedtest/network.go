package heedtest

import (
	"net/http"
	"testing"

	"github.com/heedhttp/heed/internal/memnet"
)

// Network is a real net/http server behind an in-memory network, and a real
// *http.Transport that reaches it under every host name. Nothing in it leaves
// the process or waits outside it, so that it works in a testing/synctest
// bubble, where it must be called inside. Its buffers hold 64 KiB in each
// direction. URLs with https are carried in the clear. Both are closed when
// the test ends.
//
// Since in a bubble no time passes on the way (other than Latency), what is a
// violation is judged as exactly as with RoundTrip. Outside a bubble it does:
// set Grace there.
func (s *Server) Network(tb testing.TB) *http.Transport {
	tb.Helper()
	l := &memnet.Listener{}
	stop := run(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, max(s.Grace, 0), connOf(r))
	}))
	t := &http.Transport{
		DialContext:         l.DialContext,
		DialTLSContext:      l.DialContext,
		MaxIdleConnsPerHost: 64,
	}
	tb.Cleanup(func() {
		t.CloseIdleConnections()
		stop()
	})
	return t
}
