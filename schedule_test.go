package heed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var (
	schedules = flag.Int("schedules", 500, "random schedules to run")
	replay    = flag.Uint64("schedule", 0, "seed of the one schedule to run again")
)

// fuzzRun is one random run: a server that does anything at any time, and
// callers who come and go. Its seed replays it.
type fuzzRun struct {
	t    *testing.T
	seed uint64

	mu       sync.Mutex // guards rnd
	rnd      *rand.Rand
	slots    int64
	inflight [2]atomic.Int64 // by host: sends whose answer is not read to its end or closed
	open     atomic.Int64    // bodies of answers that nobody has closed
	sends    atomic.Int64
}

func (w *fuzzRun) n(most int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rnd.IntN(most)
}

func (w *fuzzRun) millis(most int) time.Duration { return time.Duration(w.n(most)) * time.Millisecond }

func (w *fuzzRun) failf(format string, args ...any) {
	w.t.Errorf("seed %d: %s", w.seed, fmt.Sprintf(format, args...))
}

// RoundTrip is the server.
func (w *fuzzRun) RoundTrip(r *http.Request) (*http.Response, error) {
	w.sends.Add(1)
	inflight := &w.inflight[r.URL.Host[len("host")]-'0']
	if n := inflight.Add(1); w.slots > 0 && n > w.slots {
		w.failf("%d under way where %d may", n, w.slots)
	}
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	resp, err := w.answer(r)
	if resp == nil || resp.Body == http.NoBody {
		inflight.Add(-1)
		return resp, err
	}
	w.open.Add(1)
	done := sync.OnceFunc(func() { inflight.Add(-1) })
	resp.Body = &fuzzBody{Reader: resp.Body, fuzzRun: w, done: done}
	return resp, nil
}

type fuzzBody struct {
	io.Reader
	fuzzRun *fuzzRun
	done    func()
	closes  atomic.Int32
}

func (b *fuzzBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		b.done()
	}
	return n, err
}

func (b *fuzzBody) Close() error {
	b.done()
	switch n := b.closes.Add(1); n {
	case 1:
		b.fuzzRun.open.Add(-1)
	case 2:
		// net/http's bodies take a second Close, and callers are used to it.
	default:
		b.fuzzRun.failf("a body was closed %d times", n)
	}
	return nil
}

func (w *fuzzRun) answer(r *http.Request) (*http.Response, error) {
	latency := w.millis(300)
	if w.n(4) == 0 {
		time.Sleep(latency) // deaf to cancels
	} else if resp, err := late(latency, answer(200))(r); err != nil {
		return resp, err
	}
	var give reply
	switch w.n(12) {
	case 0:
		give = answer(429, fmt.Sprintf("Retry-After: %d", w.n(4)))
	case 1:
		give = answer(429)
	case 2:
		give = answer(503)
	case 3:
		give = answer(503, "Retry-After: 1")
	case 4:
		give = breaks(errReset)
	case 5:
		give = breaks(errRefused)
	case 6:
		give = answer(404)
	case 7:
		give = answer(200, "RateLimit-Limit: 9", fmt.Sprintf("RateLimit-Remaining: %d", w.n(3)), "RateLimit-Reset: 2")
	case 8:
		give = answer(200, "Cache-Control: max-age=1")
	default:
		give = answer(200)
	}
	resp, err := give(r)
	if err == nil && w.n(5) == 0 {
		resp.Body, resp.ContentLength = http.NoBody, 0
	}
	if err == nil && w.n(4) == 0 {
		resp.ContentLength = -1
	}
	return resp, err
}

// transport is a random configuration, and all Transports in it.
func (w *fuzzRun) transport() (top *Transport, all []*Transport) {
	var base http.RoundTripper = w
	for range 1 + w.n(2) {
		tr := &Transport{Base: base, Rand: func() float64 { return float64(w.n(1000)) / 1000 }, Retry: Retry{MaxAttempts: w.n(4)}}
		if w.n(2) == 0 {
			slots := w.n(3)
			tr.Throttle.Rules = []Rule{
				{Match: "/", Concurrency: slots, Limits: []Limit{{Quota: float64(1 + w.n(20)), Window: time.Second}}},
				{Match: "PUT /", Limits: []Limit{{Quota: 5, Window: time.Second, Algorithm: AlgorithmTokenBucket}}},
			}
			if slots > 0 && (w.slots == 0 || int64(slots) < w.slots) {
				w.slots = int64(slots)
			}
		}
		if w.n(3) == 0 {
			tr.Budget = NewBudget()
		}
		if w.n(3) == 0 {
			tr.Cache = NewCache(1 << 20)
		}
		if w.n(5) == 0 {
			tr.Throttle.MaxQueue = w.n(3) - 1
		}
		if w.n(3) == 0 {
			tr.Throttle.MaxWait = w.millis(3000)
		}
		base, top, all = tr, tr, append(all, tr)
	}
	return top, all
}

// caller makes one call and goes away at some time.
func (w *fuzzRun) caller(tr *Transport) {
	time.Sleep(w.millis(1000))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	gone := time.Now().Add(time.Hour)
	switch w.n(4) {
	case 0:
		d := w.millis(4000)
		gone = time.Now().Add(d)
		stop := time.AfterFunc(d, cancel)
		defer stop.Stop()
	case 1:
		d := w.millis(4000)
		gone = time.Now().Add(d)
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, d)
		defer end()
	}
	method := []string{"GET", "GET", "PUT", "POST"}[w.n(4)]
	body := &callerBody{Reader: strings.NewReader("payload")}
	req, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://host%d.test/", w.n(2)), nil)
	if err != nil {
		w.t.Error(err)
		return
	}
	if method != "GET" {
		req.Body = body
		if w.n(2) == 0 {
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("payload")), nil }
		}
	}
	resp, err := tr.RoundTrip(req)
	if (resp == nil) == (err == nil) {
		w.failf("response %v and error %v", resp, err)
		return
	}
	// A deaf server may hold a call up for its latency, an unwanted answer for the time of a drain.
	if over := time.Since(gone); over > 300*time.Millisecond+drainTime {
		w.failf("a call came back %v after it was given up: %v", over, err)
	}
	if method != "GET" && body.closes.Load() != 1 {
		w.failf("the caller's body was closed %d times (%v)", body.closes.Load(), err)
	}
	if err != nil {
		var limited *LimitError
		var failed *CallError
		if !errors.As(err, &limited) && !errors.As(err, &failed) {
			w.failf("an error of neither kind: %v", err)
		}
		return
	}
	time.Sleep(w.millis(200))
	switch w.n(3) {
	case 0:
		_, _ = io.Copy(io.Discard, resp.Body)
	case 1:
		_, _ = resp.Body.Read(make([]byte, 2))
	}
	resp.Body.Close()
	if w.n(4) == 0 {
		resp.Body.Close()
	}
}

func TestAfterAnyScheduleOfCallsAndCancelsNothingIsUnderWay(t *testing.T) {
	first, n := rand.Uint64()>>1, *schedules
	if *replay != 0 {
		first, n = *replay, 1
	}
	t.Logf("seeds from %d", first)
	for i := range n {
		w := &fuzzRun{seed: first + uint64(i)}
		w.rnd = rand.New(rand.NewPCG(w.seed, 0))
		synctest.Test(t, func(t *testing.T) {
			w.t = t
			tr, all := w.transport()
			var wg sync.WaitGroup
			for range 4 + w.n(12) {
				wg.Go(func() { w.caller(tr) })
			}
			wg.Wait()
			time.Sleep(time.Second) // deaf drains end
			if n := w.open.Load(); n != 0 {
				w.failf("%d bodies are open after %d sends", n, w.sends.Load())
			}
			for _, tr := range all {
				if tr.chain != nil {
					conserved(t, tr)
				}
				if b, ok := tr.Budget.(*memoryBudget); ok && len(b.grants) != 0 {
					w.failf("%d grants of the Budget are not settled", len(b.grants))
				}
			}
			if t.Failed() {
				t.Logf("seed %d: %+v", w.seed, tr.Throttle)
			}
		})
		if t.Failed() {
			return
		}
	}
}
