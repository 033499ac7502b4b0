package heed

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCacheControlIsReadDirectiveByDirective(t *testing.T) {
	sec := func(n int64) span { return span{time.Duration(n) * time.Second, true} }
	for _, tt := range []struct {
		name  string
		lines []string
		want  directives
	}{
		{"nothing", nil, directives{}},
		{"an empty line", []string{""}, directives{}},
		{"empty elements (RFC 9110, 5.6.1.2)", []string{", ,max-age=1,,"}, directives{maxAge: sec(1)}},
		{"in any letter case (5.2)", []string{"MAX-AGE=1, No-Cache, MUST-revalidate"}, directives{maxAge: sec(1), noCache: true, mustRevalidate: true}},
		{"over several lines", []string{"max-age=1", "no-store", "private"}, directives{maxAge: sec(1), noStore: true, private: true}},
		{"quoted (5.2)", []string{`max-age="5", stale-if-error="6"`}, directives{maxAge: sec(5), staleIfError: sec(6)}},
		{"a directive in another's string", []string{`x="max-age=3600, no-store", max-age=1`}, directives{maxAge: sec(1)}},
		{"an escaped quote in a string", []string{`x="\", no-store", max-age=1`}, directives{maxAge: sec(1)}},
		{"all of a request", []string{"max-stale=3, min-fresh=4, only-if-cached"}, directives{maxStale: sec(3), minFresh: sec(4), onlyIfCached: true}},
		{"max-stale without a value (5.2.1.2)", []string{"max-stale"}, directives{maxStale: span{deltaMax, true}}},
		{"max-stale with a value that is none", []string{"max-stale=x"}, directives{}},
		{"min-fresh with a value that is none", []string{"min-fresh=x"}, directives{minFresh: span{deltaMax, true}}},
		{"stale-if-error with a value that is none", []string{"stale-if-error=x"}, directives{}},
		{"no-cache with fields", []string{`no-cache="a, b", public`}, directives{noCache: true, public: true}},
		{"no-store with a value", []string{"no-store=0"}, directives{noStore: true}},
		{"negative (1.2.2)", []string{"max-age=-1"}, directives{maxAge: sec(0)}},
		{"a fraction", []string{"max-age=3600.5"}, directives{maxAge: sec(0)}},
		{"letters", []string{"max-age=abc"}, directives{maxAge: sec(0)}},
		{"letters behind", []string{"max-age=3600a"}, directives{maxAge: sec(0)}},
		{"single quotes", []string{"max-age='3600'"}, directives{maxAge: sec(0)}},
		{"a sign", []string{"max-age=+1"}, directives{maxAge: sec(0)}},
		{"no value", []string{"max-age"}, directives{maxAge: sec(0)}},
		{"an empty value", []string{"max-age="}, directives{maxAge: sec(0)}},
		{"a space before the value", []string{"max-age= 1"}, directives{maxAge: sec(0)}},
		{"a space before the equals sign", []string{"max-age =1, max-stale =1"}, directives{maxAge: sec(0)}},
		{"whitespace around", []string{" max-age=1\t, \tno-cache "}, directives{maxAge: sec(1), noCache: true}},
		{"leading zeros", []string{"max-age=0003600"}, directives{maxAge: sec(3600)}},
		{"too large (1.2.2)", []string{"max-age=99999999999999999999999"}, directives{maxAge: span{deltaMax, true}}},
		{"2^31 and a bit", []string{"max-age=2147483649"}, directives{maxAge: span{deltaMax, true}}},
		{"twice, the larger first (4.2.1)", []string{"max-age=60, max-age=0"}, directives{maxAge: sec(0)}},
		{"twice, on two lines", []string{"max-age=1", "max-age=1800"}, directives{maxAge: sec(1)}},
		{"min-fresh twice", []string{"min-fresh=1, min-fresh=9"}, directives{minFresh: sec(9)}},
		{"min-fresh twice, the larger first", []string{"min-fresh=9, min-fresh=1"}, directives{minFresh: sec(9)}},
		{"a string without an end", []string{`x="no-cache, max-age=1`, "must-understand"}, directives{noStore: true}},
		{"must-understand", []string{"must-understand, no-store"}, directives{noStore: true, mustUnderstand: true}},
		{"more lines than are read", slices.Repeat([]string{"public"}, maxLines+1), directives{public: true, noStore: true}},
		{"more items than are read", []string{strings.Repeat("x,", maxItems) + "max-age=1"}, directives{noStore: true}},
	} {
		if got := parseDirectives(tt.lines); got != tt.want {
			t.Errorf("%s: %q\n got %+v\nwant %+v", tt.name, tt.lines, got, tt.want)
		}
	}
}

func TestCacheDeltaSecondsNeverOverflow(t *testing.T) {
	for n := range 200 {
		d, ok := deltaSeconds(strings.Repeat("9", n))
		if ok != (n > 0) || d < 0 || d > deltaMax || n > 10 && d != deltaMax {
			t.Errorf("%d nines: %v, %v", n, d, ok)
		}
	}
	if deltaMax.Seconds() != math.Exp2(31) {
		t.Errorf("the largest is %v", deltaMax)
	}
}

func FuzzCacheControl(f *testing.F) {
	for _, s := range []string{
		"max-age=60", "no-store", `no-cache="a, b", max-age="5"`, "max-age=60, max-age=0", "MAX-STALE", ",,=,=\"", `x="\`, `"`, "max-age=99999999999999999999",
		"private\nmax-age=1", strings.Repeat("a,", 100), "stale-if-error=1\n\n", "max-age\t=\t1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		d := parseDirectives(lines)
		for _, s := range []span{d.maxAge, d.minFresh, d.maxStale, d.staleIfError} {
			if s.d < 0 || s.d > deltaMax || s.d%time.Second != 0 || !s.ok && s.d != 0 {
				t.Fatalf("%+v", d)
			}
		}
		if d2 := parseDirectives(lines); d2 != d {
			t.Fatal("reads the same text in two ways")
		}
		if up := parseDirectives([]string{strings.ToUpper(text)}); isASCII(text) && up != parseDirectives([]string{text}) {
			t.Fatalf("letter case matters: %+v", up)
		}
		// Adding a directive never takes a prohibition away.
		more := parseDirectives(append(slices.Clone(lines), "public, max-age=1000"))
		if d.noStore && !more.noStore || d.noCache && !more.noCache || d.mustRevalidate && !more.mustRevalidate || d.maxAge.ok && more.maxAge.d > d.maxAge.d {
			t.Fatalf("%+v became %+v", d, more)
		}
		// Lines may be joined (RFC 9110, 5.3), as long as each is whole.
		if len(lines) <= maxLines && !strings.ContainsAny(text, `"\`) && strings.Count(text, ",")+len(lines) < maxItems {
			if joined := parseDirectives([]string{strings.Join(lines, ", ")}); joined != d {
				t.Fatalf("joined: %+v, apart: %+v", joined, d)
			}
		}
	})
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

func TestCacheDateIsReadToTheLetter(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	want := time.Date(2050, 8, 18, 2, 1, 18, 0, time.UTC)
	for s, ok := range map[string]bool{
		"Thu, 18 Aug 2050 02:01:18 GMT":    true,
		"THU, 18 AUG 2050 02:01:18 gmt":    true, // RFC 9111, 4.2: in any letter case
		"Mon, 18 Aug 2050 02:01:18 GMT":    true, // the weekday is wrong
		"Thursday, 18-Aug-50 02:01:18 GMT": true,
		"Thu Aug 18 02:01:18 2050":         true,
		"Thu, 18 Aug 2050 02:01:18 UTC":    false,
		"Thu, 18 Aug 2050 02:01:18 AEST":   false,
		"Thu, 18 Aug 2050 02:01:18 +0000":  false,
		"Thu, 18 Aug 2050 02:01:18":        false,
		"Thu, 18 Aug 50 02:01:18 GMT":      false,
		"Thu 18 Aug 2050 02:01:18 GMT":     false,
		"Thu, 18  Aug  2050 02:01:18 GMT":  false,
		"Thu, 18-Aug-2050 02:01:18 GMT":    false,
		"Thu, 18 Aug 2050 02.01.18 GMT":    false,
		"Thu, 18 Aug 2050 2:01:18 GMT":     false,
		"Thu, 18 Aug 2050 02:01:18 GMT, x": false,
		"Thu, 18 Aug 2050 02:01:18.5 GMT":  false,
		"Xyz, 18 Aug 2050 02:01:18 GMT":    false,
		"Thu, 31 Jun 2050 02:01:18 GMT":    false,
		"0":                                false, "-1": false, "": false, "4102444800": false,
		"Thu, 18 Aug 2050 02:01:18 GMT GMT GMT GMT GMT": false,
	} {
		if got, good := cacheDate(s, now); good != ok || ok && !got.Equal(want) {
			t.Errorf("%q is %v, %v", s, got, good)
		}
	}
	// RFC 9110, 5.6.7: two digits of a year are never more than 50 years ahead.
	if got, ok := cacheDate("Sunday, 06-Nov-60 08:49:37 GMT", now.AddDate(-26, 0, 0)); !ok || got.Year() != 1960 {
		t.Errorf("in the year 2000, 60 is %d", got.Year())
	}
	for s, year := range map[string]int{"Sunday, 06-Nov-94 08:49:37 GMT": 1994, "Sunday, 06-Nov-70 08:49:37 GMT": 2070, "Sunday, 06-Nov-77 08:49:37 GMT": 1977} {
		if got, ok := cacheDate(s, now); !ok || got.Year() != year {
			t.Errorf("%q is of %d, %v", s, got.Year(), ok)
		}
	}
}

func FuzzCacheDate(f *testing.F) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	f.Add("Thu, 18 Aug 2050 02:01:18 GMT")
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := cacheDate(s, now)
		if !ok {
			return
		}
		if at.Nanosecond() != 0 || at.Location() != time.UTC || len(s) > 33 {
			t.Fatalf("%q is %v", s, at)
		}
		if again, ok := cacheDate(httpTime(at), now); at.Year() > 999 && (!ok || !again.Equal(at)) {
			t.Fatalf("%q is %v, written again %v", s, at, again)
		}
		if upper, ok := cacheDate(strings.ToUpper(s), now); isASCII(s) && (!ok || !upper.Equal(at)) {
			t.Fatalf("letter case matters to %q", s)
		}
	})
}
