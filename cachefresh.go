package heed

import (
	"net/http"
	"strings"
	"time"
)

// heuristicMost caps the freshness lifetime that is guessed (RFC 9111, 4.2.2).
const heuristicMost = 24 * time.Hour

// policy is what an answer lets a cache do with it: pure arithmetic, no clock.
type policy struct {
	lifetime time.Duration // freshness lifetime (RFC 9111, 4.2.1)
	initial  time.Duration // corrected initial age (4.2.3), when it was received
	explicit bool          // lifetime is the server's word, not a guess
	date     time.Time     // when the server made it; when it was received, if it does not say

	noCache, mustRevalidate bool
	staleIfError            time.Duration
}

// receipt is when an answer was asked for and came.
type receipt struct {
	at    time.Time     // on the wall clock
	delay time.Duration // from sending the request (4.2.3: response_delay)
}

// policyOf reads an answer's policy from its header, with its Cache-Control read already.
func policyOf(status int, h http.Header, d *directives, r receipt) policy {
	p := policy{
		date: r.at, noCache: d.noCache, mustRevalidate: d.mustRevalidate, staleIfError: d.staleIfError.d,
	}
	var apparent time.Duration
	if date, ok := dateOf(h, "Date", r.at); ok {
		p.date = date
		apparent = clampDelta(r.at.Sub(date))
	}
	p.initial = initialAge(apparent, ageOf(h), r.delay)
	p.lifetime, p.explicit = lifetimeOf(status, h, d, p.date, r.at)
	return p
}

// lifetimeOf is the first of max-age, Expires and a guess (4.2.1). s-maxage is not for a private cache.
func lifetimeOf(status int, h http.Header, d *directives, date, now time.Time) (lifetime time.Duration, explicit bool) {
	if d.maxAge.ok {
		return d.maxAge.d, true
	}
	if lines := h["Expires"]; len(lines) > 0 {
		// Invalid, notably 0, is in the past (5.3); so is one that is repeated.
		expires, ok := cacheDate(lines[0], now)
		if len(lines) > 1 || !ok {
			return 0, true
		}
		return clampDelta(expires.Sub(date)), true
	}
	if !heuristic(status) {
		return 0, false
	}
	modified, ok := dateOf(h, "Last-Modified", now)
	if !ok {
		return 0, false
	}
	return min(clampDelta(date.Sub(modified))/10, heuristicMost), false
}

// initialAge is corrected_initial_age (4.2.3).
func initialAge(apparent, age, delay time.Duration) time.Duration {
	return max(apparent, addDelta(age, max(0, delay)))
}

// age is current_age (4.2.3) after the answer has been here for resident.
func (p *policy) age(resident time.Duration) time.Duration {
	return addDelta(p.initial, max(0, resident))
}

// usable says that the answer at this age may be given to a request with these
// directives without asking the server (RFC 9111, 4 and 5.2.1).
func (p *policy) usable(want *directives, age time.Duration) bool {
	if want.noCache || p.noCache {
		return false
	}
	if want.maxAge.ok && (age > want.maxAge.d || want.maxAge.d == 0) {
		return false
	}
	left := p.lifetime - age // negative: stale
	if left > 0 {
		return !want.minFresh.ok || left >= want.minFresh.d
	}
	return want.maxStale.ok && !want.minFresh.ok && !p.mustRevalidate && -left <= want.maxStale.d
}

// usableAfterError says that the answer, stale as it is, may stand in for an
// error of the server (RFC 5861, 4). A request that itself asks for something
// newer is not given something older.
func (p *policy) usableAfterError(want *directives, age time.Duration) bool {
	if p.noCache || p.mustRevalidate || want.noCache || want.maxAge.ok || want.minFresh.ok {
		return false
	}
	return p.staleIfError > 0 && age-p.lifetime <= p.staleIfError
}

// resident is how long ago an answer came. A step of the wall clock must not
// make it younger, and a suspended machine, whose monotonic clock stood still, must not either.
func resident(received, now instant) time.Duration {
	return time.Duration(max(0, now.mono-received.mono, now.wall-received.wall))
}

// dateOf reads the first line of a date field.
func dateOf(h http.Header, name string, now time.Time) (time.Time, bool) {
	if lines := h[name]; len(lines) > 0 {
		return cacheDate(lines[0], now)
	}
	return time.Time{}, false
}

// ageOf reads Age (5.1): of several values the first counts, an invalid one is ignored.
func ageOf(h http.Header) time.Duration {
	lines := h["Age"]
	if len(lines) == 0 {
		return 0
	}
	first, _, _ := strings.Cut(lines[0], ",")
	d, _ := deltaSeconds(strings.Trim(first, " \t"))
	return d
}

// addDelta adds two ages; a sum that is too large is deltaMax.
func addDelta(a, b time.Duration) time.Duration {
	a, b = min(a, deltaMax), min(b, deltaMax)
	return min(a+b, deltaMax)
}

func clampDelta(d time.Duration) time.Duration { return min(max(d, 0), deltaMax) }
