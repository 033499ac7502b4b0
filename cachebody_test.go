package heed

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// pieces is a body that comes as scripted, and counts how often it is closed.
type pieces struct {
	parts  []string
	end    error // io.EOF, or what cuts it short
	joined bool  // the end comes with the last piece
	closed int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, p.end
	}
	n := copy(b, p.parts[0])
	if p.parts[0] = p.parts[0][n:]; p.parts[0] == "" {
		p.parts = p.parts[1:]
	}
	if p.joined && len(p.parts) == 0 {
		return n, p.end
	}
	return n, nil
}

func (p *pieces) Close() error { p.closed++; return nil }

func TestCacheStoresABodyIfAndOnlyIfAllOfItCame(t *testing.T) {
	cut := errors.New("cut short")
	whole := []string{"one ", "two ", "three"}
	const n = int64(len("one two three"))
	for _, tt := range []struct {
		name   string
		length int64
		body   pieces
		read   int // bytes that the caller reads before it closes; -1: to the end
		stored bool
	}{
		{"read to the end, length known", n, pieces{parts: whole, end: io.EOF}, -1, true},
		{"read to the end, length not known", -1, pieces{parts: whole, end: io.EOF}, -1, true},
		{"the end comes with the last piece", -1, pieces{parts: whole, end: io.EOF, joined: true}, -1, true},
		{"read by length and no further", n, pieces{parts: whole, end: io.EOF}, int(n), true},
		{"read by length before an error that no one sees", n, pieces{parts: whole, end: cut}, int(n), true},
		{"not known, the end not seen", -1, pieces{parts: whole, end: io.EOF}, int(n), false},
		{"not known, the end seen with the last piece", -1, pieces{parts: whole, end: io.EOF, joined: true}, int(n), true},
		{"closed early", n, pieces{parts: whole, end: io.EOF}, 5, false},
		{"closed before anything", n, pieces{parts: whole, end: io.EOF}, 0, false},
		{"cut by an error", -1, pieces{parts: whole, end: io.ErrUnexpectedEOF}, -1, false},
		{"cut by an error with the last piece", -1, pieces{parts: whole, end: cut, joined: true}, -1, false},
		{"cut with the last piece though the length is right", n, pieces{parts: whole, end: cut, joined: true}, -1, false},
		{"ends before its length", n + 1, pieces{parts: whole, end: io.EOF}, -1, false},
		{"goes on after its length", n - 1, pieces{parts: whole, end: io.EOF}, -1, false},
		{"empty, length not known", -1, pieces{end: io.EOF}, -1, true},
		{"with empty reads", n, pieces{parts: []string{"one ", "", "two ", "three"}, end: io.EOF}, -1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := tt.body
			body.parts = append([]string(nil), tt.body.parts...)
			all := strings.Join(body.parts, "")
			r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
				resp := cacheReply(200, "", "Cache-Control: max-age=60")
				resp.Body, resp.ContentLength = &body, tt.length
				return resp, nil
			})
			req := r.request("GET", cacheURL)
			resp, err := r.layer.roundTrip(begin(req, 1), req)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			if tt.read < 0 {
				got, err = io.ReadAll(resp.Body)
				if want := map[bool]error{true: nil, false: body.end}[body.end == io.EOF]; err != want {
					t.Errorf("the caller sees %v, not %v", err, want)
				}
				if string(got) != all {
					t.Errorf("the caller got %q", got)
				}
			} else {
				got = make([]byte, tt.read)
				if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != all[:tt.read] {
					t.Errorf("the caller got %q, %v", got, err)
				}
			}
			resp.Body.Close()
			resp.Body.Close()
			if body.closed != 2 {
				t.Errorf("closed %d times for two", body.closed)
			}
			r.origin = always(200, "fresh", "Cache-Control: max-age=60")
			switch again := r.get(cacheURL); {
			case tt.stored && (again.outcome != "hit" || again.body != all):
				t.Errorf("not stored: a %s with %q", again.outcome, again.body)
			case !tt.stored && again.outcome == "hit":
				t.Errorf("stored: %q", again.body)
			}
			if c := r.layer.cache; c.shelf.reserved != 0 {
				t.Errorf("%d bytes are reserved for nothing", c.shelf.reserved)
			}
		})
	}
}

func TestCacheHoldsNoByteBack(t *testing.T) {
	in, out := io.Pipe()
	r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
		resp := cacheReply(200, "", "Cache-Control: max-age=60")
		resp.Body, resp.ContentLength = in, -1
		return resp, nil
	})
	req := r.request("GET", cacheURL)
	resp, err := r.layer.roundTrip(begin(req, 1), req)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	for _, piece := range []string{"first", "second"} {
		go func() { _, _ = io.WriteString(out, piece) }()
		if n, err := resp.Body.Read(buf); string(buf[:n]) != piece || err != nil {
			t.Errorf("%q, %v before the body is complete", buf[:n], err)
		}
	}
	out.Close()
	if n, err := resp.Body.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("%d, %v at the end", n, err)
	}
	r.want(r.get(cacheURL), "hit", "firstsecond", 1)
}

func TestCacheKeepsNoMoreOfABodyThanItMayStore(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 100_000)
	for _, tt := range []struct {
		name   string
		length int64
		reads  int
		most   int
	}{
		{"past the cap, byte by byte", -1, 100, 50_000},
		{"past the cap at once", -1, 60_000, 0},
		{"past its own length", 1000, 300, 1000},
		{"past its own length at once", 1000, 1001, 0},
	} {
		r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
			resp := cacheReply(200, "", "Cache-Control: max-age=60")
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), tt.length
			return resp, nil
		})
		r.layer.cache.MaxEntry = 50_000
		req := r.request("GET", cacheURL)
		resp, err := r.layer.roundTrip(begin(req, 1), req)
		if err != nil {
			t.Fatal(err)
		}
		f, most, buf := resp.Body.(*fill), 0, make([]byte, tt.reads)
		for err == nil {
			_, err = resp.Body.Read(buf)
			most = max(most, cap(f.copied))
		}
		if most > tt.most || most < tt.most/2 || !f.over || r.layer.cache.Len() != 0 {
			t.Errorf("%s: %d bytes were copied, at most %d may be; over: %v", tt.name, most, tt.most, f.over)
		}
	}
}

func TestCacheWastesLittleOnABodyWhoseLengthWasNotKnown(t *testing.T) {
	r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
		resp := cacheReply(200, strings.Repeat("x", 33_000), "Cache-Control: max-age=60")
		resp.ContentLength = -1
		return resp, nil
	})
	r.get(cacheURL)
	if got := r.layer.cache.Bytes(); got < 33_000 || got > 33_000*9/8+3000 {
		t.Errorf("33000 bytes take %d", got)
	}
}

func TestCacheGivesEveryByteOfABodyTooLargeToKeep(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 100_000)
	r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
		resp := cacheReply(200, "", "Cache-Control: max-age=60")
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), -1
		return resp, nil
	})
	r.layer.cache = NewCache(1 << 20)
	r.layer.cache.MaxEntry = 50_000
	most := int64(0)
	req := r.request("GET", cacheURL)
	resp, err := r.layer.roundTrip(begin(req, 1), req)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	buf := make([]byte, 777)
	for {
		n, err := resp.Body.Read(buf)
		got.Write(buf[:n])
		most = max(most, r.layer.cache.Bytes())
		if err != nil {
			break
		}
	}
	if !bytes.Equal(got.Bytes(), body) {
		t.Errorf("%d of %d bytes", got.Len(), len(body))
	}
	if most > 50_000 || most < 10_000 || r.layer.cache.Bytes() != 0 {
		t.Errorf("at most %d bytes were kept meanwhile, %d are left", most, r.layer.cache.Bytes())
	}
}

// A reader that breaks its contract harms neither the caller nor the store.
func TestCacheStoresNothingOfAReaderThatLies(t *testing.T) {
	for _, n := range []int{-1, 1 << 20} {
		r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
			resp := cacheReply(200, "", "Cache-Control: max-age=60")
			resp.Body, resp.ContentLength = &lyingBody{n}, -1
			return resp, nil
		})
		req := r.request("GET", cacheURL)
		resp, err := r.layer.roundTrip(begin(req, 1), req)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := resp.Body.Read(make([]byte, 10)); got != n {
			t.Errorf("read %d", got)
		}
		if r.layer.cache.Bytes() != 0 {
			t.Error("something was stored")
		}
	}
}

type lyingBody struct{ n int }

func (b *lyingBody) Read([]byte) (int, error) { return b.n, io.EOF }
func (b *lyingBody) Close() error             { return nil }

func TestCacheStoresNoTrailersThatShowAtTheEnd(t *testing.T) {
	r := newCacheRig(t, nil)
	r.origin = func(*http.Request) (*http.Response, error) {
		resp := cacheReply(200, "", "Cache-Control: max-age=60")
		resp.ContentLength = -1
		resp.Body = &atEnd{Reader: strings.NewReader("v"), do: func() { resp.Trailer = http.Header{"X-Sum": {"1"}} }}
		return resp, nil
	}
	for i := range 2 {
		got := r.get(cacheURL)
		r.want(got, "stored", "v", i+1)
		if got.Trailer.Get("X-Sum") != "1" {
			t.Errorf("the trailer is lost: %v", got.Trailer)
		}
	}
}

type atEnd struct {
	io.Reader
	do func()
}

func (b *atEnd) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.do()
	}
	return n, err
}

func (b *atEnd) Close() error { return nil }

// Over sockets and net/http as it is: each way to frame a body, cut at random bytes.
func TestCacheOverRealConnections(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	text := strings.Repeat("all work and no play ", 2000)
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		asked[req.URL.Path]++
		mu.Unlock()
		h := w.Header()
		h.Set("Cache-Control", "max-age=600")
		switch {
		case req.URL.Path == "/length":
			h.Set("Content-Length", fmt.Sprint(len(text)))
			_, _ = io.WriteString(w, text)
		case req.URL.Path == "/chunked":
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, text)
		case req.URL.Path == "/gzip":
			h.Set("Content-Encoding", "gzip")
			h.Set("Vary", "Accept-Encoding")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, text)
			z.Close()
		case req.URL.Path == "/json":
			_ = json.NewEncoder(w).Encode(map[string]string{"text": text[:3000]})
		case req.URL.Path == "/trailer":
			h.Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, text)
			h.Set("X-Sum", "1")
		case req.URL.Path == "/late-trailer":
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, text)
			h.Set(http.TrailerPrefix+"X-Sum", "1")
		case req.URL.Path == "/empty":
			w.WriteHeader(http.StatusNoContent)
		case strings.HasPrefix(req.URL.Path, "/cut"):
			var at int
			var length bool
			_, _ = fmt.Sscanf(req.URL.Path, "/cut-%d-%t", &at, &length)
			if length {
				h.Set("Content-Length", fmt.Sprint(len(text)))
			}
			_, _ = io.WriteString(w, text[:at])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := (&Transport{Cache: new(Cache), Base: base, Retry: Retry{MaxAttempts: -1}}).Client()
	get := func(path string) (*http.Response, string, error) {
		resp, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		return resp, string(b), err
	}
	for _, path := range []string{"/length", "/chunked", "/gzip", "/empty"} {
		miss, a, err := get(path)
		hit, b, err2 := get(path)
		if err != nil || err2 != nil || a != b || path != "/empty" && a != text || asked[path] != 1 {
			t.Errorf("%s: %d and %d bytes, asked %d times, %v, %v", path, len(a), len(b), asked[path], err, err2)
		}
		if miss.ContentLength != hit.ContentLength || miss.Uncompressed != hit.Uncompressed || miss.Header.Get("Content-Encoding") != hit.Header.Get("Content-Encoding") {
			t.Errorf("%s: the hit has another shape: %+v\n%+v", path, miss, hit)
		}
	}
	for range 2 { // a decoder never asks for the end; it sees it with the last piece
		resp, err := client.Get(server.URL + "/json")
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]string
		if err := json.NewDecoder(resp.Body).Decode(&v); err != nil || v["text"] != text[:3000] || asked["/json"] != 1 {
			t.Errorf("asked %d times, %v", asked["/json"], err)
		}
		resp.Body.Close()
	}
	for _, path := range []string{"/trailer", "/late-trailer"} {
		for i := range 2 {
			resp, body, err := get(path)
			if body != text || err != nil || resp.Trailer.Get("X-Sum") != "1" || asked[path] != i+1 {
				t.Errorf("%s: %d bytes, %v, trailer %v, asked %d times", path, len(body), err, resp.Trailer, asked[path])
			}
		}
	}
	for range 20 {
		path := fmt.Sprintf("/cut-%d-%t", rand.IntN(len(text)), rand.IntN(2) == 0)
		for i := range 2 {
			_, body, err := get(path)
			if err == nil || !strings.HasPrefix(text, body) {
				t.Errorf("%s: %d bytes without an error", path, len(body))
			}
			if asked[path] != i+1 {
				t.Errorf("%s: what was cut short was stored", path)
			}
		}
	}
}

func TestCacheBodiesMayBeReadAndClosedAtOnce(t *testing.T) {
	r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
		resp := cacheReply(200, "", "Cache-Control: max-age=60")
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", 10_000))), -1
		return resp, nil
	})
	for range 100 {
		r.layer.cache.Clear()
		for range 2 {
			req := r.request("GET", cacheURL)
			resp, err := r.layer.roundTrip(begin(req, 1), req)
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
			wg.Go(func() { resp.Body.Close() })
			wg.Wait()
		}
	}
	if c := r.layer.cache; c.shelf.reserved != 0 {
		t.Errorf("%d bytes stay reserved", c.shelf.reserved)
	}
}

func TestCacheBodyThatChangesWhileItComesIsNotStored(t *testing.T) {
	r := newCacheRig(t, counting("Cache-Control: max-age=600"))
	for name, change := range map[string]func(){
		"by a write":          func() { r.do(r.request("POST", cacheURL)) },
		"by a clear":          func() { r.layer.cache.Clear() },
		"by neither":          func() {},
		"by a POST elsewhere": func() { r.do(r.request("POST", "http://api.test/elsewhere")) },
	} {
		r.layer.cache.Clear()
		req := r.request("GET", cacheURL)
		resp, err := r.layer.roundTrip(begin(req, 1), req)
		if err != nil {
			t.Fatal(err)
		}
		change()
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
		want := map[string]string{"by a write": "stored", "by a clear": "stored"}[name]
		if want == "" {
			want = "hit"
		}
		if got := r.get(cacheURL); got.outcome != want {
			t.Errorf("changed %s: afterwards a %s, want %s", name, got.outcome, want)
		}
	}
}
