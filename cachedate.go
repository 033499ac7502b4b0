package heed

import (
	"net/http"
	"strings"
	"time"
)

// dateLayouts are the three forms of an HTTP-date (RFC 9110, 5.6.7).
var dateLayouts = [...]string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}

// cacheDate reads an HTTP-date as RFC 9111, 4.2 wants it of a cache: in any
// letter case, but otherwise to the letter, and in no zone but GMT. What a
// cache misreads as a date it serves too long. The weekday may be wrong.
func cacheDate(s string, now time.Time) (time.Time, bool) {
	if len(s) < 24 || len(s) > 33 {
		return time.Time{}, false
	}
	if zone := len(s) - 3; strings.EqualFold(s[zone:], "GMT") {
		s = s[:zone] + "GMT"
	}
	for i, layout := range dateLayouts {
		t, err := time.Parse(layout, s)
		if err != nil || !sameButWeekday(t.Format(layout), s) {
			continue // time.Parse lets digits be missing and spaces be more
		}
		if i == 1 {
			t = nearCentury(t, now)
		}
		return t, true
	}
	return time.Time{}, false
}

func sameButWeekday(a, b string) bool {
	_, a, _ = strings.Cut(a, " ")
	_, b, _ = strings.Cut(b, " ")
	return strings.EqualFold(a, b)
}
