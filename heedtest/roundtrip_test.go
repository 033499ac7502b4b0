package heedtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/heedhttp/heed/heedtest"
)

func TestTheZeroServerAnswers200(t *testing.T) {
	srv := &heedtest.Server{}
	resp, err := (&http.Client{Transport: srv}).Get("http://api.test/x?y=1")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || int64(len(body)) != resp.ContentLength {
		t.Errorf("got %d, %q of length %d, %v", resp.StatusCode, body, resp.ContentLength, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestAHEADIsAnsweredWithoutABody(t *testing.T) {
	srv := &heedtest.Server{Limit: perHour(1)}
	for _, want := range []int{200, 429} {
		resp, err := (&http.Client{Transport: srv}).Head("http://api.test/")
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want || resp.Body != http.NoBody || resp.ContentLength <= 0 {
			t.Errorf("got %d with a length of %d and the body %v", resp.StatusCode, resp.ContentLength, resp.Body)
		}
	}
}

// body counts what a transport does with a request's body.
type body struct {
	io.Reader
	closed  atomic.Int32
	read    atomic.Int64
	closing func() // as of a pipe: frees a reader
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read.Add(int64(n))
	return n, err
}

func (b *body) Close() error {
	b.closed.Add(1)
	if b.closing != nil {
		b.closing()
	}
	return nil
}

func TestARequestBodyIsClosedOnceOnEveryPath(t *testing.T) {
	boom := errors.New("boom")
	pipe, stuck := io.Pipe() // nothing is ever written
	_ = stuck
	type path struct {
		srv     *heedtest.Server
		body    io.Reader
		closing func()
		length  int64
		timeout time.Duration
		noURL   bool
		want    error // nil: an answer
		read    int64 // -1: whatever
	}
	handler := func(h http.HandlerFunc) *heedtest.Server { return &heedtest.Server{Handler: h} }
	for name, c := range map[string]path{
		"accepted":               {srv: &heedtest.Server{}, body: strings.NewReader("body"), length: 4, read: 4},
		"of unknown length":      {srv: &heedtest.Server{}, body: strings.NewReader("body"), length: -1, read: 4},
		"refused":                {srv: &heedtest.Server{Limit: perHour(0)}, body: strings.NewReader("body"), length: 4, read: 4},
		"endless":                {srv: &heedtest.Server{}, body: endless{}, length: -1, read: 256 << 10},
		"handler reads":          {srv: handler(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }), body: strings.NewReader("body"), length: 4, read: 4},
		"handler does not read":  {srv: handler(func(http.ResponseWriter, *http.Request) {}), body: strings.NewReader("body"), length: 4, read: 4},
		"handler closes":         {srv: handler(func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() }), body: strings.NewReader("body"), length: 4, read: 4},
		"handler panics":         {srv: handler(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), body: strings.NewReader("body"), length: 4, want: heedtest.ErrCut, read: -1},
		"cancelled before":       {srv: &heedtest.Server{}, body: strings.NewReader("body"), length: 4, timeout: -1, want: context.DeadlineExceeded},
		"cancelled on the way":   {srv: &heedtest.Server{Latency: time.Second}, body: strings.NewReader("body"), length: 4, timeout: time.Second / 2, want: context.DeadlineExceeded},
		"cancelled on way back":  {srv: &heedtest.Server{Latency: time.Second}, body: strings.NewReader("body"), length: 4, timeout: 3 * time.Second / 2, want: context.DeadlineExceeded, read: 4},
		"cancelled while served": {srv: handler(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), body: strings.NewReader("body"), length: 4, timeout: time.Second, want: context.DeadlineExceeded, read: -1},
		"the reader fails":       {srv: &heedtest.Server{}, body: io.MultiReader(strings.NewReader("bo"), iotest.ErrReader(boom)), length: 4, want: boom, read: 2},
		"it fails the handler":   {srv: handler(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }), body: iotest.ErrReader(boom), length: 4, want: boom},
		"no URL":                 {srv: &heedtest.Server{}, body: strings.NewReader("body"), length: 4, noURL: true, want: errAny},
		"shorter than said":      {srv: &heedtest.Server{}, body: strings.NewReader(""), length: 4, want: errAny},
		"longer than said":       {srv: &heedtest.Server{}, body: strings.NewReader("body+"), length: 4, want: errAny, read: 5},
		"a reader that is stuck": {srv: &heedtest.Server{}, body: pipe, closing: func() { _ = pipe.Close() }, length: -1, timeout: time.Second, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			run := synctest.Test
			if c.closing != nil { // its pipe is of no bubble
				c.timeout = time.Millisecond
				run = func(t *testing.T, f func(*testing.T)) { f(t) }
			}
			run(t, func(t *testing.T) {
				b := &body{Reader: c.body, closing: c.closing}
				ctx := t.Context()
				if c.timeout != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.timeout)
					defer cancel()
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/", b)
				if err != nil {
					t.Fatal(err)
				}
				req.ContentLength = c.length
				if c.noURL {
					req.URL = nil
				}
				resp, err := c.srv.RoundTrip(req)
				if (resp == nil) != (c.want != nil) || (err == nil) != (c.want == nil) {
					t.Fatalf("got %v, %v", resp, err)
				}
				if c.want != nil && c.want != errAny && !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if resp != nil {
					_ = resp.Body.Close()
				}
				if c.closing == nil {
					synctest.Wait()
				}
				if n := b.closed.Load(); n != 1 {
					t.Errorf("closed %d times", n)
				}
				if n := b.read.Load(); c.read >= 0 && n != c.read {
					t.Errorf("%d bytes were read, want %d", n, c.read)
				}
			})
		})
	}
}

var errAny = errors.New("any")

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestTheCallersRequestIsNotChanged(t *testing.T) {
	srv := &heedtest.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Mine", "1")
		r.Header["X-Shared"][0] = "changed"
		r.URL.Path, r.Method, r.Host = "/other", "PATCH", "other"
	})}
	make := func() *http.Request {
		r, err := http.NewRequest(http.MethodPost, "http://user:pass@api.test/a?b#c", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header["X-Shared"] = []string{"same"}
		r.Body, r.GetBody = http.NoBody, nil
		return r
	}
	req, want := make(), make()
	resp, err := srv.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(req, want) {
		t.Errorf("got %+v, want %+v", req, want)
	}
	if resp.Request != req {
		t.Error("the response is to another request")
	}
}

func TestACancelEndsASlowHandlersRequestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var handlerEnded time.Duration
		began := time.Now()
		srv := &heedtest.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			handlerEnded = time.Since(began)
		})}
		client := &http.Client{Transport: srv, Timeout: time.Second}
		_, err := client.Get("http://api.test/")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if handlerEnded != time.Second {
			t.Errorf("the handler ended after %v", handlerEnded)
		}
	})
}

func TestAStreamIsReadWhileItsHandlerWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Latency: 10 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for i := 0; r.Context().Err() == nil; i++ {
				fmt.Fprintf(w, "data: %d\n", i)
				w.(http.Flusher).Flush()
				time.Sleep(time.Second)
			}
		})}
		began := time.Now()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://api.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.RoundTrip(req)
		if err != nil || time.Since(began) != 20*time.Millisecond {
			t.Fatalf("got %v after %v", err, time.Since(began))
		}
		line := make([]byte, len("data: 0\n"))
		for i := range 5 {
			if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("read %q, %v", line, err)
			}
		}
		if took := time.Since(began).Round(time.Second); took != 4*time.Second {
			t.Errorf("five lines took %v", took)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		if _, err := resp.Body.Read(line); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("a read after the close gives %v", err)
		}
		time.Sleep(time.Minute) // a handler that did not hear of it would go on for ever: the bubble would not end
	})
}

func TestACancelEndsAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the body ends with %v", err)
		}
	})
}

func TestAHandlerMeetsAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrote := make(chan error, 1)
		srv := &heedtest.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.Copy(w, io.LimitReader(endless{}, 10<<20))
			wrote <- err
		})}
		resp, err := (&http.Client{Transport: srv}).Get("http://api.test/")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-wrote:
			t.Fatalf("10 MiB went nowhere: %v", err)
		default:
		}
		_ = resp.Body.Close()
		if err := <-wrote; err == nil {
			t.Error("the handler was not told")
		}
	})
}

func TestAHandlerWhoseClientHasGivenUpCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Minute) // it does not look at its context
			if _, err := fmt.Fprint(w, "too late"); err == nil {
				t.Error("it wrote to nobody")
			}
		})}
		client := &http.Client{Transport: srv, Timeout: time.Second}
		if _, err := client.Get("http://api.test/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
	})
}

// watched counts what waits for the end of it.
type watched struct {
	context.Context
	waiting atomic.Int32
}

func (w *watched) AfterFunc(f func()) (stop func() bool) {
	w.waiting.Add(1)
	release := context.AfterFunc(w.Context, f)
	return func() bool {
		w.waiting.Add(-1)
		return release()
	}
}

func TestNothingStaysOnALongLivedContext(t *testing.T) {
	for name, srv := range map[string]*heedtest.Server{
		"default": {},
		"refused": {Limit: perHour(0)},
		"handler": {Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") })},
		"empty":   {Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})},
	} {
		for _, end := range []string{"read", "closed"} {
			ctx := &watched{Context: t.Context()}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := srv.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if end == "read" {
				_, err = io.Copy(io.Discard, resp.Body)
			} else {
				err = resp.Body.Close()
			}
			if n := ctx.waiting.Load(); n != 0 || err != nil {
				t.Errorf("%s, %s: %d functions wait for the end of the context, %v", name, end, n, err)
			}
		}
	}
}

func TestAPanicIsACutConnection(t *testing.T) {
	log.SetOutput(io.Discard)
	defer log.SetOutput(os.Stderr)
	for name, h := range map[string]http.HandlerFunc{
		"a panic":   func(http.ResponseWriter, *http.Request) { panic("oh no") },
		"an error":  func(http.ResponseWriter, *http.Request) { panic(errors.New("oh no")) },
		"an abort":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a Goexit":  func(http.ResponseWriter, *http.Request) { runtime.Goexit() },
		"a failure": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(12) },
	} {
		srv := &heedtest.Server{Handler: h, MaxConcurrent: 1}
		for range 2 { // the first has left its place in service
			resp, err := (&http.Client{Transport: srv}).Get("http://api.test/")
			if !errors.Is(err, heedtest.ErrCut) || !errors.Is(err, io.EOF) {
				t.Errorf("%s: got %v, %v", name, resp, err)
			}
			if name == "a panic" && !strings.Contains(err.Error(), "oh no") {
				t.Errorf("it does not say why: %v", err)
			}
		}
		if e := newest(srv); e.Status != 0 || e.Rejected {
			t.Errorf("%s: the event is %+v", name, e)
		}
	}
}

func TestAServersRequestHasNothingOfTheClientsContext(t *testing.T) {
	type key struct{}
	srv := &heedtest.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if v := r.Context().Value(key{}); v != nil {
			t.Errorf("it has %v", v)
		}
		if err := r.Context().Err(); err != nil {
			t.Error(err)
		}
	})}
	req, err := http.NewRequestWithContext(context.WithValue(t.Context(), key{}, "secret"), http.MethodGet, "http://api.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := srv.RoundTrip(req); err != nil {
		t.Error(err)
	}
}

func TestEarlyHintsReachTheTrace(t *testing.T) {
	srv := &heedtest.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
	})}
	var got []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		got = append(got, fmt.Sprint(code, h.Get("Link")))
		return nil
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusCreated || fmt.Sprint(got) != "[103</style.css>]" {
		t.Errorf("got %v, %v, hints %v", resp, err, got)
	}
}

func TestAnErrorSaysWhatToDo(t *testing.T) {
	srv := &heedtest.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/abort" {
			panic(http.ErrAbortHandler)
		}
	})}
	for _, c := range []struct {
		change func(*http.Request)
		want   string
	}{
		{func(r *http.Request) { r.URL = nil }, "set Request.URL"},
		{func(r *http.Request) { r.Header = nil }, "use http.NewRequest"},
		{func(r *http.Request) { r.URL.Host = "" }, "needs an absolute URL"},
		{func(r *http.Request) { r.ContentLength = 5 }, "ContentLength=5 with Body length 4: a body that is sent again must be made anew by GetBody"},
		{func(r *http.Request) { r.ContentLength = 3 }, "ContentLength=3"},
		{func(r *http.Request) { r.URL.Path = "/abort" }, "the handler aborted"},
	} {
		req, err := http.NewRequest(http.MethodPost, "http://api.test/", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		c.change(req)
		if _, err := srv.RoundTrip(req); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want something with %q", err, c.want)
		}
	}
}

func TestARedirectIsFollowed(t *testing.T) {
	srv := &heedtest.Server{Handler: http.RedirectHandler("/again", http.StatusFound)}
	_, err := (&http.Client{Transport: srv}).Get("http://api.test/")
	if err == nil || srv.Report().Accepted != 10 {
		t.Errorf("got %v after %d requests", err, srv.Report().Accepted)
	}
}

func TestRespondTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Latency: time.Second, Jitter: time.Second}
		began := time.Now()
		req, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := srv.Respond(req); err != nil || time.Since(began) != 0 {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}
