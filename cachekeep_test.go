package heed

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCacheWaitsBelowItAreNoPartOfAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		tr := &Transport{Cache: new(Cache), Base: roundTripper(func(*http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return cacheReply(429, "", "Retry-After: 300"), nil
			}
			time.Sleep(2 * time.Second)
			return cacheReply(200, "v", "Cache-Control: max-age=60", "Date: none"), nil
		})}
		var last *http.Response
		for range 2 {
			resp, err := tr.Client().Get(cacheURL)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			resp.Body.Close()
			last = resp
		}
		if got := last.Header.Get("Age"); InfoOf(last).Cache != "hit" || got != "2" {
			t.Errorf("after a wait of minutes and a send of 2 s: %s, Age %q (RFC 9111, 4.2.3)", InfoOf(last).Cache, got)
		}
	})
}

func TestCacheAddsADateToAnAnswerWithoutOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=60", "Date: none"))
		came := time.Now().UTC().Format(http.TimeFormat)
		if got := r.get(cacheURL); got.Header.Get("Date") != "" {
			t.Errorf("the answer itself was changed: %v", got.Header)
		}
		time.Sleep(10 * time.Second)
		got := r.get(cacheURL)
		r.want(got, "hit", "v", 1)
		if got.Header.Get("Date") != came || got.Header.Get("Age") != "10" {
			t.Errorf("Date %q, Age %q; it came at %s (RFC 9110, 6.6.1)", got.Header.Get("Date"), got.Header.Get("Age"), came)
		}
		time.Sleep(51 * time.Second)
		r.get(cacheURL)
		for name := range r.sent[1].Header {
			t.Errorf("validated by %s, where there is no validator", name)
		}
	})
}

func TestCacheStoresNoAnswerItCannotKeepWhole(t *testing.T) {
	huge := strings.Repeat("x", 20_000)
	body := func(resp *http.Response, length int) {
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(huge)), int64(length)
	}
	for _, tt := range []struct {
		name    string
		change  func(resp *http.Response)
		outcome string // "stored" where the header alone does not tell
	}{
		{"trailers announced", func(resp *http.Response) { resp.Trailer = http.Header{"X-Sum": nil} }, "miss"},
		{"a length over the cap", func(resp *http.Response) { body(resp, len(huge)) }, "miss"},
		{"a header over the cap", func(resp *http.Response) { resp.Header.Set("X-Large", huge) }, "miss"},
		{"a header over the cap and no body", func(resp *http.Response) {
			resp.StatusCode, resp.Body, resp.ContentLength = 204, http.NoBody, 0
			resp.Header.Set("X-Large", huge)
		}, "miss"},
		{"a body that is missing", func(resp *http.Response) { resp.Body, resp.ContentLength = http.NoBody, 5 }, "miss"},
		{"a part (RFC 9111, 3.3)", func(resp *http.Response) { resp.StatusCode = 206 }, "miss"},
		{"a body that grows over the cap", func(resp *http.Response) { body(resp, -1) }, "stored"},
		{"a body shorter than its length", func(resp *http.Response) { resp.ContentLength = 100 }, "stored"},
		{"a body longer than its length", func(resp *http.Response) { resp.ContentLength = 1 }, "stored"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []byte
			r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
				resp := cacheReply(200, "some body", "Cache-Control: max-age=60")
				tt.change(resp)
				b, _ := io.ReadAll(resp.Body)
				if want = b; resp.Body != http.NoBody {
					resp.Body = io.NopCloser(bytes.NewReader(b))
				}
				return resp, nil
			})
			r.layer.cache.MaxEntry = 10_000
			for i := range 2 {
				r.want(r.get(cacheURL), tt.outcome, string(want), i+1)
			}
			if n, b := r.layer.cache.Len(), r.layer.cache.Bytes(); n != 0 || b != 0 {
				t.Errorf("%d entries, %d bytes are left", n, b)
			}
		})
	}
}
