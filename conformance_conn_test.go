package heed_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedhttp/heed"
)

// eachShape runs a test for every shape over both protocols. conns counts the connections that were made.
func eachShape(t *testing.T, h http.HandlerFunc, run func(t *testing.T, c *http.Client, url string, conns *atomic.Int32)) {
	protocols(t, func(t *testing.T, h2 bool) {
		for _, shape := range slices.Sorted(maps.Keys(shapes)) {
			t.Run(shape, func(t *testing.T) {
				var conns atomic.Int32
				s := httptest.NewUnstartedServer(h)
				s.Config.ErrorLog = silent
				s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
					if state == http.StateNew {
						conns.Add(1)
					}
				}
				if s.EnableHTTP2 = h2; h2 {
					s.StartTLS()
				} else {
					s.Start()
				}
				t.Cleanup(s.Close)
				base := s.Client().Transport.(*http.Transport)
				base.MaxConnsPerHost = 1
				tr := shapes[shape](base)
				if outer, ok := tr.(*heed.Transport); ok {
					outer.Retry.BaseDelay = time.Millisecond // real time: sockets do not live in a bubble
				}
				run(t, &http.Client{Transport: tr}, s.URL, &conns)
			})
		}
	})
}

func TestFailuresAreRetriedOnOneConnection(t *testing.T) {
	var n atomic.Int32
	eachShape(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if n.Add(1)%4 != 0 {
			w.WriteHeader(500)
			_, _ = w.Write(make([]byte, 2<<10))
			return
		}
		fmt.Fprintf(w, "%d bytes", len(b))
	}, func(t *testing.T, c *http.Client, url string, conns *atomic.Int32) {
		n.Store(0)
		req, _ := http.NewRequestWithContext(t.Context(), "PUT", url, strings.NewReader(strings.Repeat("x", 1663)))
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "1663 bytes" || err != nil || conns.Load() != 1 || heed.InfoOf(resp).Attempts != 4 {
			t.Errorf("%q, %v over %d connections, info %+v", b, err, conns.Load(), heed.InfoOf(resp))
		}
	})
}

func TestAnEndlessFailureDoesNotHoldItsConnectionForEver(t *testing.T) {
	var n atomic.Int32
	eachShape(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) > 1 {
			_, _ = io.WriteString(w, "fine")
			return
		}
		w.WriteHeader(503)
		w.(http.Flusher).Flush()
		<-r.Context().Done() // a body that never comes; real time: the drain's tenth of a second, over sockets
	}, func(t *testing.T, c *http.Client, url string, _ *atomic.Int32) {
		n.Store(0)
		start := time.Now()
		resp, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "fine" || err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("%q, %v after %v", b, err, time.Since(start))
		}
	})
}

func TestARefusalIsWaitedForOverRealSockets(t *testing.T) {
	var n atomic.Int32
	eachShape(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if n.Add(1) == 1 {
			w.Header().Set("Retry-After-Ms", "ignored")
			w.Header().Set("Retry-After", "0.03") // real time: sockets do not live in a bubble
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		_, _ = io.WriteString(w, "fine")
	}, func(t *testing.T, c *http.Client, url string, conns *atomic.Int32) {
		n.Store(0)
		resp, err := c.Post(url, "text/plain", strings.NewReader("payload"))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if i := heed.InfoOf(resp); string(b) != "fine" || i.Attempts != 2 || i.Waited() < 25*time.Millisecond || conns.Load() != 1 {
			t.Errorf("%q over %d connections, info %+v", b, conns.Load(), i)
		}
	})
}

func TestTheClientsTimeoutEndsASendAndABody(t *testing.T) {
	eachShape(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, "begun")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}, func(t *testing.T, c *http.Client, url string, _ *atomic.Int32) {
		c.Timeout = 30 * time.Millisecond // real time: http.Client's own timer is under test
		var timeout interface{ Timeout() bool }
		_, err := c.Get(url + "/header")
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("before the header: %v, want a timeout", err)
		}
		c.Timeout = 100 * time.Millisecond
		resp, err := c.Get(url + "/body")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(b) != "begun" || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("in the body: %q, %v, want a timeout", b, err)
		}
	})
}

func TestACancelWhileTheBodyIsReadEndsTheReadAndFreesTheSlot(t *testing.T) {
	eachShape(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		if r.URL.Path == "/stuck" {
			<-r.Context().Done()
		}
	}, func(t *testing.T, c *http.Client, url string, _ *atomic.Int32) {
		for range 10 { // more than there are slots and connections
			ctx, cancel := context.WithCancel(t.Context())
			req, _ := http.NewRequestWithContext(ctx, "GET", url+"/stuck", nil)
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			begun := make([]byte, 5)
			_, err = io.ReadFull(resp.Body, begun)
			cancel()
			_, rest := io.ReadAll(resp.Body)
			if string(begun) != "begun" || err != nil || !errors.Is(rest, context.Canceled) {
				t.Errorf("%q, %v, then %v", begun, err, rest)
			}
			// The body is not closed: the error of the read has freed all that it held.
		}
		resp, err := c.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	})
}

func TestAStreamOfEventsArrivesAsItIsSent(t *testing.T) {
	next := make(chan struct{})
	eachShape(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	}, func(t *testing.T, c *http.Client, url string, _ *atomic.Int32) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		req.Header.Set("Accept", "text/event-stream")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			line, err := lines.ReadString('\n')
			if line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("event %d reads %q, %v", i, line, err)
			}
			next <- struct{}{}
		}
	})
}

func TestABodyIsStreamedWhileTheAnswerIsRead(t *testing.T) {
	eachShape(t, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil && r.ProtoMajor == 1 {
			t.Error(err)
		}
		w.(http.Flusher).Flush()
		lines := bufio.NewReader(r.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, strings.ToUpper(line))
			w.(http.Flusher).Flush()
		}
	}, func(t *testing.T, c *http.Client, url string, _ *atomic.Int32) {
		r, w := io.Pipe()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", url, r)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		lines := bufio.NewReader(resp.Body)
		for _, word := range []string{"one\n", "two\n"} {
			_, _ = io.WriteString(w, word)
			if line, err := lines.ReadString('\n'); line != strings.ToUpper(word) {
				t.Fatalf("%q, %v", line, err)
			}
		}
		w.Close()
		if rest, err := io.ReadAll(lines); len(rest) != 0 || err != nil {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

func TestAnEarlyAnswerEndsAStreamedBody(t *testing.T) {
	enough := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "enough", http.StatusRequestEntityTooLarge)
	})
	protocols(t, func(t *testing.T, h2 bool) {
		s := server(t, h2, enough)
		r, w := io.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return // the transport closed the reader
				}
			}
		}()
		resp, err := (&http.Client{Transport: shapes["full"](s.Client().Transport)}).Post(s.URL, "text/plain", r)
		if err != nil {
			// HTTP/1.1 may see the closed connection before the answer: then nothing is sent again.
			if heed.InfoOfError(err).Attempts != 1 {
				t.Errorf("%v, info %+v", err, heed.InfoOfError(err))
			}
		} else {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusRequestEntityTooLarge || heed.InfoOf(resp).Attempts != 1 {
				t.Errorf("status %d, info %+v", resp.StatusCode, heed.InfoOf(resp))
			}
		}
		<-done
	})
}

func TestIdleConnectionsAreClosedOnDemand(t *testing.T) {
	eachShape(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") },
		func(t *testing.T, c *http.Client, url string, conns *atomic.Int32) {
			get := func() {
				resp, err := c.Get(url)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			get()
			get()
			if n := conns.Load(); n != 1 {
				t.Errorf("two requests made %d connections", n)
			}
			c.CloseIdleConnections()
			get()
			if n := conns.Load(); n != 2 {
				t.Errorf("after closing there are %d connections, want 2", n)
			}
		})
}

func TestTheAccountOfACallIsFoundThroughAClient(t *testing.T) {
	eachShape(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/from" {
			http.Redirect(w, r, "/to", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "x")
	}, func(t *testing.T, c *http.Client, url string, _ *atomic.Int32) {
		c.Timeout = time.Minute
		resp, err := c.Get(url + "/from")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if i := heed.InfoOf(resp); i.Attempts != 1 || i.Scope != url || i.Status != 200 {
			t.Errorf("info %+v", i)
		}
		if resp.Request.URL.Path != "/to" || resp.Request.Response == nil || heed.InfoOf(resp.Request.Response).Attempts != 1 {
			t.Errorf("the answer is to %s", resp.Request.URL)
		}
	})
}

func TestAServerThatIsGoneIsADialErrorForAnyMethod(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	url := s.URL
	s.Close()
	tr := &heed.Transport{Base: new(http.Transport), Retry: heed.Retry{MaxAttempts: 3, BaseDelay: time.Millisecond}} // real time: a real dial
	_, err := tr.Client().Post(url, "text/plain", strings.NewReader("x"))
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || heed.InfoOfError(err).Attempts != 3 {
		t.Errorf("%v, info %+v; want a dial error after 3 sends", err, heed.InfoOfError(err))
	}
}

func TestAnUnknownCertificateIsNotTriedAgain(t *testing.T) {
	protocols(t, func(t *testing.T, h2 bool) {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.EnableHTTP2, s.Config.ErrorLog = h2, silent
		s.StartTLS()
		t.Cleanup(s.Close)
		tr := &heed.Transport{Base: &http.Transport{ForceAttemptHTTP2: h2}, Retry: heed.Retry{BaseDelay: time.Millisecond}}
		_, err := tr.Client().Get(s.URL)
		if i := heed.InfoOfError(err); i.Attempts != 1 || i.Stopped != heed.StopFinal {
			t.Errorf("%v, info %+v", err, i)
		}
		_, err = tr.Client().Get("https" + strings.TrimPrefix(server(t, false, http.NotFoundHandler()).URL, "http"))
		if i := heed.InfoOfError(err); !errors.Is(err, http.ErrSchemeMismatch) || i.Attempts != 1 {
			t.Errorf("%v, info %+v", err, i)
		}
	})
}

func TestManyCallersShareOneTransportFromTheFirstUseOn(t *testing.T) {
	eachShape(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") },
		func(t *testing.T, c *http.Client, url string, _ *atomic.Int32) {
			var wg sync.WaitGroup
			for range 16 {
				wg.Go(func() {
					for range 4 {
						resp, err := c.Get(url)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				})
			}
			wg.Wait()
		})
}
