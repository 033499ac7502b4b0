package heed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// replayable makes a request whose body can be sent again, and all bodies made for it.
func replayable(t *testing.T, ctx context.Context, method string, payload []byte) (*http.Request, *[]*callerBody) {
	t.Helper()
	var bodies []*callerBody
	open := func() *callerBody {
		b := &callerBody{Reader: bytes.NewReader(payload)}
		bodies = append(bodies, b)
		return b
	}
	req := newRequest(t, ctx, method, "")
	req.Body, req.ContentLength = open(), int64(len(payload))
	req.GetBody = func() (io.ReadCloser, error) { return open(), nil }
	return req, &bodies
}

func TestEverySendCarriesTheSameBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payload := bytes.Repeat([]byte("0123456789abcdef"), 104) // 1664 bytes
		base := script(breaks(io.EOF), answer(503), answer(429, "Retry-After: 1"), answer(200))
		req, bodies := replayable(t, t.Context(), "PUT", payload)
		resp, err := roundTrip(t, &Transport{Base: base}, req)
		if err != nil || resp.StatusCode != 200 || base.count() != 4 {
			t.Fatalf("%v, %v after %d sends", resp, err, base.count())
		}
		for i, s := range base.sends {
			if s.sum != sha256.Sum256(payload) || s.req.ContentLength != int64(len(payload)) {
				t.Errorf("send %d: %d bytes with ContentLength %d", i+1, len(s.body), s.req.ContentLength)
			}
			if s.req.GetBody == nil {
				t.Errorf("send %d has no GetBody, which redirects and HTTP/2 need", i+1)
			}
		}
		for i := range base.sends[1:] { // the write loop of a connection may still read the one before
			before, now := base.sends[i].req, base.sends[i+1].req
			if before == now || before.URL == now.URL || before.Body == now.Body {
				t.Errorf("sends %d and %d share a request, a URL or a body", i+1, i+2)
			}
		}
		if len(*bodies) != 4 {
			t.Errorf("%d bodies for 4 sends", len(*bodies))
		}
		for i, b := range *bodies {
			if b.closes.Load() != 1 {
				t.Errorf("body %d was closed %d times", i+1, b.closes.Load())
			}
		}
	})
}

func TestABodyThatCannotBeReplayedIsStreamedOnceAndTheRealAnswerComesBack(t *testing.T) {
	for _, x := range []struct {
		name  string
		first reply
		err   error
	}{
		{"a failure", answer(503), nil},
		{"a refusal", answer(429, "Retry-After: 1"), nil},
		{"an error", breaks(io.EOF), io.EOF},
		{"a connection never made", breaks(errRefused), errRefused},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := script(x.first, answer(200))
			body := &callerBody{Reader: strings.NewReader("streamed")}
			req := newRequest(t, t.Context(), "PUT", "")
			req.Body, req.ContentLength = body, -1
			resp, err := roundTrip(t, &Transport{Base: base}, req)
			if base.count() != 1 || base.sends[0].body != "streamed" || !errors.Is(err, x.err) {
				t.Errorf("%s: %d sends, error %v", x.name, base.count(), err)
			}
			if i := accountOf(resp, err); i.Stopped != StopBody {
				t.Errorf("%s: info %+v", x.name, i)
			}
			if body.closes.Load() != 1 {
				t.Errorf("%s: the body was closed %d times", x.name, body.closes.Load())
			}
			if resp != nil {
				content(t, resp)
			}
		})
	}
}

func TestNoBodyIsAlwaysReplayable(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"nil": nil, "http.NoBody": http.NoBody} {
		synctest.Test(t, func(t *testing.T) {
			base := script(answer(503), answer(200))
			req := newRequest(t, t.Context(), "PUT", "")
			req.Body = body
			resp, err := roundTrip(t, &Transport{Base: base}, req)
			if err != nil || base.count() != 2 {
				t.Errorf("%s: %d sends, error %v", name, base.count(), err)
			}
			content(t, resp)
		})
	}
}

func TestAFailureToReadTheCallersBodyIsTheCallersError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := errors.New("the disk is gone")
		req := newRequest(t, t.Context(), "POST", "")
		req.Body = io.NopCloser(iotest.ErrReader(mine))
		base := script(answer(200))
		_, err := roundTrip(t, &Transport{Base: base}, req)
		if !errors.Is(err, mine) || base.count() > 1 || InfoOfError(err).Attempts != 1 {
			t.Errorf("%v after %d sends", err, InfoOfError(err).Attempts)
		}
	})
}

func TestAGetBodyThatFailsEndsTheCallWithWhatWentBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("the file is gone")
		gaveUp := 0
		tr := &Transport{Base: script(answer(503)), Observer: &Observer{GaveUp: func(Event) { gaveUp++ }}}
		req, _ := replayable(t, t.Context(), "PUT", []byte("x"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, gone }
		_, err := roundTrip(t, tr, req)
		if i := InfoOfError(err); !errors.Is(err, gone) || i.Stopped != StopBody || i.Status != 503 || i.Attempts != 1 || gaveUp != 1 {
			t.Errorf("%v, info %+v, told %d times", err, InfoOfError(err), gaveUp)
		}
	})
}

// TestTheCallersBodyIsClosedExactlyOnceOnEveryPath walks each way out of RoundTrip.
func TestTheCallersBodyIsClosedExactlyOnceOnEveryPath(t *testing.T) {
	type path struct {
		name  string
		tr    *Transport
		spoil func(*http.Request) *http.Request
		panic bool
		sends int
	}
	held := func(t *testing.T) *Transport {
		tr := &Transport{Base: script(answer(429, "Retry-After: 7200"), answer(200))}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		return tr
	}
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []path{
			{name: "sent", tr: &Transport{Base: script(answer(200))}, sends: 1},
			{name: "sent again", tr: &Transport{Base: script(answer(503), answer(200))}, sends: 2},
			{name: "sent in vain", tr: &Transport{Base: script(breaks(errReset))}, sends: 7},
			{name: "with a cache", tr: &Transport{Base: script(answer(503), answer(200)), Cache: NewCache(1 << 20)}, sends: 2},
			{name: "only from a cache", tr: &Transport{Base: script(answer(200)), Cache: NewCache(1 << 20)}, spoil: func(r *http.Request) *http.Request {
				r.Method = "GET"
				r.Header.Set("Cache-Control", "only-if-cached")
				return r
			}},
			{name: "refused by a hold", tr: held(t)},
			{name: "refused for its cost", tr: &Transport{Throttle: Throttle{Rules: []Rule{{Match: "/", Limits: []Limit{{Quota: 1, Window: time.Hour}}, Cost: Cost{Requests: 2}}}}}},
			{name: "a mistake in the configuration", tr: &Transport{Retry: Retry{BaseDelay: -1}}},
			{name: "no URL", tr: &Transport{}, spoil: func(r *http.Request) *http.Request { r.URL = nil; return r }},
			{name: "no host", tr: &Transport{}, spoil: func(r *http.Request) *http.Request { r.URL = &url.URL{Scheme: "http"}; return r }},
			{name: "a dead context", tr: &Transport{}, spoil: func(r *http.Request) *http.Request {
				ctx, cancel := context.WithCancel(r.Context())
				cancel()
				return r.WithContext(ctx)
			}},
			{name: "a base that panics", tr: &Transport{Base: panicsAt(1, nil)}, panic: true},
			{name: "a base that panics at a later send", tr: &Transport{Base: panicsAt(2, script(answer(503)))}, panic: true},
			{name: "an Identity that panics", tr: &Transport{Throttle: Throttle{Identity: func(*http.Request) string { panic("identity") }}}, panic: true},
			{name: "a hook that panics", tr: &Transport{Observer: &Observer{Sent: func(Event) { panic("hook") }}}, panic: true},
		} {
			req, bodies := replayable(t, t.Context(), "PUT", []byte("payload"))
			if x.spoil != nil {
				req = x.spoil(req)
			}
			func() {
				defer func() {
					if p := recover(); (p != nil) != x.panic {
						t.Errorf("%s: panic %v", x.name, p)
					}
				}()
				resp, err := x.tr.RoundTrip(req)
				if err == nil {
					content(t, resp)
				}
			}()
			if base, ok := x.tr.Base.(*scripted); ok && x.sends > 0 && base.count() != x.sends {
				t.Errorf("%s: %d sends, want %d", x.name, base.count(), x.sends)
			}
			for i, b := range *bodies {
				if n := b.closes.Load(); n != 1 {
					t.Errorf("%s: body %d of %d was closed %d times", x.name, i+1, len(*bodies), n)
				}
			}
		}
	})
}

// panicsAt is a base whose nth send panics before it touches the request.
func panicsAt(n int, base http.RoundTripper) http.RoundTripper {
	return baseFunc(func(r *http.Request) (*http.Response, error) {
		if n--; n == 0 {
			panic("base")
		}
		return base.RoundTrip(r)
	})
}

func TestAPanicBelowLeavesNoFlightAndNoSlotBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		tr := &Transport{Base: baseFunc(func(r *http.Request) (*http.Response, error) {
			if broken {
				panic("base")
			}
			return answer(200)(r)
		})}
		tr.Throttle.Rules = []Rule{{Match: "/", Concurrency: 1, Limits: []Limit{{Quota: 100, Window: time.Second}}}}
		func() {
			defer func() { _ = recover() }()
			_, _ = fetch(t, t.Context(), tr)
		}()
		broken = false
		resp, err := fetch(t, t.Context(), tr)
		if err != nil || InfoOf(resp).Waited() != 0 {
			t.Fatalf("%v, info %+v", err, InfoOf(resp))
		}
		content(t, resp)
		conserved(t, tr)
	})
}

// conserved checks that nothing is under way in any scope: no flights, no slots, no waiters.
func conserved(t *testing.T, tr *Transport) {
	t.Helper()
	for _, l := range tr.chain.layers {
		throttle, ok := l.(*throttleLayer)
		if !ok {
			continue
		}
		for _, s := range throttle.scopes.live.Values() {
			s.mu.Lock()
			if s.ledger.flights != 0 || s.ledger.inflight != (Cost{}) {
				t.Errorf("%s: %d flights, %+v in flight", s.name, s.ledger.flights, s.ledger.inflight)
			}
			for i, n := range s.slots {
				if n != 0 {
					t.Errorf("%s: %d slots of rule %d are taken", s.name, n, i)
				}
			}
			for _, q := range s.lanes {
				if q.queue.n != 0 || q.queue.head != nil || q.queue.tail != nil {
					t.Errorf("%s: %d in a queue", s.name, q.queue.n)
				}
			}
			s.mu.Unlock()
		}
	}
}

// spoiler is a base that writes to what it is given, as it must not.
func spoiler(base http.RoundTripper) http.RoundTripper {
	return baseFunc(func(r *http.Request) (*http.Response, error) {
		r.Header.Add("X-Trace", "id")
		r.Header.Del("Accept")
		r.URL.Host = "backend.internal"
		r.URL.RawQuery += "&signed=1"
		return base.RoundTrip(r)
	})
}

func TestWhatABaseWritesReachesNeitherTheCallerNorTheNextSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503), answer(503), answer(503, "Retry-After: 3"), answer(200))
		req := newRequest(t, t.Context(), "PUT", "payload")
		req.Header.Set("Accept", "text/plain")
		req.Header["X-Many"] = []string{"a", "b"}
		req.URL.RawQuery = "q=1"
		req.Trailer = http.Header{"Sum": nil}
		before := req.Clone(req.Context())
		shallow := *req
		resp, err := roundTrip(t, &Transport{Base: spoiler(base), Rand: lowest}, req)
		if err != nil || base.count() != 4 {
			t.Fatal(resp, err)
		}
		content(t, resp)
		for i, s := range base.sends {
			if got := s.header.Values("X-Trace"); len(got) != 1 || s.url != "http://backend.internal/items?q=1&signed=1" {
				t.Errorf("send %d has X-Trace %v and URL %s", i+1, got, s.url)
			}
		}
		if got := fmt.Sprint(base.times()); got != "[0s 500ms 1.5s 4.5s]" {
			t.Errorf("sent at %s", got)
		}
		if InfoOf(resp).Scope != "http://api.test" {
			t.Errorf("counted in the scope %q", InfoOf(resp).Scope)
		}
		if !reflect.DeepEqual(req.Header, before.Header) || *req.URL != *before.URL || !reflect.DeepEqual(req.Trailer, before.Trailer) {
			t.Errorf("the caller's request became %v %v", req.URL, req.Header)
		}
		if req.Body != shallow.Body || req.ContentLength != shallow.ContentLength || req.Method != shallow.Method || req.Host != shallow.Host ||
			req.Context() != shallow.Context() || req.URL != shallow.URL || req.Response != nil {
			t.Error("a field of the caller's request was replaced")
		}
	})
}

func TestARequestWithoutHeaderMapIsSentAndStaysWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := newRequest(t, t.Context(), "GET", "")
		req.Header = nil
		base := script(answer(200))
		resp, err := roundTrip(t, &Transport{Base: base, Cache: NewCache(1 << 20)}, req)
		if err != nil || req.Header != nil {
			t.Fatalf("%v, header %v", err, req.Header)
		}
		content(t, resp)
	})
}

func TestTheHeaderMapIsSharedWithAnHTTPTransportAndWithNobodyElse(t *testing.T) {
	for _, x := range []struct {
		base   http.RoundTripper
		clones bool
	}{
		{nil, false}, {new(http.Transport), false}, {script(answer(200)), true}, {&Transport{}, true}, {baseFunc(nil), true},
	} {
		tr := &Transport{Base: x.base}
		tr.once.Do(tr.compile)
		l := tr.chain.layers[0].(*retryLayer)
		if l.clones != x.clones {
			t.Errorf("%T: clones %v, want %v", x.base, l.clones, x.clones)
		}
		req := newRequest(t, t.Context(), "GET", "")
		req.Header.Set("Accept", "a")
		attempt, err := l.attempt(begin(req, 1), req)
		if err != nil {
			t.Fatal(err)
		}
		attempt.Header.Set("Accept", "b")
		if shared := req.Header.Get("Accept") == "b"; shared == x.clones {
			t.Errorf("%T: the header map is shared: %v", x.base, shared)
		}
	}
}

func TestAFaultyBaseStillGivesExactlyOneOfResponseAndError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := &replyBody{ReadCloser: io.NopCloser(strings.NewReader("x"))}
		for name, base := range map[string]baseFunc{
			"both": func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: both}, errNoHost
			},
			"neither": func(*http.Request) (*http.Response, error) { return nil, nil },
			"no body": func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
		} {
			resp, err := fetch(t, t.Context(), &Transport{Base: base, Retry: Retry{MaxAttempts: 1}})
			if (err == nil) != (name == "no body") {
				t.Errorf("%s: %v, %v", name, resp, err)
			}
			if err == nil && content(t, resp) != "" {
				t.Errorf("%s: a body from nowhere", name)
			}
		}
		if both.closes.Load() != 1 {
			t.Errorf("the answer that came with an error was closed %d times", both.closes.Load())
		}
	})
}

func TestMisfitTellsRequestsThatNoTransportSends(t *testing.T) {
	good := func() *http.Request { return newRequest(t, t.Context(), "GET", "") }
	for name, x := range map[string]struct {
		change func(*http.Request)
		err    error
		want   bool
	}{
		"a plain one":                                      {func(*http.Request) {}, io.EOF, false},
		"a plain one, unknown error":                       {func(*http.Request) {}, errors.New("x"), false},
		"a method of one's own":                            {func(r *http.Request) { r.Method = "M-SEARCH" }, errors.New("x"), false},
		"an empty method":                                  {func(r *http.Request) { r.Method = "" }, errors.New("x"), false},
		"a method with a line break":                       {func(r *http.Request) { r.Method = "GET\n" }, errors.New("x"), true},
		"every character of a token":                       {func(r *http.Request) { r.Header["aZ09!#$%&'*+-.^_`|~"] = nil }, errors.New("x"), false},
		"an empty field name":                              {func(r *http.Request) { r.Header[""] = nil }, errors.New("x"), true},
		"a field name beyond ASCII":                        {func(r *http.Request) { r.Header["Ä"] = nil }, errors.New("x"), true},
		"a colon in a field name":                          {func(r *http.Request) { r.Header["a:"] = nil }, errors.New("x"), true},
		"a tab in a value":                                 {func(r *http.Request) { r.Header["A"] = []string{"a\tb"} }, errors.New("x"), false},
		"UTF-8 in a value":                                 {func(r *http.Request) { r.Header["A"] = []string{"ä"} }, errors.New("x"), false},
		"a null in a later value":                          {func(r *http.Request) { r.Header["A"] = []string{"a", "\x00"} }, errors.New("x"), true},
		"a DEL in a trailer":                               {func(r *http.Request) { r.Trailer = http.Header{"A": {"\x7f"}} }, errors.New("x"), true},
		"a scheme of a base of one's own that was cut off": {func(r *http.Request) { r.URL.Scheme = "unix" }, io.ErrUnexpectedEOF, false},
		"the same that could not dial":                     {func(r *http.Request) { r.URL.Scheme = "unix" }, errRefused, false},
		"a scheme that nobody speaks":                      {func(r *http.Request) { r.URL.Scheme = "unix" }, errors.New("x"), true},
	} {
		req := good()
		x.change(req)
		if got := misfit(req, x.err); got != x.want {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}
