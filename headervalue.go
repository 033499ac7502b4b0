package heed

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// maxWait is the longest wait that a server can ask for: what is longer, or
// does not fit, is read as this ("very large"), never as nothing.
const maxWait = 10 * 365 * 24 * time.Hour

// maxItems bounds the list items read of one field, and maxLines its lines.
const (
	maxItems = 64
	maxLines = 16
)

// number reads a non-negative decimal number with an optional fraction.
// Digits that do not fit give +Inf: very large is not malformed.
func number(s string) (v float64, ok bool) {
	if s == "" || len(s) > 4096 {
		return 0, false
	}
	whole, digits := s, ""
	if i := strings.IndexByte(s, '.'); i >= 0 {
		whole, digits = s[:i], s[i+1:]
		if digits == "" {
			return 0, false
		}
	}
	if whole == "" {
		return 0, false
	}
	for i := range len(whole) {
		c := whole[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + float64(c-'0')
	}
	scale := 0.1
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		v += float64(c-'0') * scale
		scale /= 10
	}
	if v > math.MaxInt64 {
		v = math.Inf(1)
	}
	return v, true
}

// digits reads up to 15 digits, which a float64 holds exactly: nearly every field is no more.
func digits(s string) (v float64, ok bool) {
	if s == "" || len(s) > 15 {
		return 0, false
	}
	n := int64(0)
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return float64(n), true
}

// seconds turns a number of seconds into a duration, rounded up to the
// nanosecond and at most maxWait.
func seconds(v float64) time.Duration {
	if v >= maxWait.Seconds() {
		return maxWait
	}
	return time.Duration(math.Ceil(v * 1e9))
}

// count reads a number of units out of all lines of a field, which are one list
// (RFC 9110, 5.3). Bare items are the figure, and what proxies repeat of it: the
// most restrictive wins, which is the least, or the most of what is used. Items
// with a window are policies, and are the figure only when there is no bare one.
// A negative or unreadable item is unknown, and so is one that does not fit.
func count(lines []string, most bool) (v float64, window time.Duration, ok bool) {
	if len(lines) == 1 {
		if n, plain := digits(lines[0]); plain {
			return n, 0, true
		}
	}
	bare := false
	for _, line := range lines[:min(len(lines), maxLines)] {
		for range maxItems {
			if line == "" {
				break
			}
			var item string
			item, line, _ = strings.Cut(line, ",")
			num, params, _ := strings.Cut(item, ";")
			n, good := number(strings.TrimSpace(num))
			if !good || n > maxUnits {
				continue
			}
			w := windowOf(params)
			if ok && (bare && w != 0 || bare == (w == 0) && (n < v) == most) {
				continue
			}
			v, window, ok, bare = n, w, true, w == 0
		}
	}
	if bare {
		window = listedWindow(v, lines)
	}
	return v, window, ok
}

// windowOf finds the parameter w (seconds) among an item's parameters.
func windowOf(params string) time.Duration {
	for range maxItems {
		if params == "" {
			break
		}
		var p string
		p, params, _ = strings.Cut(params, ";")
		if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); name == "w" {
			if n, ok := number(value); ok && n > 0 {
				return seconds(n)
			}
		}
	}
	return 0
}

// listedWindow finds, among the policies that stand beside the expiring limit in
// RateLimit-Limit (drafts 00 to 03: "100, 100;w=60, 5000;w=3600"), the one of
// the same quota.
func listedWindow(quota float64, lines []string) time.Duration {
	for _, line := range lines[:min(len(lines), maxLines)] {
		for range maxItems {
			if line == "" {
				break
			}
			var item string
			item, line, _ = strings.Cut(line, ",")
			num, params, many := strings.Cut(item, ";")
			if !many {
				continue
			}
			if n, ok := number(strings.TrimSpace(num)); ok && n == quota {
				if w := windowOf(params); w > 0 {
					return w
				}
			}
		}
	}
	return 0
}

// told is a wait or an instant as a server wrote it: a delta, or an instant of its own clock.
type told struct {
	delta time.Duration
	at    time.Time // non-zero: absolute
}

// magnitude tells a bare number's unit by its size, whatever the field's name
// says: servers write both deltas and epochs under one name. Epochs begin in
// 1998, so that the year 2000, where testing/synctest begins, is one too.
func magnitude(n float64) (t told, ok bool) {
	switch {
	case n < 3.2e8: // ten years of seconds
		return told{delta: seconds(n)}, true
	case n >= 9e8 && n < 1e10:
		return told{at: epoch(n, 1e9)}, true
	case n >= 9e11 && n < 1e13:
		return told{at: epoch(n, 1e6)}, true
	case n >= 9e14 && n < 1e16:
		return told{at: epoch(n, 1e3)}, true
	case n >= 9e17 && n < math.MaxInt64:
		return told{at: epoch(n, 1)}, true
	default:
		return told{}, false
	}
}

// epoch is n units of unit nanoseconds since 1970.
func epoch(n, unit float64) time.Time {
	perSecond := 1e9 / unit
	whole := math.Floor(n / perSecond)
	return time.Unix(int64(whole), int64(math.Ceil((n-whole*perSecond)*unit)))
}

// wait reads a Retry-After value: delta-seconds (a fraction is rounded up), any
// of the three HTTP-date forms (RFC 9110, 5.6.7 and 10.2.3), or an epoch.
// A number that fits no unit is a very large wait.
func wait(s string, now time.Time) (told, bool) {
	s = strings.TrimSpace(s)
	if n, ok := number(s); ok {
		if t, ok := magnitude(n); ok {
			return t, true
		}
		return told{delta: maxWait}, true
	}
	if len(s) > 64 {
		return told{}, false
	}
	if at, ok := httpDate(s, now); ok {
		return told{at: at}, true
	}
	return told{}, false
}

// httpDate reads an HTTP-date. The common form has a path of its own, since
// every answer carries one.
func httpDate(s string, now time.Time) (time.Time, bool) {
	if t, ok := imfFixdate(s); ok {
		return t, true
	}
	dashed := strings.Contains(s, "-")
	if dashed && !strings.HasSuffix(s, " GMT") {
		return time.Time{}, false // time.Parse would look other zones up on this machine
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return time.Time{}, false
	}
	// RFC 9110, 5.6.7: a two-digit year that looks more than 50 years ahead
	// is of the past century. time.Parse has a fixed pivot instead.
	if dashed {
		for t.After(now.AddDate(50, 0, 0)) {
			t = t.AddDate(-100, 0, 0)
		}
		for t.Before(now.AddDate(-50, 0, 0)) {
			t = t.AddDate(100, 0, 0)
		}
	}
	return t.UTC(), true
}

const (
	months = "JanFebMarAprMayJunJulAugSepOctNovDec"
	days   = "SunMonTueWedThuFriSat"
)

// imfFixdate reads "Sun, 06 Nov 1994 08:49:37 GMT" without allocating.
func imfFixdate(s string) (time.Time, bool) {
	if len(s) != 29 || s[3] != ',' || s[4] != ' ' || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' ||
		s[19] != ':' || s[22] != ':' || s[25:] != " GMT" {
		return time.Time{}, false
	}
	if i := strings.Index(days, s[:3]); i < 0 || i%3 != 0 {
		return time.Time{}, false
	}
	at := strings.Index(months, s[8:11])
	day, hour, minute, second := two(s, 5), two(s, 17), two(s, 20), two(s, 23)
	century, year := two(s, 12), two(s, 14)
	if at < 0 || at%3 != 0 || min(day, hour, minute, second, century, year) < 0 ||
		hour > 23 || minute > 59 || second > 59 || day < 1 {
		return time.Time{}, false
	}
	// The days since 1970. Years begin in March here, so that a leap day is the last of its year.
	y, m := century*100+year, at/3+1
	if m <= 2 {
		y, m = y-1, m+12
	}
	if y < 0 { // before March of the year 0 the divisions below would round the wrong way
		return time.Time{}, false
	}
	since := 365*y + y/4 - y/100 + y/400 + (153*m-457)/5 + day - 719_469
	t := time.Unix(int64(since*86_400+hour*3600+minute*60+second), 0).UTC()
	if day > 28 && t.Day() != day { // 31 February
		return time.Time{}, false
	}
	return t, true
}

// two reads two digits at i, or -1.
func two(s string, i int) int {
	a, b := s[i]-'0', s[i+1]-'0'
	if a > 9 || b > 9 {
		return -1
	}
	return int(a)*10 + int(b)
}
