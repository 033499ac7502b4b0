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
	"syscall"
	"testing"
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

// slowWriter takes its time.
type slowWriter struct{ d time.Duration }

func (w slowWriter) Write(p []byte) (int, error) {
	<-time.After(w.d)
	return len(p), nil
}

func TestASlowReaderOfTheOutputIsNotTheServersFault(t *testing.T) {
	_, url := start(t)
	f := fetching(t, get{})
	f.limits.stall = 60 * time.Millisecond
	if n, err, ended := f.fetch(t.Context(), newItem(0, url+"/big/1000"), slowWriter{120 * time.Millisecond}); n != 1000 || err != nil {
		t.Errorf("%d bytes, %v, %v", n, err, ended)
	}
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
