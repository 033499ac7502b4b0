// Package heedtest is a fake rate-limited API to test clients against: any
// limiter of package limiter, told in any of the usual header dialects, with
// latency, jitter and a clock that is wrong, and a record of how the client
// behaved.
//
// One [Server] value can be reached in five ways, all of which spend from the
// same limiters and write into the same [Report]:
//
//   - [Server.RoundTrip] is a base transport without a network. Inside a
//     testing/synctest bubble a test over an hour of waiting takes
//     milliseconds, and every judgement is exact to the nanosecond.
//   - [Server.Respond] is the same without latency; the method value is a
//     responder for github.com/jarcoal/httpmock.
//   - [Server.Network] is a real net/http server and a real *http.Transport
//     over an in-memory network, which also works inside a bubble: for bodies
//     that stream, connections that are kept or cut, trailers, upgrades.
//   - [Server.Listen] (and [Server.Start] for programs that are no tests) is
//     a server on a loopback socket, for clients in another process or
//     language.
//   - [Server.ServeHTTP] puts it behind whatever else serves HTTP.
//
// The zero Server answers 200 to everything:
//
//	srv := &heedtest.Server{
//		Limit:   func() limiter.Core { return &limiter.FixedWindow{Limit: 10, Window: time.Minute} },
//		Dialect: heedtest.XRateLimit,
//		Latency: 40 * time.Millisecond,
//	}
//	client := &http.Client{Transport: srv} // or your own transport on top of srv
//	// ... use the client ...
//	if r := srv.Report(); r.Violations > 0 {
//		t.Errorf("sent during a wait the server had told:\n%v", r)
//	}
package heedtest
