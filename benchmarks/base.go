package benchmarks

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"time"
)

// quota is a limit that no run uses up: what is measured is the way through,
// not a wait.
const quota = 1_000_000_000

// Answer is the header of a busy API: twelve fields, of which three are a limit's and one is Date.
func Answer(now time.Time) http.Header {
	h := Plain(now)
	delete(h, "Vary")
	delete(h, "Etag")
	delete(h, "X-Frame-Options")
	h["X-Ratelimit-Limit"] = []string{strconv.Itoa(quota)}
	h["X-Ratelimit-Remaining"] = []string{strconv.Itoa(quota - 1)}
	h["X-Ratelimit-Reset"] = []string{strconv.FormatInt(now.Truncate(time.Hour).Add(2*time.Hour).Unix(), 10)}
	return h
}

// Plain is the header of an answer that says nothing of limits: twelve fields.
func Plain(now time.Time) http.Header {
	return http.Header{
		"Cache-Control":             {"private, max-age=60"},
		"Content-Encoding":          {"gzip"},
		"Content-Type":              {"application/json; charset=utf-8"},
		"Date":                      {now.UTC().Format(http.TimeFormat)},
		"Etag":                      {`W/"5f2c1c3a"`},
		"Last-Modified":             {"Tue, 03 Feb 2026 10:11:12 GMT"},
		"Server":                    {"example"},
		"Strict-Transport-Security": {"max-age=31536000"},
		"Vary":                      {"Accept, Authorization"},
		"X-Content-Type-Options":    {"nosniff"},
		"X-Frame-Options":           {"deny"},
		"X-Request-Id":              {"C0DE:1234:5678:9ABC:DEF0"},
	}
}

// Instant is a base that answers at once, in the process. It never writes to a
// request, but a client cannot know that.
type Instant struct {
	header atomic.Pointer[dated]
}

// dated is an answer's header and the second in which it is true.
type dated struct {
	second int64
	header http.Header
}

// RoundTrip gives 200 and [Answer].
func (b *Instant) RoundTrip(req *http.Request) (*http.Response, error) {
	now := time.Now()
	d := b.header.Load()
	if d == nil || d.second != now.Unix() {
		d = &dated{now.Unix(), Answer(now)}
		b.header.Store(d)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, Body: http.NoBody, Request: req,
	}, nil
}

// Loopback is a server that gives the same answers over a connection. Close it.
func Loopback() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		for name, values := range Answer(time.Now()) {
			h[name] = values
		}
		delete(h, "Content-Encoding")
	}))
}

// Request is what a client of an API sends; with fields it says who it is and what it takes.
func Request(url string, fields bool) *http.Request {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		panic(err) // a mistake in this package
	}
	if fields {
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Authorization", "Bearer 0123456789abcdef")
		req.Header.Set("User-Agent", "example/1.0")
	}
	return req
}
