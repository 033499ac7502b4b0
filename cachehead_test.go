package heed

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestCacheHeadMayBeAnsweredFromAGetAndNotTheReverse(t *testing.T) {
	head := func(r *cacheRig) cacheGot { return r.do(r.request("HEAD", cacheURL)) }
	origin := func(req *http.Request) (*http.Response, error) {
		resp := cacheReply(200, "12345", "Cache-Control: max-age=60", "Content-Length: 5")
		if req.Method == "HEAD" {
			resp.Body = http.NoBody
		}
		return resp, nil
	}
	r := newCacheRig(t, origin)
	r.want(head(r), "stored", "", 1)
	r.want(head(r), "hit", "", 1)
	r.want(r.get(cacheURL), "stored", "12345", 2)
	got := head(r)
	r.want(got, "hit", "", 2)
	if got.ContentLength != 5 || got.Header.Get("Content-Length") != "5" {
		t.Errorf("the HEAD says a length of %d", got.ContentLength)
	}
	r.want(r.get(cacheURL), "hit", "12345", 2)
	if n := r.layer.cache.Len(); n != 1 {
		t.Errorf("%d entries; the GET stands for the HEAD", n)
	}
	r = newCacheRig(t, origin)
	r.want(r.get(cacheURL), "stored", "12345", 1)
	r.want(head(r), "hit", "", 1)
}

func TestCacheHeadThatWasSentUpdatesTheGet(t *testing.T) {
	for _, tt := range []struct {
		name   string
		head   []string
		length int64
		keeps  bool
	}{
		{"same validators", []string{`ETag: "a"`, "Cache-Control: max-age=60", "X-New: 1"}, 5, true},
		{"nothing to compare", []string{"Cache-Control: max-age=60", "X-New: 1"}, -1, true},
		{"another entity tag", []string{`ETag: "b"`, "Cache-Control: max-age=60"}, 5, false},
		{"another date", []string{"Last-Modified: Sat, 01 Jan 2000 00:00:01 GMT", "Cache-Control: max-age=60"}, 5, false},
		{"another length", []string{`ETag: "a"`, "Cache-Control: max-age=60"}, 6, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
					if req.Method == "HEAD" {
						resp := cacheReply(200, "", tt.head...)
						resp.ContentLength = tt.length
						return resp, nil
					}
					return cacheReply(200, "12345", "Cache-Control: max-age=10", `ETag: "a"`), nil
				})
				r.get(cacheURL)
				time.Sleep(20 * time.Second)
				r.want(r.do(r.request("HEAD", cacheURL)), "stored", "", 2)
				got := r.get(cacheURL)
				if hit := got.outcome == "hit"; hit != tt.keeps {
					t.Errorf("after it the GET is a %s (RFC 9111, 4.3.5)", got.outcome)
				}
				if tt.keeps && got.Header.Get("X-New") != "1" {
					t.Errorf("the news did not arrive: %v", got.Header)
				}
			})
		})
	}
}

func TestCacheHeadThatFailsSaysNothingOfTheGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=1", "X-Gone: 1"))
		r.get(cacheURL)
		time.Sleep(2 * time.Second)
		r.origin = func(*http.Request) (*http.Response, error) {
			resp := cacheReply(404, "", "Cache-Control: max-age=60")
			resp.ContentLength = -1
			return resp, nil
		}
		if got := r.do(r.request("HEAD", cacheURL)); got.StatusCode != 404 {
			t.Fatal(got.StatusCode)
		}
		r.origin = always(200, "w", "Cache-Control: max-age=60")
		r.want(r.get(cacheURL), "stored", "w", 3)
	})
}

func TestCacheHeadReplacesAHeadWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, always(200, "", "Cache-Control: max-age=1", "X-Gone: 1"))
		head := func() cacheGot { return r.do(r.request("HEAD", cacheURL)) }
		head()
		time.Sleep(2 * time.Second)
		r.origin = always(200, "", "Cache-Control: max-age=60")
		r.want(head(), "stored", "", 2)
		got := head()
		if r.want(got, "hit", "", 2); got.Header.Get("X-Gone") != "" {
			t.Errorf("a field of the answer before is still there: %v", got.Header)
		}
	})
}
