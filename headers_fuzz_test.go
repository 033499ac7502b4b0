package heed

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines splits fuzzed text into header lines.
func lines(s string) []string { return strings.Split(s, "\n") }

// joins says whether the lines are few, and each a list of its own, so that joining them changes nothing.
func joins(s string) bool {
	return strings.Count(s, ",")+strings.Count(s, "\n") < maxLines &&
		!slices.ContainsFunc(lines(s), func(line string) bool { return !balanced(line) })
}

// latest is the wait that Retry-After lines ask for; zero: none.
func latest(lines []string, now, base time.Time) time.Time {
	ev := evidence{status: http.StatusTooManyRequests, now: now, base: base}
	name, _ := parseName("Retry-After")
	ev.retry(field{"Retry-After", lines}, &name)
	at, _ := ev.asked()
	return at
}

// reset is what the lines of a reset field say.
func reset(lines []string, now, base time.Time) (time.Time, bool) {
	var r Reading
	p := reader{ev: evidence{status: http.StatusOK, now: now, base: base}}
	(&group{reset: lines}).whenWhole(&p, &r, -1)
	return r.Reset, r.absolute
}

// count is what the lines of a quota come to, or those of what is used. The
// fields of a trio that have nothing to say do not count.
func count(lines []string, most bool) (v float64, window time.Duration, ok bool) {
	name := "X-Ratelimit-Limit"
	if most {
		name = "X-Ratelimit-Used"
	}
	var fb Feedback
	readFields([]field{{name, lines}}, &evidence{status: http.StatusNotFound, now: june, base: june}, &fb)
	for i, r := range fb.Readings {
		n, has := r.Limit.Quota, r.Has&HasQuota != 0
		if most {
			n, has = r.Used, r.Has&HasUsed != 0
		}
		policies := strings.Contains(strings.Join(lines, ""), ";") // what expires comes last
		if has && (!ok || policies && i == len(fb.Readings)-1 || !policies && (n > v) == most) {
			v, window, ok = n, r.Limit.Window, true
		}
	}
	return v, window, ok
}

func FuzzParseFeedback(f *testing.F) {
	f.Add(429, "7", "60", "0", "12", "Mon, 01 Jun 2026 00:00:00 GMT", "")
	f.Add(403, "Mon, 01 Jun 2026 00:01:00 GMT", "100, 100;w=60", "5", "1780272060", "Sunday, 31-May-26 23:53:00 GMT", "600")
	f.Add(503, "1e999", "-1", "-1", "-1", "garbage", "-1")
	f.Add(200, "0", "0", "0", "0", "Fri, 31 Dec 9999 23:59:59 GMT", "99999999999999999999")
	f.Fuzz(func(t *testing.T, status int, retry, limit, remaining, reset, date, age string) {
		h := http.Header{
			"Retry-After": lines(retry), "X-Ratelimit-Limit": lines(limit), "X-Ratelimit-Remaining": lines(remaining),
			"X-Ratelimit-Used": lines(remaining), "X-Ratelimit-Reset": lines(reset), "Ratelimit-Remaining": lines(limit),
			"Ratelimit-Reset": lines(reset), "X-Rate-Limit-Limit": lines(remaining), "Date": lines(date), "Age": lines(age),
		}
		calm(t, ParseFeedback(&http.Response{StatusCode: status, Header: h}, june), status, june)
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"7", "0", "-5", "1.5", "7, 30", "1780272060", "1780272060000", "1" + strings.Repeat("0", 400), "1e999",
		"Mon, 01 Jun 2026 00:01:00 GMT", "Monday, 01-Jun-26 00:00:05 GMT", "Mon Jun  1 00:00:05 2026",
		"Mon, 01 Jun 2026 00:00:10 GMT, Mon, 01 Jun 2026 00:00:30 GMT", "soon,7\n9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		all := lines(s)
		at := latest(all, june, june)
		if !at.IsZero() && (at.Before(june) || at.After(june.Add(maxWait))) {
			t.Errorf("%q asks until %v", s, at)
		}
		// A longer wait beside it is never forgotten, a malformed one never counts.
		if len(all)+strings.Count(s, ",") < maxItems/2 {
			if more := latest(append([]string{"86400"}, all...), june, june); more.Before(at) || more.Before(june.Add(24*time.Hour)) {
				t.Errorf("%q beside a day asks until %v, alone until %v", s, more, at)
			}
			if same := latest(append([]string{"-5"}, all...), june, june); !same.Equal(at) {
				t.Errorf("%q beside a malformed line asks until %v, alone until %v", s, same, at)
			}
		}
		for _, line := range all {
			if got, ok := imfFixdate(line); ok {
				if want, err := http.ParseTime(line); err != nil || !want.Equal(got) {
					t.Errorf("%q is %v, the standard library has %v, %v", line, got, want, err)
				}
			}
		}
	})
}

func FuzzReset(f *testing.F) {
	for _, s := range []string{"12", "0", "-1", "0.5", "7, 30", "1780272060", "1780272060.5", "1780272060000", "500000000", "6m0s", "7\n30"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, absolute := reset(lines(s), june, june)
		if at.IsZero() && absolute || !at.IsZero() && (at.Before(june) || at.After(june.Add(maxWait))) {
			t.Errorf("%q resets at %v, absolute %v", s, at, absolute)
		}
		if joined, _ := reset([]string{strings.Join(lines(s), ",")}, june, june); !joined.Equal(at) && joins(s) {
			t.Errorf("%q resets at %v, joined at %v", s, at, joined)
		}
	})
}

func FuzzCount(f *testing.F) {
	for _, s := range []string{"60", "0", "-1", "17.5", "100, 100;w=60", "100;w=21600", "5, 3", "5\n3", "0x3C", "99999999999999999999, 5", ";w=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		least, window, ok := count(lines(s), false)
		most, _, also := count(lines(s), true)
		if ok && !(least >= 0 && least <= maxUnits) || also && !(most >= 0 && most <= maxUnits) || !ok && (least != 0 || window != 0) {
			t.Errorf("%q counts from %v (%v) to %v (%v) per %v", s, least, ok, most, also, window)
		}
		if window < 0 || window > maxWait {
			t.Errorf("%q is per %v", s, window)
		}
		if joins(s) {
			joined, w, _ := count([]string{strings.Join(lines(s), ",")}, false)
			if joined != least || w != window {
				t.Errorf("%q counts %v per %v, joined %v per %v", s, least, window, joined, w)
			}
		}
	})
}
