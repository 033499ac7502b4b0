package heed

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"
)

var cacheNoon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func httpTime(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

func TestCacheFreshnessLifetimes(t *testing.T) {
	at := func(d time.Duration) string { return httpTime(cacheNoon.Add(d)) }
	for _, tt := range []struct {
		name     string
		status   int
		fields   []string
		want     time.Duration
		explicit bool
	}{
		{"nothing said", 200, []string{"Date: " + at(0)}, 0, false},
		{"max-age (4.2.1)", 200, []string{"Cache-Control: max-age=60"}, time.Minute, true},
		{"max-age beats Expires (5.3)", 200, []string{"Cache-Control: max-age=60", "Expires: " + at(time.Hour)}, time.Minute, true},
		{"max-age of nothing beats Expires", 200, []string{"Cache-Control: max-age=0", "Expires: " + at(time.Hour)}, 0, true},
		{"a bad max-age beats Expires", 200, []string{"Cache-Control: max-age=x", "Expires: " + at(time.Hour)}, 0, true},
		{"Expires minus Date", 200, []string{"Date: " + at(-time.Hour), "Expires: " + at(time.Hour)}, 2 * time.Hour, true},
		{"Expires, no Date: the time of receipt", 200, []string{"Expires: " + at(time.Hour)}, time.Hour, true},
		{"Expires, a Date that is none", 200, []string{"Date: today", "Expires: " + at(time.Hour)}, time.Hour, true},
		{"Expires on a fast clock", 200, []string{"Date: " + at(24*time.Hour), "Expires: " + at(25*time.Hour)}, time.Hour, true},
		{"Expires before Date", 200, []string{"Date: " + at(0), "Expires: " + at(-time.Hour)}, 0, true},
		{"Expires: 0 (5.3)", 200, []string{"Expires: 0", "Last-Modified: " + at(-100*time.Hour)}, 0, true},
		{"Expires twice", 200, []string{"Expires: " + at(time.Hour), "Expires: " + at(time.Hour)}, 0, true},
		{"Expires of the year 9999", 200, []string{"Expires: Fri, 31 Dec 9999 23:59:59 GMT"}, deltaMax, true},
		{"s-maxage is for shared caches", 200, []string{"Cache-Control: s-maxage=60"}, 0, false},
		{"a tenth since it was modified (4.2.2)", 200, []string{"Date: " + at(0), "Last-Modified: " + at(-100*time.Minute)}, 10 * time.Minute, false},
		{"a guess is at most a day", 200, []string{"Date: " + at(0), "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT"}, 24 * time.Hour, false},
		{"modified after Date", 200, []string{"Date: " + at(0), "Last-Modified: " + at(time.Hour)}, 0, false},
		{"modified never", 200, []string{"Date: " + at(0), "Last-Modified: never"}, 0, false},
		{"no guess for a 302 (RFC 9110, 15.1)", 302, []string{"Date: " + at(0), "Last-Modified: " + at(-100*time.Minute)}, 0, false},
		{"no guess for a 429", 429, []string{"Date: " + at(0), "Last-Modified: " + at(-100*time.Minute)}, 0, false},
		{"no guess for a 503", 503, []string{"Date: " + at(0), "Last-Modified: " + at(-100*time.Minute)}, 0, false},
		{"no guess for a 501", 501, []string{"Date: " + at(0), "Last-Modified: " + at(-100*time.Minute)}, 0, false},
		{"a guess for a 404", 404, []string{"Date: " + at(0), "Last-Modified: " + at(-100*time.Minute)}, 10 * time.Minute, false},
	} {
		h := cacheFields(tt.fields...)
		d := parseDirectives(h["Cache-Control"])
		p := policyOf(tt.status, h, &d, receipt{at: cacheNoon})
		if p.lifetime != tt.want || p.explicit != tt.explicit {
			t.Errorf("%s: %v, explicit %v; want %v, %v", tt.name, p.lifetime, p.explicit, tt.want, tt.explicit)
		}
	}
}

func TestCacheAges(t *testing.T) {
	at := func(d time.Duration) string { return httpTime(cacheNoon.Add(d)) }
	for _, tt := range []struct {
		name   string
		fields []string
		delay  time.Duration
		want   time.Duration
	}{
		{"made now", []string{"Date: " + at(0)}, 0, 0},
		{"no Date (4.2.3)", nil, 0, 0},
		{"an old Date", []string{"Date: " + at(-time.Minute)}, 0, time.Minute},
		{"a Date ahead is no negative age", []string{"Date: " + at(time.Hour)}, 0, 0},
		{"a Date ahead takes nothing off Age", []string{"Date: " + at(time.Hour), "Age: 30"}, 0, 30 * time.Second},
		{"on its way", []string{"Date: " + at(0)}, 3 * time.Second, 3 * time.Second},
		{"Age, and on its way", []string{"Age: 30"}, 3 * time.Second, 33 * time.Second},
		{"the larger of both", []string{"Date: " + at(-time.Minute), "Age: 30"}, 0, time.Minute},
		{"a Date of the year 1", []string{"Date: Mon, 01 Jan 0001 00:00:00 GMT"}, 0, deltaMax},
		{"Age of 2^31 (1.2.2)", []string{"Age: 2147483648"}, time.Hour, deltaMax},
		{"Age beyond all numbers", []string{"Age: 99999999999999999999"}, 0, deltaMax},
		{"the first of two in a line (5.1)", []string{"Age: 7200, 0"}, 0, 2 * time.Hour},
		{"the first of two lines", []string{"Age: 0", "Age: 7200"}, 0, 0},
		{"negative", []string{"Age: -7200"}, 0, 0},
		{"a fraction", []string{"Age: 7200.0"}, 0, 0},
		{"letters", []string{"Age: abc"}, 0, 0},
		{"a parameter", []string{"Age: 7200;x=1"}, 0, 0},
		{"a delay below nothing", []string{"Age: 5"}, -time.Hour, 5 * time.Second},
	} {
		p := policyOf(200, cacheFields(tt.fields...), &directives{}, receipt{at: cacheNoon, delay: tt.delay})
		if p.initial != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, p.initial, tt.want)
		}
		if got := p.age(-time.Hour); got != tt.want {
			t.Errorf("%s: received in the future, it is %v old", tt.name, got)
		}
	}
}

func TestCacheEntryNeverGrowsYoungerByAClockThatSteps(t *testing.T) {
	s := int64(time.Second)
	for _, tt := range []struct {
		name          string
		received, now instant
		want          time.Duration
	}{
		{"both clocks agree", instant{100 * s, 5 * s}, instant{160 * s, 65 * s}, time.Minute},
		{"the wall clock was put back", instant{100 * s, 5 * s}, instant{-900 * s, 65 * s}, time.Minute},
		{"the machine slept an hour", instant{100 * s, 5 * s}, instant{3700 * s, 6 * s}, time.Hour},
		{"before it was received", instant{100 * s, 5 * s}, instant{90 * s, 4 * s}, 0},
	} {
		if got := resident(tt.received, tt.now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// naiveAge and naiveLifetime are RFC 9111, 4.2 with whole nanoseconds that cannot overflow, word for word.
func naiveAge(date, ageValue, request, response, now *big.Int) *big.Int {
	zero := new(big.Int)
	apparent := new(big.Int).Sub(response, date)
	if apparent.Cmp(zero) < 0 {
		apparent.Set(zero)
	}
	corrected := new(big.Int).Sub(response, request)
	corrected.Add(corrected, ageValue)
	initial := corrected
	if apparent.Cmp(corrected) > 0 {
		initial = apparent
	}
	residentTime := new(big.Int).Sub(now, response)
	return residentTime.Add(residentTime, initial)
}

func nanos(t time.Time) *big.Int {
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
	return n.Add(n, big.NewInt(int64(t.Nanosecond())))
}

func TestCacheArithmeticAgreesWithIntegersThatCannotOverflow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	most := big.NewInt(int64(deltaMax))
	clamp := func(n *big.Int) *big.Int {
		if n.Sign() < 0 {
			return new(big.Int)
		}
		if n.Cmp(most) > 0 {
			return most
		}
		return n
	}
	// Of all magnitudes: seconds, days, centuries.
	span := func() time.Duration {
		return time.Duration(rnd.Int64N(int64(time.Second) << rnd.IntN(34)))
	}
	whole := func(d time.Duration) time.Duration { return d.Truncate(time.Second) }
	fresh := 0
	for i := range 20_000 {
		response := cacheNoon.Add(span())
		delay, stay := span()/1000, span()
		date := response.Add(-whole(span())).Truncate(time.Second)
		if rnd.IntN(3) == 0 {
			date = response.Add(whole(span())).Truncate(time.Second)
		}
		seconds := rnd.Uint64() >> rnd.IntN(64)
		h := http.Header{"Date": {httpTime(date)}, "Age": {strconv.FormatUint(seconds, 10)}}
		expires := date.Add(whole(span()))
		lifetime := new(big.Int).Sub(nanos(expires), nanos(date))
		maxAge := rnd.Uint64() >> rnd.IntN(64)
		if rnd.IntN(2) == 0 {
			h["Cache-Control"] = []string{fmt.Sprintf("max-age=%d", maxAge)}
			lifetime = new(big.Int).Mul(new(big.Int).SetUint64(maxAge), big.NewInt(1e9))
		}
		h["Expires"] = []string{httpTime(expires)}
		if date.Year() > 9999 || expires.Year() > 9999 {
			continue
		}

		d := parseDirectives(h["Cache-Control"])
		p := policyOf(200, h, &d, receipt{at: response, delay: delay})
		age := p.age(stay)

		ageValue := new(big.Int).Mul(new(big.Int).SetUint64(seconds), big.NewInt(1e9))
		wantAge := clamp(naiveAge(nanos(date), ageValue, nanos(response.Add(-delay)), nanos(response), nanos(response.Add(stay))))
		wantLife := clamp(lifetime)
		if wantAge.Cmp(big.NewInt(int64(age))) != 0 || wantLife.Cmp(big.NewInt(int64(p.lifetime))) != 0 {
			t.Fatalf("run %d: %v\nage %v, want %v\nlifetime %v, want %v", i, h, age, wantAge, p.lifetime, wantLife)
		}
		want := wantLife.Cmp(wantAge) > 0
		if got := p.usable(&directives{}, age); got != want {
			t.Fatalf("run %d: fresh %v, want %v", i, got, want)
		}
		if want {
			fresh++
		}
	}
	if fresh < 1000 || fresh > 19_000 {
		t.Errorf("only one side was tried: %d were fresh", fresh)
	}
}

// Every combination of what answer and request say, at ages around each boundary, against the rules one by one.
func TestCacheServesStaleOnlyByTheRules(t *testing.T) {
	const life = 60 * time.Second
	opt := func(ds ...time.Duration) (spans []span) {
		spans = append(spans, span{})
		for _, d := range ds {
			spans = append(spans, span{d, true})
		}
		return spans
	}
	n := 0
	for bits := range 8 {
		p := policy{lifetime: life, noCache: bits&1 != 0, mustRevalidate: bits&2 != 0}
		reqNoCache := bits&4 != 0
		for _, sie := range []time.Duration{0, 30 * time.Second} {
			p.staleIfError = sie
			for _, maxAge := range opt(0, 50*time.Second, 70*time.Second) {
				for _, minFresh := range opt(20 * time.Second) {
					for _, maxStale := range opt(0, 20*time.Second, deltaMax) {
						for _, age := range []time.Duration{0, 40 * time.Second, 41 * time.Second, 50 * time.Second, 51 * time.Second, 60 * time.Second, 70 * time.Second, 71 * time.Second, 80 * time.Second, 81 * time.Second, 90 * time.Second, 91 * time.Second} {
							n++
							want := directives{noCache: reqNoCache, maxAge: maxAge, minFresh: minFresh, maxStale: maxStale}
							var no []string
							deny := func(cond bool, why string) {
								if cond {
									no = append(no, why)
								}
							}
							stale := age >= life
							deny(p.noCache || reqNoCache, "no-cache")
							deny(maxAge.ok && age > maxAge.d, "older than asked")
							deny(maxAge.ok && maxAge.d == 0, "max-age=0")
							deny(minFresh.ok && life-age < minFresh.d, "not fresh long enough")
							deny(stale && !maxStale.ok, "stale")
							deny(stale && maxStale.ok && age-life > maxStale.d, "too stale")
							deny(stale && p.mustRevalidate, "must-revalidate")
							if got := p.usable(&want, age); got != (len(no) == 0) {
								t.Fatalf("%+v at %v for %+v: usable %v, reasons against: %q", p, age, want, got, no)
							}
							no = nil
							deny(sie == 0, "no stale-if-error")
							deny(age-life > sie, "too stale for an error")
							deny(p.noCache || p.mustRevalidate, "the server forbids it")
							deny(reqNoCache || maxAge.ok || minFresh.ok, "the caller asked for newer")
							if got := p.usableAfterError(&want, age); got != (len(no) == 0) {
								t.Fatalf("%+v at %v for %+v: excused %v, reasons against: %q", p, age, want, got, no)
							}
						}
					}
				}
			}
		}
	}
	if n < 5000 {
		t.Errorf("%d combinations", n)
	}
}
