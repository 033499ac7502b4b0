package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedhttp/heed"
)

// fetching makes a fetcher of its own for a test.
func fetching(t *testing.T, g get) *fetcher {
	t.Helper()
	g.Parallel = max(g.Parallel, 1)
	if g.MaxWait == 0 {
		g.MaxWait = time.Minute
	}
	f := newFetcher(&g, new(tally), newBoard(), &console{w: io.Discard})
	t.Cleanup(f.base.CloseIdleConnections)
	return f
}

func TestHTTP2IsSpokenWhereTheServerDoes(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	f := fetching(t, get{})
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	f.base.TLSClientConfig = &tls.Config{RootCAs: pool}
	var body bytes.Buffer
	if n, err, _ := f.fetch(t.Context(), newItem(0, srv.URL), &body); err != nil || body.String() != "HTTP/2.0" || n != 8 {
		t.Errorf("%q, %d, %v", body.String(), n, err)
	}
}

func TestACertificateThatIsNotTrustedIsExplained(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	f := fetching(t, get{Retries: new(int)})
	_, err, ended := f.fetch(t.Context(), newItem(0, srv.URL), io.Discard)
	if got := explain(err, ended, f.limits); !strings.HasPrefix(got, "the server's certificate is not good: x509: ") {
		t.Errorf("%q", got)
	}
	_, plain := start(t)
	_, err, ended = f.fetch(t.Context(), newItem(0, strings.Replace(plain, "http:", "https:", 1)), io.Discard)
	if got := explain(err, ended, f.limits); !strings.Contains(got, "http:// in place of https://") && !strings.Contains(got, "HTTP response to HTTPS client") {
		t.Errorf("%q", got)
	}
}

func TestABodyThatStandsStillIsGivenUp(t *testing.T) {
	_, url := start(t)
	f := fetching(t, get{})
	f.limits.stall = 50 * time.Millisecond
	var body bytes.Buffer
	n, err, ended := f.fetch(t.Context(), newItem(0, url+"/gated"), &body)
	if n != 6 || !errors.Is(ended, errStalled) {
		t.Errorf("%d bytes, %v, %v", n, err, ended)
	}
	if got := explain(err, ended, f.limits); got != "the server sent nothing for 50ms; run again" {
		t.Errorf("%q", got)
	}
}

func TestASlowReaderOfTheOutputIsNotTheServersFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var stalled atomic.Bool
		body := &watched{r: r, idle: time.Minute, timer: time.AfterFunc(time.Minute, func() { stalled.Store(true) })}
		defer body.timer.Stop()
		go func() {
			for range 3 {
				time.Sleep(59 * time.Second) // a server may take almost as long as is allowed
				_, _ = io.WriteString(w, "x")
			}
		}()
		var p [8]byte
		for range 3 {
			if n, err := body.Read(p[:]); n != 1 || err != nil {
				t.Fatalf("%d bytes, %v", n, err)
			}
			time.Sleep(time.Hour) // and whoever takes the body any time
		}
		if stalled.Load() {
			t.Error("the server is blamed")
		}
		go func() { _, _ = body.Read(p[:]) }()
		time.Sleep(61 * time.Second)
		if !stalled.Load() {
			t.Error("a server that says nothing for more than a minute is not noticed")
		}
		r.Close()
	})
}

func TestWhatWasWaitedIsCountedAcrossRedirects(t *testing.T) {
	_, url := start(t)
	f := fetching(t, get{})
	if _, err, _ := f.fetch(t.Context(), newItem(0, url+"/away"), io.Discard); err != nil {
		t.Fatal(err)
	}
	if n := f.tally.requests.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	f.tally.waited(heed.Info{Waits: []heed.Wait{{Reason: heed.ReasonHold, For: time.Second}, {Reason: heed.ReasonPace, For: 2 * time.Second}}})
	f.tally.waited(heed.Info{Waits: []heed.Wait{{Reason: heed.ReasonHold, For: 4 * time.Second}, {Reason: heed.ReasonProbe, For: time.Microsecond}}})
	if got := f.tally.showWaits(); got != "waited 7s over all URLs: hold 5s, pace 2s" {
		t.Errorf("%q", got)
	}
}

func TestOnlyAnswersOfTheCacheAreHits(t *testing.T) {
	var n tally
	for _, outcome := range []string{"hit", "miss", "revalidated", "stored", "bypass", ""} {
		n.cached(heed.Event{Cache: outcome})
	}
	n.answered(heed.Event{Status: 429})
	n.answered(heed.Event{Status: 403, Limited: true})
	n.answered(heed.Event{Status: 403})
	if n.hits.Load() != 2 || n.refusals.Load() != 2 {
		t.Errorf("%d hits, %d refusals", n.hits.Load(), n.refusals.Load())
	}
}

// TestEveryErrorIsOneLineInLowerCaseThatSaysWhatToDo goes through the causes.
func TestEveryErrorIsOneLineInLowerCaseThatSaysWhatToDo(t *testing.T) {
	l := limits{timeout: 5 * time.Second, maxWait: time.Minute, stall: time.Minute}
	secret := "http://u:s3cret@h/p?k=s3cret"
	for _, tt := range []struct {
		err, ended error
		says       string
	}{
		{&statusError{404, heed.Info{Attempts: 1}}, nil, "HTTP 404 not found; check the address"},
		{&statusError{503, heed.Info{Attempts: 7}}, nil, "HTTP 503 service unavailable after 7 tries; the trouble is the server's"},
		{&statusError{429, heed.Info{Attempts: 1, Stopped: heed.StopWait, Asked: 2 * time.Hour}}, nil, "HTTP 429 too many requests, and the server asks for a wait of 2h0m0s; raise --max-wait"},
		{&statusError{429, heed.Info{Stopped: heed.StopDeadline, Asked: time.Hour}}, nil, "raise --timeout"},
		{&statusError{503, heed.Info{Stopped: heed.StopWait}}, nil, "and the wait before the next try is longer than --max-wait; raise"},
		{&statusError{429, heed.Info{}}, nil, "HTTP 429 too many requests; run again later"},
		{&statusError{418, heed.Info{}}, nil, "HTTP 418 i'm a teapot; the server does not take"},
		{&statusError{499, heed.Info{}}, nil, "HTTP 499; "},
		{&statusError{304, heed.Info{}}, nil, "HTTP 304 not modified, which has no body"},
		{&heed.LimitError{Scope: secret, Reason: heed.ReasonHold, RetryAt: time.Now().Add(time.Hour)}, nil, "not sent: it would wait 1h0m0s (hold), longer than --max-wait 1m0s; raise --max-wait, or run again after "},
		{&heed.LimitError{Reason: heed.ReasonConcurrency}, nil, "not sent: it would wait longer than --max-wait 1m0s (concurrency); raise --max-wait, or run again later"},
		{&heed.CallError{Err: context.DeadlineExceeded, Info: heed.Info{Waits: []heed.Wait{{Reason: heed.ReasonHold, For: 2 * time.Second}}}}, errTimeout, "not finished within --timeout 5s, 2s of which it waited; raise --timeout"},
		{context.Canceled, errStalled, "the server sent nothing for 1m0s; run again"},
		{&truncated{1500, io.ErrUnexpectedEOF}, nil, "the body broke off after 1.5 kB: unexpected EOF; run again"},
		{&net.DNSError{Name: "nosuch.invalid", IsNotFound: true}, nil, `no such host "nosuch.invalid"; check the spelling`},
		{&net.DNSError{Name: "h", IsTimeout: true}, nil, `the name server gave no answer for "h"; `},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, nil, "connection refused; check"},
		{&heed.CallError{Err: syscall.ECONNRESET, Info: heed.Info{Attempts: 7}}, nil, "the server closed the connection (7 tries); run again later"},
		{os.ErrDeadlineExceeded, nil, "the server did not answer in time; "},
		{errors.New("failed to parse Location header \"" + secret + "\""), nil, "failed to parse"},
		{errors.Join(errors.New("one"), errors.New("two "+secret)), nil, "one two http://h/p?...; check"},
		{&outputError{what: "cannot write", err: &os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, hint: "make room"}, nil, "cannot write: no space left on device; make room"},
	} {
		got := explain(&heed.CallError{Err: fmt.Errorf("wrapped: %w", tt.err)}, tt.ended, l)
		if c, ok := tt.err.(*heed.CallError); ok {
			got = explain(fmt.Errorf("wrapped: %w", c), tt.ended, l)
		}
		if !strings.Contains(got, tt.says) {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.says)
		}
		if strings.ContainsAny(got, "\n\r") || strings.Contains(got, "s3cret") || !strings.Contains(got, ";") {
			t.Errorf("%v: %q", tt.err, got)
		}
	}
}

// roundTripper is a function that sends.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWaitsOfCallsThatFailCountAsWell(t *testing.T) {
	var n tally
	failed := &heed.CallError{Err: io.EOF, Info: heed.Info{Waits: []heed.Wait{{Reason: heed.ReasonBackoff, For: 3 * time.Second}}}}
	c := counting{roundTripper(func(*http.Request) (*http.Response, error) { return nil, failed }), &n}
	if resp, err := c.RoundTrip(httptest.NewRequest("GET", "http://h/", nil)); resp != nil || !errors.Is(err, io.EOF) {
		t.Errorf("%v, %v", resp, err)
	}
	if got := n.showWaits(); got != "waited 3s over all URLs: backoff 3s" {
		t.Errorf("%q", got)
	}
}

func TestRetriesAreAsManyAsTheFlagSays(t *testing.T) {
	for _, retries := range []int{0, 1} {
		sends := 0
		f := fetching(t, get{Retries: &retries})
		transport := f.client.Transport.(counting).next.(*heed.Transport)
		transport.Retry.BaseDelay = time.Millisecond
		transport.Base = roundTripper(func(*http.Request) (*http.Response, error) {
			sends++
			return nil, syscall.ECONNRESET
		})
		_, err, ended := f.fetch(t.Context(), newItem(0, "http://h/"), io.Discard)
		if sends != 1+retries || f.tally.requests.Load() != int64(sends) || f.tally.retries.Load() != int64(retries) {
			t.Errorf("%d retries: %d sends", retries, sends)
		}
		if got := explain(err, ended, f.limits); !strings.HasPrefix(got, "the server closed the connection") {
			t.Errorf("%q", got)
		}
	}
}

func TestABackoffIsShownAsAWait(t *testing.T) {
	var n tally
	b, con := newBoard(), new(bytes.Buffer)
	hooks := observe(&n, b, &console{w: con, notes: true})
	it := newItem(0, "http://h/")
	ctx := context.WithValue(t.Context(), itemKey{}, it)
	hooks.Retrying(heed.Event{Context: ctx, Scope: "http://h", Wait: 20 * time.Second})
	if got, _ := b.line(time.Now()); got != "h: waiting 20s (backoff)" || con.String() != got+"\n" {
		t.Errorf("bar %q, log %q", got, con)
	}
	hooks.Sent(heed.Event{Context: ctx, Scope: "http://h"})
	if got, _ := b.line(time.Now()); got != "" {
		t.Errorf("%q after it was sent", got)
	}
	hooks.Retrying(heed.Event{Context: ctx, Scope: "http://h"}) // after a refusal the throttle tells of the wait
	if got, _ := b.line(time.Now()); got != "" || n.retries.Load() != 2 {
		t.Errorf("%q, %d retries", got, n.retries.Load())
	}
	hooks.Held(heed.Event{Context: ctx, Scope: "http://h", Wait: 90 * time.Second})
	hooks.Waiting(heed.Event{Context: ctx, Scope: "http://h", Reason: heed.ReasonQueue})
	if got, _ := b.line(time.Now()); got != "h: waiting 1m30s (hold)" {
		t.Errorf("%q", got)
	}
}
