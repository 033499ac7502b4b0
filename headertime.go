package heed

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// told is a wait or an instant as a server wrote it: a delta, or an instant of its own clock.
type told struct {
	delta time.Duration
	at    time.Time // non-zero: absolute
}

// local brings what was told onto the local clock, within [now, now+maxWait].
func (t told) local(now, base time.Time) time.Time {
	d := t.delta
	if !t.at.IsZero() {
		d = t.at.Sub(base)
	}
	return now.Add(min(max(d, 0), maxWait))
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
	fraction := math.Round((n-whole*perSecond)*unit/1e3) * 1e3 // what a float64 holds of it
	return time.Unix(int64(whole), int64(fraction))
}

// when reads a wait or an instant: a number (with the scale that the field's
// name gives, else by its magnitude), a duration with units, an ISO 8601
// duration, or any date form in use.
func when(s string, scale time.Duration, now time.Time) (told, bool) {
	s = unquote(trim(s))
	if n, ok := number(s); ok {
		switch {
		case scale > time.Second:
			return told{delta: seconds(n * scale.Seconds())}, true
		case scale != 0 && scale < time.Second && n < 9e11:
			return told{delta: seconds(n * scale.Seconds())}, true
		}
		return magnitude(n)
	}
	if len(s) < 2 || len(s) > 96 {
		return told{}, false
	}
	if d, ok := duration(s); ok {
		return told{delta: d}, true
	}
	if at, ok := date(s, now); ok {
		return told{at: at}, true
	}
	return told{}, false
}

// duration reads "1m30.5s", "547ms", "12000ms", "30 seconds", "2.12 days",
// "1 hour, 5 minutes" without the comma, and ISO 8601 ("PT1M30S").
func duration(s string) (d time.Duration, ok bool) {
	if len(s) > 1 && (s[0] == 'P' || s[0] == 'p') {
		return isoDuration(s[1:])
	}
	total := 0.0
	for s != "" {
		i := 0
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
			i++
		}
		n, good := number(s[:i])
		if !good {
			return 0, false
		}
		s = strings.TrimLeft(s[i:], " ")
		i = 0
		for i < len(s) && !(s[i] >= '0' && s[i] <= '9') && s[i] != ' ' && s[i] != '.' {
			i++
		}
		unit := unitSpan(s[:i])
		if unit == 0 {
			return 0, false
		}
		total += n * unit.Seconds()
		s = strings.TrimLeft(s[i:], " ")
		ok = true
	}
	return seconds(total), ok
}

// unitSpan is the length of a unit of time by its name.
func unitSpan(unit string) time.Duration {
	switch unit {
	case "s", "sec", "secs", "second", "seconds", "Second", "Seconds", "S", "secondly":
		return time.Second
	case "m", "min", "mins", "minute", "minutes", "Min", "Minute", "Minutes", "minutely", "MINUTE":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours", "Hour", "Hours", "hourly":
		return time.Hour
	case "d", "day", "days", "Day", "Days", "daily":
		return 24 * time.Hour
	case "w", "week", "weeks", "weekly":
		return 7 * 24 * time.Hour
	case "month", "months", "Month", "monthly", "mo":
		return 30 * 24 * time.Hour
	case "ms", "msec", "millis", "millisecond", "milliseconds":
		return time.Millisecond
	case "us", "µs", "μs", "microsecond", "microseconds":
		return time.Microsecond
	case "ns", "nanosecond", "nanoseconds":
		return time.Nanosecond
	}
	return 0
}

// isoDuration reads what follows the P of an ISO 8601 duration.
func isoDuration(s string) (time.Duration, bool) {
	total, clock, ok := 0.0, false, false
	for s != "" {
		if s[0]|0x20 == 't' && !clock {
			clock, s = true, s[1:]
			continue
		}
		i := 0
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
			i++
		}
		n, good := number(s[:i])
		if !good || i == len(s) {
			return 0, false
		}
		var unit time.Duration
		switch c := s[i] | 0x20; {
		case c == 'w' && !clock:
			unit = 7 * 24 * time.Hour
		case c == 'd' && !clock:
			unit = 24 * time.Hour
		case c == 'm' && !clock:
			unit = 30 * 24 * time.Hour
		case c == 'y' && !clock:
			unit = 365 * 24 * time.Hour
		case c == 'h' && clock:
			unit = time.Hour
		case c == 'm' && clock:
			unit = time.Minute
		case c == 's' && clock:
			unit = time.Second
		default:
			return 0, false
		}
		total += n * unit.Seconds()
		s, ok = s[i+1:], true
	}
	return seconds(total), ok
}

// dateForms are the date forms beside the HTTP-dates. A zone that is missing is
// UTC, and so may the seconds be.
var dateForms = [...]string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04",
	"2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04Z0700",
	time.RFC1123Z, time.RFC1123, "Mon Jan _2 2006 15:04:05 GMT-0700",
}

// date reads any date form in use.
func date(s string, now time.Time) (time.Time, bool) {
	if at, ok := httpDate(s, now); ok {
		return at, true
	}
	if i := strings.IndexByte(s, '('); i > 0 { // JavaScript names the zone once more
		s = trim(s[:i])
	}
	if len(s) < 16 {
		return time.Time{}, false
	}
	for i, zone := range [...]string{" UTC", " Z", " GMT"} {
		if i < 2 && strings.HasSuffix(s, zone) && s[4] == '-' {
			s = strings.TrimSuffix(s, zone) + "Z"
		}
	}
	if len(s) < 16 {
		return time.Time{}, false
	}
	if s[4] == '-' && s[10] == ' ' {
		s = s[:10] + "T" + strings.ReplaceAll(s[11:], " ", "")
	}
	if s[4] == '-' && s[10] == 't' {
		s = strings.ToUpper(s)
	}
	for _, form := range dateForms {
		if at, err := time.Parse(form, s); err == nil && at.Year() > 1 {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// httpDate reads an HTTP-date (RFC 9110, 5.6.7). The common form has a path of
// its own, since every answer carries one.
func httpDate(s string, now time.Time) (time.Time, bool) {
	if t, ok := imfFixdate(s); ok {
		return t, true
	}
	if len(s) < 19 || len(s) > 40 || s[0] < 'A' || s[0] > 'Z' {
		return time.Time{}, false
	}
	dashed := strings.Contains(s, "-")
	if dashed && !strings.HasSuffix(s, " GMT") {
		return time.Time{}, false // time.Parse would look other zones up on this machine
	}
	t, err := http.ParseTime(s)
	if err != nil {
		return time.Time{}, false
	}
	if dashed {
		t = nearCentury(t, now)
	}
	return t.UTC(), true
}

// nearCentury moves a date whose year had two digits: one that looks more than
// 50 years ahead is of the past century (RFC 9110, 5.6.7). time.Parse has a
// fixed pivot instead.
func nearCentury(t, now time.Time) time.Time {
	for t.After(now.AddDate(50, 0, 0)) {
		t = t.AddDate(-100, 0, 0)
	}
	for t.Before(now.AddDate(-50, 0, 0)) {
		t = t.AddDate(100, 0, 0)
	}
	return t
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
