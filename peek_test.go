package heed

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// trickle is a body that gives each part after its delay, then an end.
type trickle struct {
	parts  []string
	delays []time.Duration
	end    error
	closed chan struct{}
}

func newTrickle(end error, delay time.Duration, parts ...string) *trickle {
	b := &trickle{parts: parts, end: end, closed: make(chan struct{})}
	for range parts {
		b.delays = append(b.delays, delay)
	}
	return b
}

func (b *trickle) Read(p []byte) (int, error) {
	if len(b.parts) == 0 {
		return 0, b.end
	}
	timer := time.NewTimer(b.delays[0])
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.closed:
		return 0, http.ErrBodyReadAfterClose
	}
	n := copy(p, b.parts[0])
	if b.parts[0] = b.parts[0][n:]; b.parts[0] == "" {
		b.parts, b.delays = b.parts[1:], b.delays[1:]
	} else {
		b.delays[0] = 0
	}
	return n, nil
}

func (b *trickle) Close() error {
	close(b.closed)
	return nil
}

func answering(status int, kind string, body io.ReadCloser) *http.Response {
	h := make(http.Header)
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	return &http.Response{StatusCode: status, Header: h, Body: body, ContentLength: -1, ProtoMajor: 1, ProtoMinor: 1}
}

func serve(resp func() *http.Response) *Transport {
	return &Transport{
		Base:  roundTripper(func(*http.Request) (*http.Response, error) { return resp(), nil }),
		Retry: Retry{MaxAttempts: -1},
	}
}

func do(t *testing.T, tr *Transport, url string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestAPeekedBodyGivesTheSameBytesAndTheSameEnd(t *testing.T) {
	broken := errors.New("the connection broke")
	long := strings.Repeat("0123456789abcdef", 3*peekBytes/16)
	for name, body := range map[string]struct {
		reader io.Reader
		want   string
		end    error
	}{
		"empty":              {strings.NewReader(""), "", nil},
		"short":              {strings.NewReader("short"), "short", nil},
		"byte by byte":       {iotest.OneByteReader(strings.NewReader("byte by byte")), "byte by byte", nil},
		"data with the end":  {iotest.DataErrReader(strings.NewReader("at once")), "at once", nil},
		"exactly the bound":  {strings.NewReader(long[:peekBytes]), long[:peekBytes], nil},
		"longer":             {strings.NewReader(long), long, nil},
		"longer, in pieces":  {iotest.HalfReader(strings.NewReader(long)), long, nil},
		"fails at once":      {iotest.ErrReader(broken), "", broken},
		"fails midway":       {io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), "half", broken},
		"fails after bounds": {io.MultiReader(strings.NewReader(long), iotest.ErrReader(broken)), long, broken},
	} {
		t.Run(name, func(t *testing.T) {
			resp := answering(429, "application/json", io.NopCloser(body.reader))
			seen := peek(resp, nil)
			if want := body.want[:min(len(body.want), peekBytes)]; string(seen) != want {
				t.Errorf("the peek saw %d bytes, want %d", len(seen), len(want))
			}
			got, err := io.ReadAll(resp.Body)
			if string(got) != body.want || !errors.Is(err, body.end) {
				t.Errorf("%d bytes and %v came after the peek, want %d and %v", len(got), err, len(body.want), body.end)
			}
			if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("a Read after the end gave %d, %v", n, err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestASuccessfulStreamIsReturnedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := serve(func() *http.Response {
			return answering(200, "application/json", newTrickle(io.EOF, 10*time.Minute, "{}", "\n"))
		})
		began := time.Now()
		resp := do(t, tr, "http://stream.example/events")
		if d := time.Since(began); d != 0 {
			t.Errorf("RoundTrip took %v", d)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "{}\n" || err != nil {
			t.Errorf("the body is %q, %v", body, err)
		}
		resp.Body.Close()
	})
}

func TestAPeekEndsAfterASecondAndItsPendingReadIsJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			status int
			url    string
		}{{429, "http://slow.example/"}, {200, "https://slack.com/api/chat.postMessage"}} {
			body := newTrickle(io.EOF, 700*time.Millisecond, "one ", "two ", "three")
			tr := serve(func() *http.Response { return answering(c.status, "application/json", body) })
			began := time.Now()
			resp := do(t, tr, c.url)
			if d := time.Since(began); d != time.Second {
				t.Errorf("RoundTrip took %v, want the second of the peek", d)
			}
			first := make([]byte, 64)
			n, err := resp.Body.Read(first)
			if d := time.Since(began); d != time.Second || string(first[:n]) != "one " || err != nil {
				t.Errorf("the first Read gave %q, %v after %v", first[:n], err, d)
			}
			n, err = resp.Body.Read(first)
			if d := time.Since(began); d != 1400*time.Millisecond || string(first[:n]) != "two " || err != nil {
				t.Errorf("the pending Read gave %q, %v after %v", first[:n], err, d)
			}
			rest, err := io.ReadAll(resp.Body)
			if d := time.Since(began); d != 2100*time.Millisecond || string(rest) != "three" || err != nil {
				t.Errorf("the rest is %q, %v after %v", rest, err, d)
			}
			resp.Body.Close()
		}
	})
}

func TestClosingAPeekedBodyEndsItsPendingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resp := answering(429, "", newTrickle(io.EOF, time.Hour, "late"))
		peek(resp, nil)
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if n, err := resp.Body.Read(make([]byte, 8)); n != 0 || err == nil {
			t.Errorf("a Read after Close gave %d, %v", n, err)
		}
		synctest.Wait() // the bubble ends only when nobody reads any more
	})
}

func TestSuccessfulBodiesAreLookedAtOnlyWhereADialectClaimsThem(t *testing.T) {
	mine := Dialect{Name: "mine", Match: "api.mine.example/calls/", Body: true, Read: func(Answer, *Feedback) bool { return false }}
	for _, c := range []struct {
		status int
		url    string
		kind   string
		method string
		want   bool
	}{
		{200, "https://slack.com/api/x", "application/json", "GET", true},
		{200, "https://slack.com/docs", "application/json", "GET", false},
		{200, "https://evil-slack.com/api/x", "application/json", "GET", false},
		{200, "https://shop.myshopify.com/admin/api/2025-01/graphql.json", "application/json", "POST", true},
		{200, "https://api.github.com/graphql", "application/json; charset=utf-8", "POST", true},
		{200, "https://api.github.com/repos", "application/json", "GET", false},
		{200, "https://api.mine.example/calls/7", "", "GET", true},
		{200, "https://api.mine.example:8443/calls/7", "application/json", "GET", true},
		{200, "https://api.mine.example/other", "application/json", "GET", false},
		{200, "https://other.example/", "application/json", "GET", false},
		{200, "https://slack.com/api/x", "text/event-stream", "GET", false},
		{200, "https://slack.com/api/x", "application/json", "HEAD", false},
		{204, "https://slack.com/api/x", "application/json", "GET", false},
		{304, "https://slack.com/api/x", "application/json", "GET", false},
		{302, "https://slack.com/api/x", "application/json", "GET", false},
		{429, "https://other.example/", "application/json", "GET", true},
		{429, "https://other.example/", "", "GET", true},
		{429, "https://other.example/", "text/event-stream", "GET", false},
		{429, "https://other.example/", "image/png", "GET", false},
		{403, "https://other.example/", "text/plain", "GET", true},
		{404, "https://other.example/", "application/json", "GET", false},
		{404, "https://api.mine.example/calls/7", "application/json", "GET", true},
	} {
		l := &learnLayer{dialects: []Dialect{mine}, looks: looksOf([]Dialect{mine})}
		req := httptest.NewRequest(c.method, c.url, nil)
		resp := answering(c.status, c.kind, io.NopCloser(strings.NewReader("{}")))
		a := Answer{Method: c.method, URL: req.URL, Status: c.status, Header: resp.Header}
		if got := l.looksAt(&a, req, resp); got != c.want {
			t.Errorf("%s %s: %d %s is looked at: %v", c.method, c.url, c.status, c.kind, got)
		}
	}
}

func TestUpgradesAreNeverLookedAt(t *testing.T) {
	l := &learnLayer{looks: looksOf(nil)}
	req := httptest.NewRequest("GET", "https://slack.com/api/x", nil)
	req.Header.Set("Upgrade", "websocket")
	resp := answering(400, "application/json", io.NopCloser(strings.NewReader("{}")))
	if l.looksAt(&Answer{Status: 400, URL: req.URL}, req, resp) {
		t.Error("the answer to an Upgrade was looked at")
	}
}

func TestLengthCodingAndTrailersSurviveAPeekOverRealConnections(t *testing.T) {
	const text = `{"error":{"code":"rate_limit_exceeded","message":"slow down"},"retry_after":7}`
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	io.WriteString(w, text)
	w.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/plain":
			w.WriteHeader(429)
			io.WriteString(w, text)
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(429)
			w.Write(zipped.Bytes())
		case "/trailer":
			w.Header().Set("Trailer", "X-After")
			w.WriteHeader(429)
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
			w.Header().Set("X-After", "all")
		}
	}))
	defer server.Close()
	for _, c := range []struct {
		path, coding string
		length       int64
		want         string
		unzipped     bool
	}{
		{"/plain", "", int64(len(text)), text, false},
		{"/gzip", "", -1, text, true},
		{"/gzip", "gzip", int64(zipped.Len()), zipped.String(), false},
		{"/trailer", "", -1, text, false},
	} {
		base := &http.Transport{}
		tr := &Transport{Base: base, Retry: Retry{MaxAttempts: -1}}
		req, _ := http.NewRequestWithContext(t.Context(), "GET", server.URL+c.path, nil)
		if c.coding != "" {
			req.Header.Set("Accept-Encoding", c.coding)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if told := InfoOf(resp); told.Attempts != 1 {
			t.Errorf("%s was sent %d times", c.path, told.Attempts)
		}
		if resp.ContentLength != c.length || resp.Uncompressed != c.unzipped {
			t.Errorf("%s: ContentLength %d, Uncompressed %v", c.path, resp.ContentLength, resp.Uncompressed)
		}
		body, err := io.ReadAll(resp.Body)
		if string(body) != c.want || err != nil {
			t.Errorf("%s: the body is %q, %v", c.path, body, err)
		}
		if c.path == "/trailer" && resp.Trailer.Get("X-After") != "all" {
			t.Errorf("the trailer is %v", resp.Trailer)
		}
		resp.Body.Close()
		base.CloseIdleConnections()

		resp = answering(429, "application/json", io.NopCloser(strings.NewReader(c.want)))
		if c.coding != "" {
			resp.Header.Set("Content-Encoding", c.coding)
		}
		if fb := ParseFeedback(resp, time.Unix(1e9, 0)); fb.RetryAt != time.Unix(1e9+7, 0) {
			t.Errorf("%s %s: RetryAt is %v", c.path, c.coding, fb.RetryAt)
		}
	}
}

func TestACompressionBombIsReadNoFurtherThanItsBound(t *testing.T) {
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range 64 {
		w.Write(zeros)
	}
	w.Close()
	h := http.Header{"Content-Encoding": {"gzip"}}
	if got := decoded(bomb.Bytes(), h); len(got) > peekBytes {
		t.Errorf("%d bytes were unpacked", len(got))
	}
	for _, coding := range []string{"br", "zstd", "deflate", "gzip"} {
		h.Set("Content-Encoding", coding)
		if got := decoded([]byte("no such coding"), h); len(got) > 0 {
			t.Errorf("%s gave %q", coding, got)
		}
	}
}

func TestARefusalWithStatus200IsSentAgainAndItsBodyReachesTheCallerOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sends := 0
		tr := &Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) {
			if sends++; sends == 1 {
				resp := answering(200, "application/json", io.NopCloser(strings.NewReader(`{"ok":false,"error":"ratelimited"}`)))
				resp.Header.Set("Retry-After", "40")
				return resp, nil
			}
			return answering(200, "application/json", io.NopCloser(strings.NewReader(`{"ok":true}`))), nil
		})}
		began := time.Now()
		resp := do(t, tr, "https://slack.com/api/chat.postMessage")
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if d := time.Since(began); sends != 2 || d < 40*time.Second || d > 50*time.Second || string(body) != `{"ok":true}` {
			t.Errorf("%d sends, %v, body %q", sends, d, body)
		}
	})
}

func TestParseFeedbackByHandLeavesPicturesAlone(t *testing.T) {
	for kind, want := range map[string]bool{"image/png": false, "application/octet-stream": false, "application/json": true, "": true, "text/event-stream": true} {
		body := io.NopCloser(strings.NewReader("error code: 1015"))
		resp := answering(200, kind, body)
		if fb := ParseFeedback(resp, fuzzNow); fb.Limited != want {
			t.Errorf("%q is looked at: %v", kind, fb.Limited)
		}
		if got, err := io.ReadAll(resp.Body); string(got) != "error code: 1015" || err != nil {
			t.Errorf("%q: the body is %q, %v", kind, got, err)
		}
	}
}
