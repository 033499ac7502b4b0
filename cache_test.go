package heed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// cacheRig is a cacheLayer over an origin that a test scripts.
type cacheRig struct {
	tb     testing.TB
	layer  *cacheLayer
	origin func(req *http.Request) (*http.Response, error)

	mu   sync.Mutex
	sent []*http.Request // all that came to the origin
	told []string        // outcomes that the Observer was told
}

func newCacheRig(tb testing.TB, origin func(*http.Request) (*http.Response, error)) *cacheRig {
	r := &cacheRig{tb: tb, origin: origin}
	r.layer = &cacheLayer{next: (*cacheOrigin)(r), cache: new(Cache), watch: &watch{observer: &Observer{
		Cached: func(e Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, e.Cache)
		},
	}}}
	return r
}

type cacheOrigin cacheRig

func (o *cacheOrigin) name() string { return "origin" }

func (o *cacheOrigin) roundTrip(c *call, req *http.Request) (*http.Response, error) {
	o.mu.Lock()
	o.sent = append(o.sent, req)
	o.mu.Unlock()
	if req.Body != nil {
		req.Body.Close()
	}
	return o.origin(req)
}

// cacheReply is an answer with a body of known length, made now unless the fields have a Date.
func cacheReply(status int, body string, fields ...string) *http.Response {
	resp := &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: cacheFields(fields...),
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
	if body == "" {
		resp.Body = http.NoBody
	}
	switch lines, ok := resp.Header["Date"]; {
	case !ok:
		resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	case lines[0] == "none":
		delete(resp.Header, "Date")
	}
	return resp
}

func cacheFields(fields ...string) http.Header {
	h := make(http.Header)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ":")
		h.Add(name, strings.TrimSpace(value))
	}
	return h
}

// cacheGot is an answer read to its end.
type cacheGot struct {
	*http.Response
	body    string
	outcome string
	err     error
}

func (r *cacheRig) request(method, url string, fields ...string) *http.Request {
	r.tb.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		r.tb.Fatal(err)
	}
	req.Header = cacheFields(fields...)
	return req
}

func (r *cacheRig) do(req *http.Request) cacheGot {
	r.tb.Helper()
	c := begin(req, 1)
	resp, err := r.layer.roundTrip(c, req)
	if err != nil {
		if resp != nil {
			r.tb.Error("both an answer and an error")
		}
		return cacheGot{outcome: c.info.Cache, err: err}
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	return cacheGot{resp, string(body), c.info.Cache, err}
}

func (r *cacheRig) get(url string, fields ...string) cacheGot {
	r.tb.Helper()
	return r.do(r.request("GET", url, fields...))
}

func (r *cacheRig) sends() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

// want checks an outcome and how often the origin was asked by now.
func (r *cacheRig) want(got cacheGot, outcome, body string, sends int) {
	r.tb.Helper()
	if got.err != nil {
		r.tb.Fatalf("failed: %v", got.err)
	}
	if got.outcome != outcome || got.body != body || r.sends() != sends {
		r.tb.Errorf("got %q as a %s after %d sends; want %q as a %s after %d", got.body, got.outcome, r.sends(), body, outcome, sends)
	}
}

const cacheURL = "http://api.test/things?page=1"

// always answers the same.
func always(status int, body string, fields ...string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return cacheReply(status, body, fields...), nil }
}

// counting answers with the number of the request as its body.
func counting(fields ...string) func(*http.Request) (*http.Response, error) {
	n := 0
	return func(*http.Request) (*http.Response, error) {
		n++
		return cacheReply(200, fmt.Sprint("v", n), fields...), nil
	}
}

func TestCacheAnswersWhatIsFreshWithoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, counting("Cache-Control: max-age=60", "X-Other: kept", "Content-Type: text/plain"))
		r.want(r.get(cacheURL), "stored", "v1", 1)
		time.Sleep(59 * time.Second)
		got := r.get(cacheURL)
		r.want(got, "hit", "v1", 1)
		if got.Header.Get("X-Other") != "kept" || got.Status != "200 OK" || got.ContentLength != 2 || got.ProtoMajor != 1 {
			t.Errorf("the hit is not what was stored: %+v", got.Response)
		}
		if got.Header.Get("Age") != "59" {
			t.Errorf("Age %q after 59 s (RFC 9111, 5.1)", got.Header.Get("Age"))
		}
		time.Sleep(time.Second) // age 60 is not less than the lifetime of 60 (4.2)
		r.want(r.get(cacheURL), "stored", "v2", 2)
		if got := strings.Join(r.told, " "); got != "stored hit stored" {
			t.Errorf("the Observer was told %q", got)
		}
	})
}

func TestCacheHitTellsWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sends := 0
		tr := &Transport{Cache: NewCache(0), Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			sends++
			return cacheReply(200, "x", "Cache-Control: max-age=60"), nil
		})}
		for i, want := range []Info{{Cache: "stored", Attempts: 1}, {Cache: "hit"}} {
			resp, err := tr.Client().Get(cacheURL)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			resp.Body.Close()
			if got := InfoOf(resp); got.Cache != want.Cache || got.Attempts != want.Attempts {
				t.Errorf("call %d: %+v", i, got)
			}
		}
		if sends != 1 {
			t.Errorf("%d sends", sends)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestCacheOfTheZeroValueWorksAndCanBeShared(t *testing.T) {
	var c Cache
	if c.Len() != 0 || c.Bytes() != 0 {
		t.Error("a new Cache is not empty")
	}
	c.Clear()
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		return cacheReply(200, "x", "Cache-Control: max-age=60"), nil
	})
	a, b := &Transport{Cache: &c, Base: base}, &Transport{Cache: &c, Base: base}
	for i, tr := range []*Transport{a, b} {
		resp, err := tr.Client().Get(cacheURL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := InfoOf(resp).Cache; got != []string{"stored", "hit"}[i] {
			t.Errorf("transport %d: %s", i, got)
		}
	}
	if c.Len() != 1 || c.Bytes() <= 0 {
		t.Errorf("%d entries of %d bytes", c.Len(), c.Bytes())
	}
	if c.Clear(); c.Len() != 0 || c.Bytes() != 0 {
		t.Errorf("after Clear %d entries of %d bytes", c.Len(), c.Bytes())
	}
}

func TestCachePassesStraightThrough(t *testing.T) {
	plain := func(r *cacheRig) *http.Request { return r.request("GET", cacheURL) }
	for name, request := range map[string]func(r *cacheRig) *http.Request{
		"an upgrade": func(r *cacheRig) *http.Request {
			return r.request("GET", cacheURL, "Upgrade: websocket", "Connection: upgrade")
		},
		"CONNECT": func(r *cacheRig) *http.Request { return r.request("CONNECT", cacheURL) },
		"OPTIONS": func(r *cacheRig) *http.Request { return r.request("OPTIONS", cacheURL) },
		"TRACE":   func(r *cacheRig) *http.Request { return r.request("TRACE", cacheURL) },
		"QUERY":   func(r *cacheRig) *http.Request { return r.request("QUERY", cacheURL) },
		"a wish for events": func(r *cacheRig) *http.Request {
			return r.request("GET", cacheURL, "Accept: Text/Event-Stream;q=1, */*")
		},
		"a Range (RFC 9110, 14.2)":   func(r *cacheRig) *http.Request { return r.request("GET", cacheURL, "Range: bytes=0-1") },
		"If-Range":                   func(r *cacheRig) *http.Request { return r.request("GET", cacheURL, `If-Range: "a"`) },
		"If-Match (RFC 9111, 4.3.2)": func(r *cacheRig) *http.Request { return r.request("GET", cacheURL, `If-Match: "a"`) },
		"If-Unmodified-Since": func(r *cacheRig) *http.Request {
			return r.request("GET", cacheURL, "If-Unmodified-Since: "+http.TimeFormat)
		},
		"no-store (RFC 9111, 5.2.1.5)": func(r *cacheRig) *http.Request { return r.request("GET", cacheURL, "Cache-Control: no-store") },
		"names in odd letter case": func(r *cacheRig) *http.Request {
			req := plain(r)
			req.Header["rAnGe"] = []string{"bytes=0-1"}
			return req
		},
		"a GET with a body": func(r *cacheRig) *http.Request {
			req := plain(r)
			req.Body = io.NopCloser(strings.NewReader("b"))
			return req
		},
		"the wish of a call (NoCache)": func(r *cacheRig) *http.Request {
			return plain(r).WithContext(WithCall(context.Background(), Call{NoCache: true}))
		},
		"the wish, and only-if-cached": func(r *cacheRig) *http.Request {
			return r.request("GET", cacheURL, "Cache-Control: only-if-cached").WithContext(WithCall(context.Background(), Call{NoCache: true}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := &plainBody{Reader: strings.NewReader("v")}
			r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
				resp := cacheReply(200, "v", "Cache-Control: max-age=60")
				resp.Body = body
				return resp, nil
			})
			for range 2 {
				req := request(r)
				c := begin(req, 1)
				resp, err := r.layer.roundTrip(c, req)
				if err != nil {
					t.Fatal(err)
				}
				if c.info.Cache != "bypass" || resp.Body != io.ReadCloser(body) || r.sent[len(r.sent)-1] != req {
					t.Errorf("outcome %s, body %T", c.info.Cache, resp.Body)
				}
			}
			if r.sends() != 2 || r.layer.cache.Len() != 0 || len(r.told) != 2 {
				t.Errorf("%d sends, %d entries, told %q", r.sends(), r.layer.cache.Len(), r.told)
			}
			// And a fresh entry does not answer it.
			r.origin = always(200, "w", "Cache-Control: max-age=60")
			r.want(r.get(cacheURL), "stored", "w", 3)
			r.want(r.do(request(r)), "bypass", "w", 4)
		})
	}
}

type plainBody struct{ io.Reader }

func (*plainBody) Close() error { return nil }

func TestCacheLeavesAStreamOfEventsAlone(t *testing.T) {
	body := &plainBody{Reader: strings.NewReader("data: 1\n\n")}
	r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
		resp := cacheReply(200, "", "Cache-Control: max-age=60", "Content-Type: text/event-stream; charset=utf-8")
		resp.Body, resp.ContentLength = body, -1
		return resp, nil
	})
	req := r.request("GET", cacheURL)
	resp, err := r.layer.roundTrip(begin(req, 1), req)
	if err != nil || resp.Body != io.ReadCloser(body) {
		t.Errorf("%v, body %T", err, resp.Body)
	}
}

func TestCacheNeverAsksTheServerForOnlyIfCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const only = "Cache-Control: only-if-cached"
		r := newCacheRig(t, counting("Cache-Control: max-age=60, stale-if-error=600", `ETag: "a"`, "Vary: Accept"))
		unsatisfied := func(got cacheGot) {
			t.Helper()
			if got.err != nil || got.StatusCode != 504 || got.outcome != "miss" || got.Request == nil || got.Body == nil {
				t.Errorf("%+v (RFC 9111, 5.2.1.7)", got)
			}
		}
		unsatisfied(r.get(cacheURL, only))
		r.want(r.get(cacheURL), "stored", "v1", 1)
		r.want(r.get(cacheURL, only), "hit", "v1", 1)
		unsatisfied(r.get(cacheURL, only, "Accept: text/plain")) // another variant
		unsatisfied(r.get(cacheURL, only, "Range: bytes=0-1"))
		unsatisfied(r.get(cacheURL, only+", no-cache"))
		req, body := r.request("GET", cacheURL, only), new(countingBody)
		req.Body = body
		if unsatisfied(r.do(req)); body.n != 1 {
			t.Errorf("the body was closed %d times", body.n)
		}
		time.Sleep(61 * time.Second)
		unsatisfied(r.get(cacheURL, only))
		r.want(r.get(cacheURL, only+", max-stale=5"), "hit", "v1", 1)
	})
}

func TestCacheObeysTheDirectivesOfARequest(t *testing.T) {
	for _, tt := range []struct {
		name, stored string
		after        time.Duration
		request      string
		hit          bool
	}{
		{"nothing asked", "max-age=60", 30 * time.Second, "", true},
		{"max-age shortens (5.2.1.1)", "max-age=60", 30 * time.Second, "max-age=29", false},
		{"max-age shortens not below", "max-age=60", 30 * time.Second, "max-age=30", true},
		{"max-age never lengthens", "max-age=60", 90 * time.Second, "max-age=600", false},
		{"max-age of nothing validates always", "max-age=60", 0, "max-age=0", false},
		{"max-age that is none", "max-age=60", time.Second, "max-age=x", false},
		{"min-fresh (5.2.1.3)", "max-age=60", 30 * time.Second, "min-fresh=30", true},
		{"min-fresh too much", "max-age=60", 30 * time.Second, "min-fresh=31", false},
		{"max-stale (5.2.1.2)", "max-age=60", 70 * time.Second, "max-stale=10", true},
		{"max-stale too stale", "max-age=60", 71 * time.Second, "max-stale=10", false},
		{"max-stale of any age", "max-age=60", 1e6 * time.Second, "max-stale", true},
		{"max-stale against must-revalidate (5.2.2.2)", "max-age=1, must-revalidate", 2 * time.Second, "max-stale=600", false},
		{"max-stale against no-cache (5.2.2.4)", "max-age=60, no-cache", 2 * time.Second, "max-stale=600", false},
		{"max-stale with max-age", "max-age=60", 70 * time.Second, "max-stale=600, max-age=69", false},
		{"no-cache (5.2.1.4)", "max-age=60", 0, "No-Cache", false},
		{"no-cache in an answer, in any letter case", `max-age=60, No-CaChE`, 0, "", false},
		{"no-cache for one field", `max-age=60, no-cache="set-cookie"`, 0, "", false},
		{"private is for us", `max-age=60, private="x"`, 0, "", true},
		{"s-maxage is not for us (5.2.2.10)", "max-age=60, s-maxage=1", 30 * time.Second, "", true},
		{"s-maxage alone is nothing", "s-maxage=60", 0, "", false},
		{"an unknown directive", "max-age=60, x=\"no-store, no-cache\"", 0, "", true},
		{"quoted", `max-age="60"`, 30 * time.Second, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCacheRig(t, counting("Cache-Control: "+tt.stored, `ETag: "a"`))
				r.get(cacheURL)
				time.Sleep(tt.after)
				var fields []string
				if tt.request != "" {
					fields = []string{"Cache-Control: " + tt.request}
				}
				got := r.get(cacheURL, fields...)
				if hit := got.outcome == "hit"; hit != tt.hit {
					t.Errorf("outcome %s", got.outcome)
				}
			})
		})
	}
}

func TestCachePragmaCountsOnlyWithoutCacheControl(t *testing.T) {
	r := newCacheRig(t, counting("Cache-Control: max-age=60"))
	r.get(cacheURL)
	if got := r.get(cacheURL, "Pragma: no-cache"); got.outcome == "hit" {
		t.Error("Pragma: no-cache was not obeyed (RFC 9111, 5.4)")
	}
	if got := r.get(cacheURL, "Pragma: no-cache", "Cache-Control: max-age=60"); got.outcome != "hit" {
		t.Errorf("Pragma beat Cache-Control: %s", got.outcome)
	}
}

func TestCacheGivesACallerThatWentAwayItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=60, stale-if-error=600"))
		r.get(cacheURL)
		cause := errors.New("the caller had enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		req := r.request("GET", cacheURL).WithContext(ctx)
		closed := new(countingBody)
		req.Body = closed
		got := r.do(req)
		if !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, cause) || r.sends() != 1 {
			t.Errorf("%v after %d sends", got.err, r.sends())
		}
		if closed.n != 1 {
			t.Errorf("the body was closed %d times", closed.n)
		}
		// Also when it leaves while the server is asked, and a stale answer would be there.
		time.Sleep(time.Minute)
		ctx, cancel = context.WithCancelCause(t.Context())
		r.origin = func(*http.Request) (*http.Response, error) {
			cancel(cause)
			return nil, context.Canceled
		}
		if got := r.do(r.request("GET", cacheURL).WithContext(ctx)); !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %q, %v", got.body, got.err)
		}
	})
}

type countingBody struct{ n int }

func (b *countingBody) Read([]byte) (int, error) { return 0, io.EOF }
func (b *countingBody) Close() error             { b.n++; return nil }

func TestCacheHitIsItsCallersOwn(t *testing.T) {
	r := newCacheRig(t, always(200, "body of many", "Cache-Control: max-age=60", "X-A: 1", "X-A: 2"))
	r.get(cacheURL)
	first := r.get(cacheURL)
	first.Header["X-A"][0] = "changed"
	first.Header["X-A"] = append(first.Header["X-A"], "more")
	first.Header.Set("X-B", "new")
	copy([]byte(first.body), "xxxx")
	second := r.get(cacheURL)
	if fmt.Sprint(second.Header["X-A"]) != "[1 2]" || second.Header.Get("X-B") != "" || second.body != "body of many" {
		t.Errorf("one caller changed another's answer: %v %q", second.Header, second.body)
	}
	req := r.request("GET", cacheURL)
	resp, err := r.layer.roundTrip(begin(req, 1), req)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 4)
	_, _ = io.ReadFull(resp.Body, p)
	copy(p, "XXXX")
	if got := r.get(cacheURL); got.body != "body of many" {
		t.Errorf("a caller's buffer reached the store: %q", got.body)
	}
	resp.Body.Close()
	if n, err := resp.Body.Read(p); n != 0 || err == nil {
		t.Errorf("a closed body gives %d bytes, %v", n, err)
	}
}

func TestCacheNeverChangesTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("If-None-Match") != "" {
				return cacheReply(304, ""), nil
			}
			return cacheReply(200, "v", "Cache-Control: max-age=1", `ETag: "a"`), nil
		})
		req := r.request("GET", cacheURL, "X-A: 1")
		odd := "x-odd"
		req.Header[odd] = []string{"2"}
		for range 3 {
			r.do(req)
			time.Sleep(2 * time.Second)
		}
		if len(req.Header) != 2 || req.Header.Get("X-A") != "1" || req.Header[odd][0] != "2" {
			t.Errorf("the caller's header is now %v", req.Header)
		}
		if last := r.sent[2]; last.Header[odd] == nil || last.Header.Get("If-None-Match") != `"a"` {
			t.Errorf("what was sent lacks a field: %v", last.Header)
		}
	})
}

func TestCacheKeepsNeitherCookiesNorFieldsOfAConnection(t *testing.T) {
	r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=60", "Set-Cookie: s=1", "Connection: close, X-Hop", "X-Hop: 1",
		"Keep-Alive: timeout=5", "Proxy-Authenticate: Basic", "Proxy-Connection: x", "TE: x", "Upgrade: h2c", "Trailer: X", "X-End: 2", "Age: 7"))
	first := r.get(cacheURL)
	if first.Header.Get("Set-Cookie") == "" || first.Header.Get("X-Hop") == "" || first.Header.Get("Age") != "7" {
		t.Errorf("the answer itself was changed: %v", first.Header)
	}
	got := r.get(cacheURL)
	for _, name := range []string{"Set-Cookie", "Connection", "X-Hop", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Upgrade", "Trailer"} {
		if _, ok := got.Header[name]; ok {
			t.Errorf("a hit carries %s (RFC 9111, 3.1)", name)
		}
	}
	if got.Header.Get("X-End") != "2" || got.outcome != "hit" {
		t.Errorf("%s without the field of the answer: %v", got.outcome, got.Header)
	}
}

func TestCacheHitHasTheShapeOfItsMiss(t *testing.T) {
	for name, shape := range map[string]func(resp *http.Response){
		"length known":               func(*http.Response) {},
		"chunked":                    func(resp *http.Response) { resp.ContentLength = -1 },
		"decompressed by net/http":   func(resp *http.Response) { resp.ContentLength, resp.Uncompressed = -1, true },
		"still encoded":              func(resp *http.Response) { resp.Header.Set("Content-Encoding", "br") },
		"HTTP/2":                     func(resp *http.Response) { resp.Proto, resp.ProtoMajor, resp.ProtoMinor = "HTTP/2.0", 2, 0 },
		"a status line of its own":   func(resp *http.Response) { resp.Status = "200 Fine" },
		"a base that says no length": func(resp *http.Response) { resp.ContentLength = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
				resp := cacheReply(200, "some body", "Cache-Control: max-age=60", "Content-Type: x/y")
				shape(resp)
				return resp, nil
			})
			miss, hit := r.get(cacheURL), r.get(cacheURL)
			if hit.outcome != "hit" || miss.body != hit.body {
				t.Fatalf("%s with %q", hit.outcome, hit.body)
			}
			hit.Header.Del("Age")
			a := fmt.Sprint(miss.Status, miss.Proto, miss.ProtoMajor, miss.ProtoMinor, miss.ContentLength, miss.Uncompressed, miss.Header)
			b := fmt.Sprint(hit.Status, hit.Proto, hit.ProtoMajor, hit.ProtoMinor, hit.ContentLength, hit.Uncompressed, hit.Header)
			if a != b {
				t.Errorf("miss %s\n hit %s", a, b)
			}
		})
	}
}
