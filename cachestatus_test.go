package heed

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestCacheStoresByStatusAndDirectives(t *testing.T) {
	const (
		never = iota
		explicitly
		always // also with a guess, or with nothing but a validator
	)
	table := func(status int) int {
		switch {
		case slices.Contains([]int{206, 226, 304}, status) || status < 200 || status > 511:
			return never
		case slices.Contains([]int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414}, status):
			return always
		}
		return explicitly
	}
	known := map[int]bool{}
	for status := 100; status < 700; status++ {
		known[status] = understood(status)
		for _, fields := range [][]string{
			{"Cache-Control: max-age=60"},
			{"Cache-Control: max-age=60, no-store"},
			{"Cache-Control: max-age=60, no-store, must-understand"},
			{"Cache-Control: max-age=0"},
			{"Cache-Control: public", `ETag: "a"`},
			{`ETag: "a"`},
			{"Last-Modified: " + httpTime(cacheNoon.Add(-100*time.Minute))},
			{"Cache-Control: no-cache, max-age=60"},
			{"Cache-Control: no-cache, max-age=60", `ETag: "a"`},
			{"Cache-Control: max-age=0, stale-if-error=60"},
			{"Cache-Control: stale-if-error=60"},
			{"Cache-Control: max-age=60", "Age: 60"},
			{"Cache-Control: max-age=60", "Age: 60", `ETag: "a"`},
			nil,
		} {
			h := cacheFields(fields...)
			d := parseDirectives(h["Cache-Control"])
			p := policyOf(status, h, &d, receipt{at: cacheNoon})
			got := storable(status, h, &d, &p)

			fresh := (d.maxAge.ok || len(h["Last-Modified"]) > 0 && table(status) == always) && d.maxAge != span{0, true} && h.Get("Age") == ""
			validator := h.Get("ETag") != "" || h.Get("Last-Modified") != ""
			error5 := status == 408 || status == 425 || status == 429 || status >= 500
			want := known[status] && table(status) != never && (!d.noStore || d.mustUnderstand)
			if table(status) == explicitly && !d.maxAge.ok && !d.public {
				want = false
			}
			if error5 && (!d.maxAge.ok || !fresh || d.noCache) {
				want = false
			}
			if !validator && (d.noCache || !fresh && !d.staleIfError.ok) {
				want = false
			}
			if got != want {
				t.Errorf("%d with %q: stored %v, want %v (RFC 9111, 3)", status, fields, got, want)
			}
		}
	}
	for status, want := range map[int]bool{100: false, 101: false, 200: true, 206: false, 226: false, 299: false, 304: false, 404: true, 429: true, 511: true, 599: false, 600: false} {
		if known[status] != want {
			t.Errorf("%d understood: %v", status, known[status])
		}
	}
}

func TestCacheKeepsNoFailureThatDoesNotSayHowLong(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503, 504, 403, 302} {
		r := newCacheRig(t, always(status, "no", `ETag: "a"`, "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT"))
		r.want(r.get(cacheURL), "miss", "no", 1)
		r.origin = always(200, "yes", "Cache-Control: max-age=60")
		r.want(r.get(cacheURL), "stored", "yes", 2)
	}
}

func TestCacheKeepsAFailureNoLongerThanItsRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fields []string
		fresh  time.Duration
	}{
		{"no Retry-After", nil, 60 * time.Second},
		{"a shorter one", []string{"Retry-After: 10"}, 10 * time.Second},
		{"a longer one", []string{"Retry-After: 100"}, 60 * time.Second},
		{"none at all", []string{"Retry-After: 0"}, 0},
	} {
		for _, status := range []int{429, 503} {
			synctest.Test(t, func(t *testing.T) {
				r := newCacheRig(t, always(status, "no", append(tt.fields, "Cache-Control: max-age=60")...))
				r.get(cacheURL)
				if tt.fresh > 0 {
					time.Sleep(tt.fresh - time.Second)
					r.want(r.get(cacheURL), "hit", "no", 1)
					time.Sleep(time.Second)
				}
				if got := r.get(cacheURL); got.outcome == "hit" {
					t.Errorf("%d with %s: still a hit after %v", status, tt.name, tt.fresh)
				}
			})
		}
	}
}
