package heed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// scripted is a base that gives its answers in order, the last one for ever,
// and records every send: what a server saw, with the time that it saw it.
type scripted struct {
	answers []reply
	start   time.Time

	mu     sync.Mutex
	sends  []sending
	bodies []*replyBody
}

// reply makes one answer.
type reply func(r *http.Request) (*http.Response, error)

// sending is one request as it came to the base.
type sending struct {
	method, url string
	header      http.Header
	body        string
	sum         [sha256.Size]byte
	at          time.Duration
	req         *http.Request
}

func script(answers ...reply) *scripted { return &scripted{answers: answers, start: time.Now()} }

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := sending{method: r.Method, url: r.URL.String(), header: r.Header.Clone(), at: time.Since(s.start), req: r}
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		sent.body, sent.sum = string(b), sha256.Sum256(b)
	}
	s.mu.Lock()
	give := s.answers[min(len(s.sends), len(s.answers)-1)]
	s.sends = append(s.sends, sent)
	s.mu.Unlock()
	resp, err := give(r)
	if resp != nil && resp.Body != nil && resp.Body != http.NoBody {
		body := &replyBody{ReadCloser: resp.Body}
		resp.Body = body
		s.mu.Lock()
		s.bodies = append(s.bodies, body)
		s.mu.Unlock()
	}
	return resp, err
}

// replyBody counts its closes.
type replyBody struct {
	io.ReadCloser
	closes atomic.Int32
}

func (b *replyBody) Close() error {
	b.closes.Add(1)
	return b.ReadCloser.Close()
}

// times are the instants of all sends.
func (s *scripted) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var at []time.Duration
	for _, x := range s.sends {
		at = append(at, x.at)
	}
	return at
}

func (s *scripted) count() int { return len(s.times()) }

// open is how many bodies of answers were not closed, and complains of those closed twice.
func (s *scripted) open(t *testing.T) (n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range s.bodies {
		switch b.closes.Load() {
		case 0:
			n++
		case 1:
		default:
			t.Errorf("the body of answer %d was closed %d times", i+1, b.closes.Load())
		}
	}
	return n
}

// answer gives an answer with a code, a short body, and fields given as "Name: value".
func answer(code int, fields ...string) reply {
	return func(r *http.Request) (*http.Response, error) {
		text := fmt.Sprintf("body of %d", code)
		resp := &http.Response{
			StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header),
			Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
		}
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			resp.Header.Add(name, value)
		}
		return resp, nil
	}
}

// breaks answers with an error alone.
func breaks(err error) reply {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// repeated gives an answer.
func repeated(n int, r reply) (rs []reply) {
	for range n {
		rs = append(rs, r)
	}
	return rs
}

// late lets virtual time pass before an answer.
func late(d time.Duration, r reply) reply {
	return func(req *http.Request) (*http.Response, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return r(req)
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}

// lowest and highest are the ends of every jitter.
func lowest() float64  { return 0 }
func highest() float64 { return 1 - 1e-12 }

func newRequest(t *testing.T, ctx context.Context, method, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://api.test/items", r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// fetch sends a GET, and checks that exactly one of response and error came back.
func fetch(t *testing.T, ctx context.Context, tr http.RoundTripper) (*http.Response, error) {
	t.Helper()
	return roundTrip(t, tr, newRequest(t, ctx, http.MethodGet, ""))
}

func roundTrip(t *testing.T, tr http.RoundTripper, req *http.Request) (*http.Response, error) {
	t.Helper()
	resp, err := tr.RoundTrip(req)
	if (resp == nil) == (err == nil) {
		t.Fatalf("response %v and error %v: want exactly one", resp, err)
	}
	if resp != nil && resp.Request == nil {
		t.Fatal("the response has no Request")
	}
	return resp, err
}

// content reads an answer to its end and closes it.
func content(t *testing.T, resp *http.Response) string {
	t.Helper()
	if resp == nil {
		t.Fatal("there is no response")
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("the body is not readable: %v", err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// accountOf is the account of a call, however it ended.
func accountOf(resp *http.Response, err error) Info {
	if err != nil {
		return InfoOfError(err)
	}
	return InfoOf(resp)
}

// callerBody is a caller's body that counts its closes.
type callerBody struct {
	io.Reader
	closes atomic.Int32
}

func (b *callerBody) Close() error {
	b.closes.Add(1)
	return nil
}
