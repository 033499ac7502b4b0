package heed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
)

func TestCacheForgetsWhatAnUnsafeMethodChanged(t *testing.T) {
	const a, b = "http://api.test/a", "http://api.test/b"
	for _, tt := range []struct {
		name, method, url string
		status            int
		fields            []string
		dropsA, dropsB    bool
	}{
		{"POST (RFC 9111, 4.4)", "POST", a, 200, nil, true, false},
		{"PUT", "PUT", a, 204, nil, true, false},
		{"PATCH", "PATCH", a, 201, nil, true, false},
		{"DELETE", "DELETE", a, 202, nil, true, false},
		{"a method nobody knows", "M-SEARCH", a, 200, nil, true, false},
		{"a method in lower case, which is another", "get", a, 200, nil, true, false},
		{"a redirect", "POST", a, 303, nil, true, false},
		{"another protocol", "POST", a, 101, nil, false, false},
		{"a client's error", "POST", a, 400, nil, false, false},
		{"a server's error", "POST", a, 500, nil, false, false},
		{"a refusal", "POST", a, 429, nil, false, false},
		{"OPTIONS is safe (RFC 9110, 9.2.1)", "OPTIONS", a, 200, nil, false, false},
		{"TRACE is safe", "TRACE", a, 200, nil, false, false},
		{"QUERY is safe", "QUERY", a, 200, nil, false, false},
		{"another query", "POST", a + "?x=1", 200, nil, false, false},
		{"the host in capitals", "POST", "http://API.test:80/a#f", 200, nil, true, false},
		{"another scheme", "POST", "https://api.test/a", 200, nil, false, false},
		{"its Location", "POST", a, 201, []string{"Location: /b"}, true, true},
		{"its Location alone", "POST", "http://api.test/c", 201, []string{"Location: http://API.test:80/b"}, false, true},
		{"its Content-Location", "POST", "http://api.test/c", 200, []string{"Content-Location: b"}, false, true},
		{"a Location elsewhere", "POST", a, 201, []string{"Location: http://evil.test/b"}, true, false},
		{"a Location at another port", "POST", a, 201, []string{"Location: http://api.test:81/b"}, true, false},
		{"a Location of another scheme", "POST", a, 201, []string{"Location: https://api.test/b"}, true, false},
		{"a Location that is none", "POST", a, 201, []string{"Location: ://%"}, true, false},
		{"the Location of an error", "POST", a, 500, []string{"Location: /b"}, false, false},
		{"from another host, its own Location", "POST", "http://evil.test/c", 201, []string{"Location: http://api.test/b"}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newCacheRig(t, counting("Cache-Control: max-age=600", "Vary: Accept"))
			stored := []*http.Request{
				r.request("GET", a), r.request("GET", a, "Accept: x"), r.request("GET", a, "Authorization: u"), r.request("GET", a, "Authorization: u", "Accept: x"),
				r.request("GET", b), r.request("GET", b, "Cookie: s=1"),
			}
			for _, req := range stored {
				r.do(req)
			}
			r.origin = always(tt.status, "", tt.fields...)
			if got := r.do(r.request(tt.method, tt.url, "Authorization: other")); got.outcome != "bypass" || got.StatusCode != tt.status {
				t.Errorf("%d as a %s", got.StatusCode, got.outcome)
			}
			r.origin = counting()
			for i, req := range stored {
				dropped := r.do(req).outcome != "hit"
				if want := i < 4 && tt.dropsA || i >= 4 && tt.dropsB; dropped != want {
					t.Errorf("entry %d, %s: dropped %v", i, req.URL, dropped)
				}
			}
		})
	}
}

func TestCacheForgetsAlsoForACallThatPassesTheCacheBy(t *testing.T) {
	r := newCacheRig(t, counting("Cache-Control: max-age=600"))
	r.get(cacheURL)
	req := r.request("POST", cacheURL)
	r.do(req.WithContext(WithCall(req.Context(), Call{NoCache: true})))
	if n := r.layer.cache.Len(); n != 0 {
		t.Errorf("%d entries", n)
	}
}

func TestCacheForgetsNothingForALostWrite(t *testing.T) {
	lost := errors.New("lost")
	r := newCacheRig(t, counting("Cache-Control: max-age=600"))
	r.get(cacheURL)
	r.origin = func(*http.Request) (*http.Response, error) { return nil, lost }
	if got := r.do(r.request("PUT", cacheURL)); got.err != lost {
		t.Errorf("got %v", got.err)
	}
	r.want(r.get(cacheURL), "hit", "v1", 2)
}

func TestCacheWritesAlwaysReachTheServer(t *testing.T) {
	r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=600"))
	r.get(cacheURL)
	for i, method := range []string{"PUT", "DELETE", "PUT"} {
		r.want(r.do(r.request(method, cacheURL)), "bypass", "v", i+2)
	}
}

func TestCacheAskedForOneNameAtManyAddressesForgetsEachAlone(t *testing.T) {
	r := newCacheRig(t, counting("Cache-Control: max-age=600"))
	at := func(method, addr string) *http.Request {
		req := r.request(method, "http://"+addr+"/a")
		req.Host = "api.test"
		return req
	}
	r.do(at("GET", "10.0.0.1"))
	r.do(at("GET", "10.0.0.2"))
	r.origin = always(201, "", "Location: http://api.test/a")
	post := at("POST", "10.0.0.1")
	post.URL.Path = "/other"
	r.do(post)
	r.origin = counting()
	if one, two := r.do(at("GET", "10.0.0.1")), r.do(at("GET", "10.0.0.2")); one.outcome == "hit" || two.outcome != "hit" {
		t.Errorf("10.0.0.1: %s, 10.0.0.2: %s", one.outcome, two.outcome)
	}
}

// Random methods, statuses and URIs against a map: only what was written to is dropped, and only by success.
func TestCacheInvalidationAgainstAModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	status := 200
	n := 0
	r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
		n++
		if req.Method != "GET" && req.Method != "HEAD" {
			return cacheReply(status, fmt.Sprint(n)), nil
		}
		return cacheReply(200, fmt.Sprint(n), "Cache-Control: max-age=600"), nil
	})
	model := map[string]string{}
	safe := map[string]bool{"OPTIONS": true, "TRACE": true, "QUERY": true}
	for range 5000 {
		url := fmt.Sprintf("http://h%d.test/%d?q=%d", rnd.IntN(2), rnd.IntN(3), rnd.IntN(2))
		method := []string{"GET", "GET", "GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "QUERY", "PURGE"}[rnd.IntN(11)]
		status = []int{200, 201, 204, 302, 304, 400, 404, 409, 429, 500, 503}[rnd.IntN(11)]
		got := r.do(r.request(method, url))
		if method != "GET" {
			if !safe[method] && status < 400 {
				delete(model, url)
			}
			continue
		}
		want, ok := model[url]
		if (got.outcome == "hit") != ok || ok && got.body != want {
			t.Fatalf("GET %s is a %s with %s; the model has %q", url, got.outcome, got.body, want)
		}
		model[url] = got.body
	}
}
