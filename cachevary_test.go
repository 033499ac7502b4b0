package heed

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCacheVaryIsReadFromAllLines(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  string
		ok    bool
	}{
		{nil, "", true},
		{[]string{""}, "", true},
		{[]string{"accept"}, "Accept", true},
		{[]string{"Foo, ACCEPT-language ,foo"}, "Accept-Language Foo", true},
		{[]string{"b", "a", ",,c,"}, "A B C", true},
		{[]string{"*"}, "", false}, // RFC 9111, 4.1: always fails to match
		{[]string{"*, *"}, "", false},
		{[]string{", *"}, "", false},
		{[]string{"", "*"}, "", false},
		{[]string{"Foo, *"}, "", false},
		{[]string{"*", "Foo"}, "", false},
		{[]string{"a b"}, "", false},
		{[]string{`"a"`}, "", false},
		{[]string{"a\x00"}, "", false},
		{[]string{"ä"}, "", false},
		{[]string{strings.Repeat("a,", maxItems)}, "A", true},
		{[]string{strings.Repeat("a,", maxItems+1)}, "", false},
		{slices.Repeat([]string{"a"}, maxLines+1), "", false},
	} {
		names, ok := parseVary(tt.lines)
		if got := strings.Join(names, " "); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %q, %v; want %q, %v", tt.lines, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzCacheVary(f *testing.F) {
	for _, s := range []string{"", "*", "accept", "Accept, *", "a,b\nc", ", ,", "a b", "\"*\"", strings.Repeat("x,", 200), "accept-ENCODING\nAccept-Encoding"} {
		f.Add(s, "gzip, br", "gzip,br")
	}
	f.Add("Accept", "text/html ; q=1", "text/html;q=1")
	f.Fuzz(func(t *testing.T, vary, a, b string) {
		lines := strings.Split(vary, "\n")
		names, ok := parseVary(lines)
		if !ok {
			return
		}
		if !slices.IsSorted(names) || len(names) > maxItems || slices.Contains(names, "*") || slices.Contains(names, "") {
			t.Fatalf("%q", names)
		}
		if again, ok := parseVary([]string{strings.ToUpper(strings.Join(names, ","))}); !ok || !slices.Equal(again, names) {
			t.Fatalf("%q, upper case %q", names, again)
		}
		// Whatever the values, absent is not present, and different fields are not confused.
		for _, name := range names {
			x, y := http.Header{name: {a}}, http.Header{name: {b}}
			vx, vy := string(appendVariant(nil, names, x)), string(appendVariant(nil, names, y))
			if vx == string(appendVariant(nil, names, nil)) {
				t.Fatalf("%s: %q matches absence", name, a)
			}
			if bare := strings.NewReplacer(" ", "", "\t", ""); vx == vy && !strings.EqualFold(bare.Replace(a), bare.Replace(b)) {
				t.Fatalf("%s: %q matches %q", name, a, b)
			}
		}
	})
}

func TestCacheVaryingFieldsMatchByMeaning(t *testing.T) {
	for _, tt := range []struct {
		name  string
		a, b  []string
		match bool
	}{
		{"Accept", []string{"a/b"}, []string{"a/b"}, true},
		{"Accept", nil, []string{"*/*"}, false}, // RFC 9111, 4.1: absent matches absent alone
		{"Accept", nil, nil, true},
		{"Accept", []string{}, nil, true},
		{"Accept", []string{""}, nil, false},
		{"Accept", []string{"a/b,c/d"}, []string{"a/b ,\tc/d"}, true},
		{"Accept", []string{"a/b", "c/d"}, []string{"a/b, c/d"}, true},
		{"Accept", []string{"a/b;q=1"}, []string{"a/b ; q=1"}, true},
		{"Accept", []string{"a/b"}, []string{"A/b"}, false}, // a parameter's case may matter
		{"Accept", []string{`a/b;x="c, d"`}, []string{`a/b;x="c,d"`}, false},
		{"Accept", []string{"a/b, c/d"}, []string{"c/d, a/b"}, false},
		{"Accept-Language", []string{"en-GB, De"}, []string{"en-gb,de"}, true},
		{"Accept-Language", []string{"fr"}, []string{"de"}, false},
		{"Accept-Encoding", []string{"GZIP"}, []string{"gzip"}, true},
		{"User-Agent", []string{" x "}, []string{"x"}, true},
		{"User-Agent", []string{"a,b"}, []string{"a, b"}, false}, // not known to be a list
		{"X-Any", []string{"a", "b"}, []string{"a, b"}, true},
		{"X-Any", []string{"A"}, []string{"a"}, false},
	} {
		header := func(lines []string) http.Header {
			if lines == nil {
				return http.Header{}
			}
			return http.Header{tt.name: lines}
		}
		names := []string{tt.name}
		got := string(appendVariant(nil, names, header(tt.a))) == string(appendVariant(nil, names, header(tt.b)))
		if got != tt.match {
			t.Errorf("%s: %q and %q match: %v", tt.name, tt.a, tt.b, got)
		}
	}
	// A boundary between fields cannot be shifted by their values.
	names := []string{"A", "B"}
	x := appendVariant(nil, names, http.Header{"A": {"1"}, "B": {"23"}})
	y := appendVariant(nil, names, http.Header{"A": {"12"}, "B": {"3"}})
	if string(x) == string(y) {
		t.Error("two requests write the same")
	}
}

func TestCacheKeepsOneEntryForEachVariant(t *testing.T) {
	r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
		return cacheReply(200, "in "+req.Header.Get("Accept-Language"), "Cache-Control: max-age=60", "Vary: accept-language"), nil
	})
	const fr, de = "Accept-Language: fr", "Accept-Language: de"
	r.want(r.get(cacheURL, fr), "stored", "in fr", 1)
	r.want(r.get(cacheURL, de), "stored", "in de", 2)
	r.want(r.get(cacheURL, fr), "hit", "in fr", 2)
	r.want(r.get(cacheURL, de), "hit", "in de", 2)
	r.want(r.get(cacheURL), "stored", "in ", 3)
	r.want(r.get(cacheURL, fr), "hit", "in fr", 3)
	if n := r.layer.cache.Len(); n != 3 {
		t.Errorf("%d entries", n)
	}
}

func TestCacheVaryByEverythingNeverHits(t *testing.T) {
	for _, vary := range []string{"*", "Accept, *", "no name"} {
		r := newCacheRig(t, counting("Cache-Control: max-age=60", "Vary: "+vary))
		r.want(r.get(cacheURL), "miss", "v1", 1)
		r.want(r.get(cacheURL), "miss", "v2", 2)
	}
}

// Servers forget Vary on their default answer (RFC 9111, 4.1).
func TestCacheDoesNotTakeADefaultAnswerForEveryVariant(t *testing.T) {
	for _, first := range []string{"", "fr"} {
		r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
			if lang := req.Header.Get("Accept-Language"); lang != "" {
				return cacheReply(200, lang, "Cache-Control: max-age=60", "Vary: Accept-Language"), nil
			}
			return cacheReply(200, "default", "Cache-Control: max-age=60"), nil
		})
		ask := func(lang string) cacheGot {
			if lang == "" {
				return r.get(cacheURL)
			}
			return r.get(cacheURL, "Accept-Language: "+lang)
		}
		ask(first)
		for range 3 {
			for _, lang := range []string{"", "fr", "de"} {
				// Before it is known that the answer varies, the default may stand for all.
				if got := ask(lang); got.body != lang && !(lang == "" && got.body == "default") && (first != "" || r.sends() > 1) {
					t.Errorf("%q was answered with %q", lang, got.body)
				}
			}
			if first == "" {
				r.get(cacheURL, "Accept-Language: fr", "Cache-Control: no-cache")
			}
		}
	}
}

func TestCacheFindsADefaultAnswerAgain(t *testing.T) {
	r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
		if req.Header.Get("Accept-Language") != "" {
			return cacheReply(200, "fr", "Cache-Control: max-age=60", "Vary: Accept-Language"), nil
		}
		return cacheReply(200, "default", "Cache-Control: max-age=60"), nil
	})
	r.want(r.get(cacheURL, "Accept-Language: fr"), "stored", "fr", 1)
	r.want(r.get(cacheURL), "stored", "default", 2)
	r.want(r.get(cacheURL), "hit", "default", 2)
	r.want(r.get(cacheURL, "Accept-Language: fr"), "hit", "fr", 2)
}

func TestCachePrefersTheNewestOfSeveralThatMatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vary, body := "Vary: X-A", "by A"
		r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
			return cacheReply(200, body, "Cache-Control: max-age=600", vary), nil
		})
		r.get(cacheURL, "X-A: 1", "X-B: 1")
		time.Sleep(time.Second)
		vary, body = "Vary: X-B", "by B"
		r.get(cacheURL, "X-A: 2", "X-B: 2")
		time.Sleep(time.Second)
		body = "by B, later"
		r.get(cacheURL, "X-A: 1", "X-B: 1", "Cache-Control: no-cache")
		r.want(r.get(cacheURL, "X-A: 1", "X-B: 1"), "hit", "by B, later", 3)
		r.want(r.get(cacheURL, "X-A: 1", "X-B: 9"), "hit", "by A", 3)
	})
}

func TestCacheBoundsTheVariantsOfOneResource(t *testing.T) {
	r := newCacheRig(t, counting("Cache-Control: max-age=60", "Vary: X-A"))
	for i := range 3 * maxVariants {
		r.get(cacheURL, fmt.Sprint("X-A: ", i))
	}
	if n := r.layer.cache.Len(); n != maxVariants {
		t.Errorf("%d variants are kept", n)
	}
	r.want(r.get(cacheURL, fmt.Sprint("X-A: ", 3*maxVariants-1)), "hit", fmt.Sprint("v", 3*maxVariants), 3*maxVariants)
}

func TestCacheRevalidationMayChangeWhatAnAnswerVariesBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("If-None-Match") != "" {
				return cacheReply(304, "", "Vary: X-B", `ETag: "a"`, "Cache-Control: max-age=60"), nil
			}
			return cacheReply(200, "v", "Cache-Control: max-age=60", `ETag: "a"`, "Vary: X-A"), nil
		})
		r.get(cacheURL, "X-A: 1", "X-B: 1")
		time.Sleep(61 * time.Second)
		r.want(r.get(cacheURL, "X-A: 1", "X-B: 1"), "revalidated", "v", 2)
		r.want(r.get(cacheURL, "X-A: 9", "X-B: 1"), "hit", "v", 2)
		r.want(r.get(cacheURL, "X-A: 1", "X-B: 9"), "stored", "v", 3)
	})
}

// matchesSlowly is RFC 9111, 4.1 over whole requests, for the model below: every field that Vary names has the same items.
func matchesSlowly(vary string, a, b http.Header) bool {
	for name := range strings.SplitSeq(vary, ",") {
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		if name == "*" {
			return false
		}
		if name == "" {
			continue
		}
		_, inA := a[name]
		_, inB := b[name]
		if inA != inB || strings.Join(itemsOf(a[name]), "\x00") != strings.Join(itemsOf(b[name]), "\x00") {
			return false
		}
	}
	return true
}

func itemsOf(lines []string) (items []string) {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			items = append(items, strings.ToLower(strings.TrimSpace(item)))
		}
	}
	return items
}

func cloneAll(h http.Header) http.Header { return http.Header(maps.Clone(map[string][]string(h))) }
