package heed

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What the zero Transport may allocate for a call beyond what Base does. The
// first is for a Base that may write to a request, the second for one that is
// known not to, an *http.Transport.
const (
	mostAllocsOverAny       = 4
	mostAllocsOverTransport = 2
)

// instantly is a base that answers at once, with what a busy API sends along.
type instantly struct {
	status int
	header http.Header
}

func (b instantly) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: b.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: b.header, Body: http.NoBody, Request: req,
	}, nil
}

// answerHeader has twelve fields. With limits, three are of a window that no test uses up.
func answerHeader(limits bool) http.Header {
	h := http.Header{
		"Cache-Control":             {"private, max-age=60"},
		"Content-Type":              {"application/json; charset=utf-8"},
		"Date":                      {time.Now().UTC().Format(http.TimeFormat)},
		"Etag":                      {`W/"5f2c1c3a"`},
		"Server":                    {"example"},
		"Strict-Transport-Security": {"max-age=31536000"},
		"Vary":                      {"Accept, Authorization"},
		"X-Content-Type-Options":    {"nosniff"},
		"X-Request-Id":              {"C0DE:1234:5678:9ABC:DEF0"},
		"Content-Language":          {"en"},
		"X-Frame-Options":           {"deny"},
		"X-Xss-Protection":          {"0"},
	}
	if limits {
		delete(h, "Content-Language")
		delete(h, "X-Frame-Options")
		delete(h, "X-Xss-Protection")
		h["X-Ratelimit-Limit"] = []string{"1000000000"}
		h["X-Ratelimit-Remaining"] = []string{"999999999"}
		h["X-Ratelimit-Reset"] = []string{strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)}
	}
	return h
}

func plainRequest(t testing.TB, url string, fields ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	return req
}

// allocsOf is how often one call allocates.
func allocsOf(t *testing.T, rt http.RoundTripper, req *http.Request) float64 {
	t.Helper()
	if !overheadCounts {
		t.Skip("the race detector allocates too")
	}
	return testing.AllocsPerRun(500, func() {
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body == http.NoBody {
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	})
}

var overheadRequests = map[string][]string{
	"with no header":     nil,
	"with three fields":  {"Accept", "application/json", "Authorization", "Bearer 0123456789abcdef", "User-Agent", "example/1.0"},
	"with a single line": {"X-Api-Key", "0123456789abcdef"},
}

func TestACallOverAnInstantBaseAllocatesLittle(t *testing.T) {
	base := instantly{http.StatusOK, answerHeader(true)}
	for name, fields := range overheadRequests {
		t.Run(name, func(t *testing.T) {
			req := plainRequest(t, "https://api.example.com/items?page=2", fields...)
			bare := allocsOf(t, base, req)
			if added := allocsOf(t, &Transport{Base: base}, req) - bare; added > mostAllocsOverAny {
				t.Errorf("%v allocations added, want at most %d", added, mostAllocsOverAny)
			}
		})
	}
}

func TestACallOverAnHTTPTransportAllocatesLess(t *testing.T) {
	// A scheme of its own makes a real *http.Transport answer with no connection, so the count is exact.
	base := new(http.Transport)
	base.RegisterProtocol("instant", instantly{http.StatusOK, answerHeader(true)})
	for name, fields := range overheadRequests {
		t.Run(name, func(t *testing.T) {
			req := plainRequest(t, "instant://api.example.com/items?page=2", fields...)
			bare := allocsOf(t, base, req)
			if added := allocsOf(t, &Transport{Base: base}, req) - bare; added > mostAllocsOverTransport {
				t.Errorf("%v allocations added, want at most %d", added, mostAllocsOverTransport)
			}
		})
	}
}

func TestACallOverALoopbackConnectionAllocatesLittle(t *testing.T) {
	header := answerHeader(true)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
	}))
	defer srv.Close()
	base := new(http.Transport)
	defer base.CloseIdleConnections()
	req := plainRequest(t, srv.URL, overheadRequests["with three fields"]...)
	var added float64
	for range 5 { // both ends of the connection count, and what they do between two calls is not always the same
		bare := allocsOf(t, base, req)
		if added = allocsOf(t, &Transport{Base: base}, req) - bare; added <= mostAllocsOverTransport {
			return
		}
	}
	t.Errorf("%v allocations added, want at most %d", added, mostAllocsOverTransport)
}

func TestReadingAnAnswerAllocatesOnlyItsReadings(t *testing.T) {
	if !overheadCounts {
		t.Skip("the race detector allocates too")
	}
	now := time.Now()
	for name, want := range map[string]float64{"no limits": 0, "a trio": 1} {
		resp := &http.Response{StatusCode: http.StatusOK, Header: answerHeader(want > 0)}
		if got := testing.AllocsPerRun(100, func() { ParseFeedback(resp, now) }); got > want {
			t.Errorf("%s: %v allocations, want %v", name, got, want)
		}
	}
}

// ledgerTurn is a ledger's whole work for one call.
func ledgerTurn(l *ledger, fb *Feedback, at *instant) bool {
	at.wall, at.mono = at.wall+1e6, at.mono+1e6
	sent, one := *at, Cost{Requests: 1}
	if v := l.decide(sent, nil, one, 0); v.wait > 0 {
		return false
	}
	l.spend(sent, nil, one, false)
	l.land(*at, nil, one, true)
	l.learn(sent, *at, fb, 0)
	return true
}

func ledgerWord() (*Feedback, *instant) {
	now := time.Now()
	fb := ParseFeedback(&http.Response{StatusCode: http.StatusOK, Header: answerHeader(true)}, now)
	at := newTimeline().at(now)
	return &fb, &at
}

func TestTheLedgerAllocatesNothingForACall(t *testing.T) {
	if !overheadCounts {
		t.Skip("the race detector allocates too")
	}
	fb, at := ledgerWord()
	l, free := new(ledger), true
	ledgerTurn(l, fb, at) // makes the window
	got := testing.AllocsPerRun(100, func() { free = ledgerTurn(l, fb, at) && free })
	if got != 0 || !free {
		t.Errorf("%v allocations, all free: %v", got, free)
	}
}

// mostBytesAWaiter is what one call that waits may hold: its goroutine's stack, its call, its place in the queue.
const mostBytesAWaiter = 16 << 10

func TestTenThousandWaitersHoldLittleEach(t *testing.T) {
	if !overheadCounts || testing.Short() {
		t.Skip("the race detector makes everything larger")
	}
	const waiters = 10_000
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{
			Base:  instantly{http.StatusTooManyRequests, http.Header{"Retry-After": {"60"}}},
			Retry: Retry{MaxAttempts: -1},
		}
		if resp, err := tr.RoundTrip(plainRequest(t, "http://api.example.com/")); err != nil || resp.StatusCode != http.StatusTooManyRequests {
			t.Fatal(resp, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		before := heldNow()
		var wg sync.WaitGroup
		for range waiters {
			req := plainRequest(t, "http://api.example.com/").WithContext(ctx)
			wg.Go(func() {
				if resp, err := tr.RoundTrip(req); err == nil {
					t.Errorf("answered %d instead of waiting", resp.StatusCode)
				}
			})
		}
		synctest.Wait()
		each := (heldNow() - before) / waiters
		cancel()
		wg.Wait()
		if each > mostBytesAWaiter {
			t.Errorf("%d bytes for each waiter, want at most %d", each, mostBytesAWaiter)
		}
		t.Logf("%d bytes for each waiter", each)
	})
}

// heldNow is the memory in use, stacks included.
func heldNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func BenchmarkLedger(b *testing.B) {
	fb, at := ledgerWord()
	l := new(ledger)
	b.ReportAllocs()
	for b.Loop() {
		if !ledgerTurn(l, fb, at) {
			at.mono, at.wall = at.mono+int64(time.Hour), at.wall+int64(time.Hour)
		}
	}
}

func BenchmarkParseFeedback(b *testing.B) {
	now := time.Now()
	for _, limits := range []bool{false, true} {
		resp := &http.Response{StatusCode: http.StatusOK, Header: answerHeader(limits)}
		b.Run("limits="+strconv.FormatBool(limits), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ParseFeedback(resp, now)
			}
		})
	}
}
