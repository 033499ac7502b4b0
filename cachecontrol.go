package heed

import (
	"strings"
	"time"
)

// deltaMax is the largest number of seconds in a cache field. What is larger,
// or does not fit, is read as this (RFC 9111, 1.2.2).
const deltaMax = time.Duration(1<<31) * time.Second

// span is a directive's number of seconds, and whether the directive was there.
type span struct {
	d  time.Duration
	ok bool
}

// directives are those of Cache-Control that a private cache acts on, of a
// request or of an answer. A directive that cannot be read counts as its most
// restrictive reading; so does one that is repeated with another value
// (RFC 9111, 4.2.1).
type directives struct {
	noStore, noCache, mustRevalidate, mustUnderstand bool
	onlyIfCached, public, private                    bool

	maxAge       span
	minFresh     span
	maxStale     span // without a value: any staleness
	staleIfError span // RFC 5861, 4
}

// parseDirectives reads all lines of a Cache-Control field. Names are
// case-insensitive, values may be quoted (RFC 9111, 5.2). A field that is
// malformed beyond one directive, or floods, says no-store: what it forbids
// cannot be told.
func parseDirectives(lines []string) (d directives) {
	malformed := len(lines) > maxLines
	for _, line := range lines[:min(len(lines), maxLines)] {
		items := 0
		for line != "" {
			if items++; items > maxItems {
				malformed = true
				break
			}
			var item string
			var closed bool
			item, line, closed = cutItem(line)
			malformed = malformed || !closed
			d.read(item)
		}
	}
	if malformed {
		d.noStore, d.mustUnderstand = true, false
	}
	return d
}

// cutItem cuts off the first element of a list, whose quoted strings may hold
// commas (RFC 9110, 5.6.1 and 5.6.4). closed is false when a quoted string has no end.
func cutItem(line string) (item, rest string, closed bool) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ',' && !quoted:
			return line[:i], line[i+1:], true
		}
	}
	return line, "", !quoted
}

// read takes one directive into account.
func (d *directives) read(item string) {
	name, value, given := strings.Cut(strings.Trim(item, " \t"), "=")
	if bare := strings.TrimRight(name, " \t"); bare != name {
		name, value = bare, "" // no value has whitespace before its equals sign
	}
	switch strings.ToLower(name) {
	case "no-store":
		d.noStore = true
	case "no-cache":
		// With field names it means those alone; validating always is the
		// simpler reading that RFC 9111, 5.2.2.4 allows.
		d.noCache = true
	case "must-revalidate":
		d.mustRevalidate = true
	case "must-understand":
		d.mustUnderstand = true
	case "only-if-cached":
		d.onlyIfCached = true
	case "public":
		d.public = true
	case "private":
		d.private = true
	case "max-age":
		n, _ := deltaSeconds(value) // unreadable: 0, which is stale
		d.maxAge.lower(n)
	case "min-fresh":
		n, ok := deltaSeconds(value)
		if !ok {
			n = deltaMax
		}
		d.minFresh = span{max(n, d.minFresh.d), true}
	case "max-stale":
		n, ok := deltaSeconds(value)
		if !given {
			n, ok = deltaMax, true
		}
		if ok {
			d.maxStale.lower(n)
		}
	case "stale-if-error":
		if n, ok := deltaSeconds(value); ok {
			d.staleIfError.lower(n)
		}
	}
}

func (s *span) lower(n time.Duration) {
	if !s.ok || n < s.d {
		*s = span{n, true}
	}
}

// deltaSeconds reads delta-seconds (RFC 9111, 1.2.2): digits alone, quoted or
// not. A number that does not fit is deltaMax.
func deltaSeconds(s string) (time.Duration, bool) {
	s = strings.TrimRight(s, " \t")
	if n := len(s); n >= 2 && s[0] == '"' && s[n-1] == '"' {
		s = s[1 : n-1]
	}
	if s == "" {
		return 0, false
	}
	var n time.Duration
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = min(n*10+time.Duration(c), deltaMax/time.Second)
	}
	return n * time.Second, true
}
