package heedtest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/heedhttp/heed/heedtest"
)

// seen is what a client sees of an exchange, and what the handler saw of its
// request.
type seen struct {
	Status           string
	Code, Length     int
	Proto            string
	Header, Trailer  http.Header
	TransferEncoding []string
	Body             string
	BodyErr, Err     error
	Request          bool // Response.Request is the request that was sent
	AtHandler        string
}

func exchange(rt http.RoundTripper, req *http.Request) seen {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.EOF
		}
		return seen{Err: err}
	}
	s := seen{
		Status: resp.Status, Code: resp.StatusCode, Length: int(resp.ContentLength), Proto: resp.Proto,
		TransferEncoding: resp.TransferEncoding, Request: resp.Request == req,
	}
	body, err := io.ReadAll(resp.Body)
	s.Body, s.BodyErr = string(body), err
	s.Header, s.Trailer = resp.Header, resp.Trailer
	_ = resp.Body.Close()
	return s
}

// Whatever a handler does, a client on RoundTrip sees what a client of a real
// net/http server sees.
func TestRoundTripAnswersAsARealTransportDoes(t *testing.T) {
	long := strings.Repeat("0123456789", 1000)
	handlers := map[string]http.HandlerFunc{
		"nothing":      func(http.ResponseWriter, *http.Request) {},
		"a short body": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello ", "world") },
		"html":         func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html><body>x") },
		"a type of its own": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "x/y")
			fmt.Fprint(w, "x")
		},
		"no type":    func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil; fmt.Fprint(w, "x") },
		"2048 bytes": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long[:2048]) },
		"2049 bytes": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long[:2049]) },
		"many bytes": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long) },
		"many writes": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "a")
			fmt.Fprint(w, long)
			fmt.Fprint(w, "b")
		},
		"a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10000")
			fmt.Fprint(w, long)
		},
		"a length not kept": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			fmt.Fprint(w, "short")
		},
		"a length exceeded": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2")
			w.WriteHeader(200)
			n, err := fmt.Fprint(w, "long")
			fmt.Fprint(w, n, err)
		},
		"a status":          func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418); fmt.Fprint(w, "tea") },
		"an unknown status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) },
		"the first status":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(500) },
		"204": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(204)
			_, err := fmt.Fprint(w, "x")
			mustBe(err, http.ErrBodyNotAllowed)
		},
		"304": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("ETag", `"x"`); w.WriteHeader(304) },
		"a header too late": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.Header().Set("X-Late", "1")
			fmt.Fprint(w, "x")
		},
		"a header before write": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("X-Two", "1")
			w.Header().Add("X-Two", "2")
			fmt.Fprint(w, "x")
		},
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "a")
			w.(http.Flusher).Flush()
			fmt.Fprint(w, "b")
		},
		"flushed at once": func(w http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(w).Flush()
			fmt.Fprint(w, "b")
		},
		"flushed and nothing": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum, x-other")
			fmt.Fprint(w, "body")
			w.Header().Set("X-Sum", "7")
		},
		"a late trailer": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "body")
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Late", "8")
		},
		"an abort": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an abort after a part": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "part")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
		"an abort after a held part": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "part"); panic(http.ErrAbortHandler) },
		"an early hint":              func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); fmt.Fprint(w, "x") },
		"an echo": func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			fmt.Fprint(w, string(b), err)
		},
		"an error":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/there", http.StatusFound) },
		"a string":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") },
		"not found":  http.NotFound,
	}
	requests := map[string]func() (*http.Request, error){
		"GET": func() (*http.Request, error) { return http.NewRequest(http.MethodGet, "http://api.test", nil) },
		"a path": func() (*http.Request, error) {
			return http.NewRequest("", "https://api.test:444/a%2Fb/c?d=e&f=%20#g", nil)
		},
		"HEAD": func() (*http.Request, error) { return http.NewRequest(http.MethodHead, "http://api.test/", nil) },
		"POST": func() (*http.Request, error) {
			return http.NewRequest(http.MethodPost, "http://api.test/", strings.NewReader("posted"))
		},
		"stream": func() (*http.Request, error) {
			return http.NewRequest(http.MethodPut, "http://api.test/", io.MultiReader(strings.NewReader(long), strings.NewReader(long)))
		},
		"headers": func() (*http.Request, error) {
			r, err := http.NewRequest(http.MethodDelete, "http://api.test/", http.NoBody)
			r.Host = "virtual.test"
			r.Header = http.Header{"User-Agent": {"me"}, "X-Two": {"1", "2"}, "Accept-Encoding": {"identity"}}
			return r, err
		},
	}
	for handler, h := range handlers {
		for request, make := range requests {
			t.Run(handler+"/"+request, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					atHandler := ""
					srv := &heedtest.Server{Dialect: heedtest.RateLimit, Limit: perHour(10), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						r.Header.Del("Accept-Encoding") // of the transport itself
						atHandler = fmt.Sprint(r.Method, " ", r.URL, " ", r.RequestURI, " ", r.Host, " ", r.Proto, " ", r.Header, r.ContentLength, r.Body == http.NoBody)
						h(w, r)
					})}
					other := newLike(srv)
					var got [2]seen
					for i, rt := range []http.RoundTripper{other.Network(t), srv} {
						req, err := make()
						if err != nil {
							t.Fatal(err)
						}
						got[i] = exchange(rt, req)
						got[i].AtHandler = strings.ReplaceAll(atHandler, "Content-Length:["+fmt.Sprint(req.ContentLength)+"] ", "")
					}
					if diff := cmp.Diff(got[0], got[1], cmp.Comparer(func(a, b error) bool { return errors.Is(b, a) })); diff != "" {
						t.Errorf("(-real +RoundTrip):\n%s", diff)
					}
				})
			})
		}
	}
}

func newLike(s *heedtest.Server) *heedtest.Server {
	return &heedtest.Server{Dialect: s.Dialect, Limit: s.Limit, Handler: s.Handler}
}

func mustBe(got, want error) {
	if !errors.Is(got, want) {
		panic(fmt.Sprintf("got %v, want %v", got, want))
	}
}
