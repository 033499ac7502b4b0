package heed_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heedhttp/heed"
)

// The conformance suite runs the same stories against real servers through a
// bare *http.Transport and through heed in several shapes. Each story gives a
// transcript of all that a caller sees; heed's must be the bare one, word for word.

// shapes are the transports under test, by name; each is made over a base of its own.
var shapes = map[string]func(base http.RoundTripper) http.RoundTripper{
	"zero": func(base http.RoundTripper) http.RoundTripper { return &heed.Transport{Base: base} },
	"full": func(base http.RoundTripper) http.RoundTripper {
		tr := &heed.Transport{Base: base, Cache: heed.NewCache(1 << 20), Budget: heed.NewBudget(), Observer: &heed.Observer{}}
		tr.Throttle.Rules = []heed.Rule{{Match: "/", Limits: []heed.Limit{{Quota: 1e6, Window: time.Second}}, Concurrency: 8}}
		return tr
	},
	"nested": func(base http.RoundTripper) http.RoundTripper {
		return &heed.Transport{Base: &heed.Transport{Base: &heed.Transport{Base: base}}}
	},
	"cached": func(base http.RoundTripper) http.RoundTripper {
		return &heed.Transport{Base: base, Cache: heed.NewCache(1 << 20)}
	},
}

// story is one exchange, or several, of a client with a server.
type story struct {
	name   string
	serve  http.HandlerFunc
	play   func(ctx context.Context, w *script, c *http.Client, url string)
	only1  bool // HTTP/1.1 alone
	failed bool // the transcript ends with an error
}

// script is a transcript.
type script struct {
	bytes.Buffer
	t *testing.T
}

func (w *script) say(format string, args ...any) { fmt.Fprintf(&w.Buffer, format+"\n", args...) }

// fail writes an error by its kind, since texts may say more in heed.
func (w *script) fail(err error) {
	var timeout interface{ Timeout() bool }
	w.say("error: canceled %v, deadline %v, timeout %v", errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout())
}

// show writes all that an answer has, and reads it to its end.
func (w *script) show(resp *http.Response, err error) {
	if (resp == nil) == (err == nil) {
		w.t.Errorf("response %v and error %v: want exactly one", resp, err)
	}
	if err != nil {
		w.fail(err)
		return
	}
	if resp.Request == nil {
		w.t.Error("the answer has no Request")
		return
	}
	w.head(resp)
	body, err := io.ReadAll(resp.Body)
	w.say("body: %d bytes, %.60q, error %v", len(body), body, err)
	w.say("close: %v", resp.Body.Close())
	w.say("trailer: %s", fields(resp.Trailer))
	if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
		w.t.Errorf("a closed body reads %d, %v", n, err)
	}
}

func (w *script) head(resp *http.Response) {
	w.say("%s %s %s", resp.Proto, resp.Status, fields(resp.Header))
	w.say("length %d, encoding %v, close %v, uncompressed %v, tls %v, no body %v, announced %s", resp.ContentLength,
		resp.TransferEncoding, resp.Close, resp.Uncompressed, resp.TLS != nil, resp.Body == http.NoBody, fields(resp.Trailer))
	w.say("of %s %s", resp.Request.Method, resp.Request.URL.Path)
}

func fields(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if name != "Date" {
			fmt.Fprintf(&b, "[%s: %s]", name, strings.Join(h[name], " | "))
		}
	}
	return b.String()
}

func (w *script) do(ctx context.Context, c *http.Client, method, url string, body io.Reader, header ...string) {
	w.show(w.send(ctx, c, method, url, body, header...))
}

func (w *script) send(ctx context.Context, c *http.Client, method, url string, body io.Reader, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return c.Do(req)
}

// silent keeps what servers say of broken connections out of the output.
var silent = log.New(io.Discard, "", 0)

// server starts the two kinds of servers.
func server(t *testing.T, h2 bool, h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = silent
	if h2 {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func protocols(t *testing.T, run func(t *testing.T, h2 bool)) {
	t.Run("HTTP1", func(t *testing.T) { run(t, false) })
	t.Run("HTTP2", func(t *testing.T) { run(t, true) })
}

func perform(t *testing.T, x story, s *httptest.Server, wrap func(http.RoundTripper) http.RoundTripper) string {
	t.Helper()
	base := s.Client().Transport.(*http.Transport).Clone()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Transport: wrap(base), Jar: jar}
	w := &script{t: t}
	x.play(t.Context(), w, c, s.URL)
	c.CloseIdleConnections()
	return strings.ReplaceAll(w.String(), s.URL, "URL")
}

func conform(t *testing.T, stories []story) {
	for _, x := range stories {
		t.Run(x.name, func(t *testing.T) {
			protocols(t, func(t *testing.T, h2 bool) {
				if h2 && x.only1 {
					t.Skip("a matter of HTTP/1.1")
				}
				s := server(t, h2, x.serve)
				bare := perform(t, x, s, func(base http.RoundTripper) http.RoundTripper { return base })
				if strings.HasPrefix(bare, "error: ") != x.failed {
					t.Fatalf("the bare transport says:\n%s", bare)
				}
				if h2 && !x.failed && !strings.Contains(bare, "HTTP/2.0") {
					t.Fatalf("this is not HTTP/2:\n%s", bare)
				}
				for _, shape := range slices.Sorted(maps.Keys(shapes)) {
					if got := perform(t, x, s, shapes[shape]); got != bare {
						t.Errorf("through heed (%s):\n%s\nthrough the bare transport:\n%s", shape, got, bare)
					}
				}
			})
		})
	}
}

func getOne(ctx context.Context, w *script, c *http.Client, url string) {
	w.do(ctx, c, "GET", url, nil)
}

func TestACallerSeesThroughHeedWhatTheServerAnswered(t *testing.T) {
	conform(t, []story{
		{name: "a short body", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-Many"] = []string{"a", "b"}
			_, _ = io.WriteString(w, "hello")
		}},
		{name: "a long body", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Repeat([]byte("0123456789"), 100_000))
		}},
		{name: "a body in pieces", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(w, "piece ")
				w.(http.Flusher).Flush()
			}
		}},
		{name: "an empty body", play: getOne, serve: func(http.ResponseWriter, *http.Request) {}},
		{name: "a body of length zero", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "0") }},
		{name: "HEAD", serve: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1234") },
			play: func(ctx context.Context, w *script, c *http.Client, url string) { w.do(ctx, c, "HEAD", url, nil) }},
		{name: "204", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }},
		{name: "304", serve: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"x"`); w.WriteHeader(304) },
			play: func(ctx context.Context, w *script, c *http.Client, url string) {
				w.do(ctx, c, "GET", url, nil, "If-None-Match", `"x"`)
			}},
		{name: "206", serve: func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x.txt", time.Unix(1e9, 0), strings.NewReader("0123456789"))
		}, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "GET", url, nil, "Range", "bytes=2-4")
		}},
		{name: "plain failures", serve: func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "no", map[string]int{"/401": 401, "/404": 404, "/501": 501}[r.URL.Path])
		}, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			for _, path := range []string{"/401", "/404", "/501"} {
				w.do(ctx, c, "GET", url+path, nil)
			}
		}},
		{name: "trailers", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Sum, Never")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("Sum", "42")
			w.Header().Set(http.TrailerPrefix+"Surprise", "yes")
		}},
		{name: "a body that is cut short", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "short")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}},
		{name: "gzip", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, strings.Repeat("squeeze ", 100))
			_ = z.Close()
		}},
		{name: "gzip that was asked for", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "not really gzip")
		}, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "GET", url, nil, "Accept-Encoding", "gzip")
		}},
		{name: "fields about limits", play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) {
			for _, f := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				w.Header().Set(f, "60")
			}
			w.Header().Set("Retry-After", "9")
			w.WriteHeader(202)
		}},
		{name: "a connection that is closed", only1: true, play: getOne, serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "bye")
		}},
		{name: "an answer before the request's end", serve: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "too much", http.StatusRequestEntityTooLarge)
		},
			play: func(ctx context.Context, w *script, c *http.Client, url string) {
				w.do(ctx, c, "POST", url, strings.NewReader(strings.Repeat("x", 10)))
			}},
	})
}

func TestAServerSeesThroughHeedWhatTheCallerSent(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s host=%v length=%d encoding=%v %s body=%d %x error=%v trailer=%s", r.Method, r.URL, r.Proto, r.Host == "named.test",
			r.ContentLength, r.TransferEncoding, fields(r.Header), len(b), bytes.Count(b, []byte("x")), err, fields(r.Trailer))
	}
	conform(t, []story{
		{name: "a POST", serve: echo, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "POST", url+"/a%2Fb?q=1&q=2", strings.NewReader("xyz"), "X-Many", "a", "X-Many", "b")
		}},
		{name: "a stream of unknown length", serve: echo, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "POST", url, io.MultiReader(strings.NewReader("x"), strings.NewReader("xx")))
		}},
		{name: "a GET with a body", serve: echo, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "GET", url, strings.NewReader("x"))
		}},
		{name: "a method of one's own", serve: echo, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "QUERY", url, strings.NewReader("x"))
			w.do(ctx, c, "OPTIONS", url, nil)
		}},
		{name: "trailers of the request", serve: echo, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			req, _ := http.NewRequestWithContext(ctx, "POST", url, nil)
			req.Trailer = http.Header{"Sum": nil}
			req.Body = io.NopCloser(io.MultiReader(strings.NewReader("xx"), atEnd(func() { req.Trailer.Set("Sum", "42") })))
			w.show(c.Do(req))
		}},
		{name: "another host", serve: echo, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
			req.Host = "named.test"
			w.show(c.Do(req))
		}},
		{name: "a request that closes", only1: true, serve: echo, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
			req.Close = true
			w.show(c.Do(req))
		}},
		{name: "a cancelled request", failed: true, serve: func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			play: func(ctx context.Context, w *script, c *http.Client, url string) {
				ctx, cancel := context.WithCancel(ctx)
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }})
				w.do(ctx, c, "GET", url, nil)
			}},
	})
}

// atEnd is a reader that does something when it is asked for more.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) { f(); return 0, io.EOF }

func TestRedirectsAndCookiesWorkThroughHeed(t *testing.T) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/login":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "s1", Path: "/"})
			http.Redirect(w, r, "/home", http.StatusSeeOther)
		case "/307", "/308":
			code := http.StatusTemporaryRedirect
			if r.URL.Path == "/308" {
				code = http.StatusPermanentRedirect
			}
			_, _ = io.Copy(io.Discard, r.Body)
			http.Redirect(w, r, "/home", code)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			b, _ := io.ReadAll(r.Body)
			cookie, err := r.Cookie("session")
			fmt.Fprintf(w, "%s with %q, cookie %v, %v, referer %v", r.Method, b, cookie, err != nil, r.Referer() != "")
		}
	}
	conform(t, []story{
		{name: "a login", serve: serve, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "POST", url+"/login", strings.NewReader("password"))
			w.do(ctx, c, "GET", url+"/home", nil)
		}},
		{name: "307 and 308 with a body", serve: serve, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "POST", url+"/307", strings.NewReader("payload"))
			w.do(ctx, c, "PUT", url+"/308", strings.NewReader("payload"))
		}},
		{name: "307 with a body that is gone", serve: serve, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(ctx, c, "POST", url+"/307", io.MultiReader(strings.NewReader("payload")))
		}},
		{name: "a redirect that is not followed", serve: serve, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			w.do(ctx, c, "GET", url+"/loop", nil)
		}},
	})
}

func TestInterimAnswersReachTheCallersTrace(t *testing.T) {
	traced := func(ctx context.Context, w *script) context.Context {
		var mu sync.Mutex
		return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				mu.Lock()
				defer mu.Unlock()
				w.say("interim %d %s", code, fields(http.Header(h)))
				return nil
			},
			Got100Continue: func() { mu.Lock(); defer mu.Unlock(); w.say("100 continue") },
		})
	}
	conform(t, []story{
		{name: "early hints", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			_, _ = io.WriteString(w, "done")
		}, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(traced(ctx, w), c, "GET", url, nil)
		}},
		{name: "expect continue", serve: func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%d bytes, expect %q", len(b), r.Header.Get("Expect"))
		}, play: func(ctx context.Context, w *script, c *http.Client, url string) {
			w.do(traced(ctx, w), c, "POST", url, strings.NewReader("payload"), "Expect", "100-continue")
		}},
		{name: "expect continue and be refused", serve: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusExpectationFailed) },
			play: func(ctx context.Context, w *script, c *http.Client, url string) {
				w.do(traced(ctx, w), c, "POST", url, strings.NewReader("payload"), "Expect", "100-continue")
			}},
	})
}

func TestAnUpgradedConnectionCanBeWrittenTo(t *testing.T) {
	conform(t, []story{{name: "101", only1: true, serve: func(w http.ResponseWriter, _ *http.Request) {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = buf.Flush()
		line, _ := buf.ReadString('\n')
		_, _ = io.WriteString(buf, "you said "+line)
		_ = buf.Flush()
	}, play: func(ctx context.Context, w *script, c *http.Client, url string) {
		resp, err := w.send(ctx, c, "GET", url, nil, "Connection", "Upgrade", "Upgrade", "echo")
		if err != nil {
			w.fail(err)
			return
		}
		w.head(resp)
		duplex, ok := resp.Body.(io.ReadWriteCloser)
		w.say("writable: %v", ok)
		if !ok {
			return
		}
		_, err = io.WriteString(duplex, "hello\n")
		line, rerr := bufio.NewReader(duplex).ReadString('\n')
		w.say("%v %q %v, close %v", err, line, rerr, duplex.Close())
	}}})
}
