package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

// site is what the test servers serve.
type site struct {
	hung chan struct{} // gets one for each that asks for /hang
	gate chan struct{} // closed when somebody asked for /open
	open sync.Once
}

func newSite() *site { return &site{hung: make(chan struct{}, 100), gate: make(chan struct{})} }

func (s *site) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /text/{name...}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "<%s>\n", r.PathValue("name"))
	})
	mux.HandleFunc("GET /agent", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, r.UserAgent()) })
	mux.HandleFunc("GET /big/{size}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("size"))
		lines := bytes.Repeat([]byte("0123456789abcde\n"), 1024)
		for ; n > 0; n -= len(lines) {
			_, _ = w.Write(lines[:min(n, len(lines))])
		}
	})
	mux.HandleFunc("GET /status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.PathValue("code"))
		w.WriteHeader(code)
		fmt.Fprintln(w, "an error page")
	})
	mux.HandleFunc("GET /cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "0123456789")
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("GET /fresh", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintln(w, "<fresh>")
	})
	mux.HandleFunc("GET /stale", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		fmt.Fprintln(w, "<stale>")
	})
	mux.Handle("GET /away", http.RedirectHandler("/text/landed?token=s3cret", http.StatusFound))
	mux.Handle("GET /loop", http.RedirectHandler("/loop", http.StatusFound))
	mux.HandleFunc("GET /hang", func(_ http.ResponseWriter, r *http.Request) {
		s.hung <- struct{}{}
		<-r.Context().Done()
	})
	// A body that begins at once and ends when /open has been fetched.
	mux.HandleFunc("GET /gated", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "<gated")
		http.NewResponseController(w).Flush()
		select {
		case <-s.gate:
		case <-r.Context().Done():
		}
		fmt.Fprintln(w, ">")
	})
	mux.HandleFunc("GET /open", func(w http.ResponseWriter, _ *http.Request) {
		s.open.Do(func() { close(s.gate) })
		fmt.Fprintln(w, "<open>")
	})
	return mux
}

// start serves the site without a limit, until the test ends.
func start(t *testing.T) (*site, string) {
	t.Helper()
	s := newSite()
	return s, (&heedtest.Server{Handler: s.handler()}).Listen(t)
}

// servers are those of one script, by the name of the variable that has their URL.
func (s *site) servers() map[string]*heedtest.Server {
	now := time.Now() // windows begin here, so that no edge of one comes by chance
	window := func(n float64, d time.Duration) func() limiter.Core {
		return func() limiter.Core { return &limiter.FixedWindow{Limit: n, Window: d, Anchor: now} }
	}
	return map[string]*heedtest.Server{
		"URL":     {Handler: s.handler()},
		"LIMITED": {Handler: s.handler(), Limit: window(5, time.Second), Dialect: heedtest.RateLimit},
		"HELD":    {Handler: s.handler(), Limit: window(1, 2*time.Second), Dialect: heedtest.RetryAfter},
		"CLOSED":  {Handler: s.handler(), Limit: window(1, time.Hour), Dialect: heedtest.RetryAfter},
	}
}

func TestTheSiteIsAsTheScriptsExpectIt(t *testing.T) {
	_, url := start(t)
	for path, want := range map[string]string{"/text/a/b": "<a/b>\n", "/big/20": "0123456789abcde\n0123", "/status/404": "an error page\n"} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != want {
			t.Errorf("%s gives %q, want %q", path, body, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
