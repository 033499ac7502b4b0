package heed

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

var june = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) // epoch 1780272000

// field pairs make a header; a name may come twice.
func headerOf(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func readAt(now time.Time, status int, pairs ...string) Feedback {
	return ParseFeedback(&http.Response{StatusCode: status, Header: headerOf(pairs...)}, now)
}

const noHint = time.Duration(-1)

func asked(fb Feedback, now time.Time) time.Duration {
	if fb.RetryAt.IsZero() {
		return noHint
	}
	return fb.RetryAt.Sub(now)
}

func TestEveryFormOfRetryAfterIsRead(t *testing.T) {
	for _, x := range []struct {
		name  string
		lines []string
		want  time.Duration
	}{
		{"seconds", []string{"120"}, 2 * time.Minute},
		{"seconds with blanks", []string{"  120\t"}, 2 * time.Minute},
		{"leading zeros", []string{"007"}, 7 * time.Second},
		{"a fraction", []string{"1.337"}, 1337 * time.Millisecond},
		{"a fraction of less than a nanosecond rounds up", []string{"0.0000000001"}, 1},
		{"zero is no hint", []string{"0"}, 0},
		{"a zero fraction is no hint", []string{"0.0"}, 0},
		{"negative", []string{"-5"}, noHint},
		{"minus one", []string{"-1"}, noHint},
		{"negative zero", []string{"-0"}, noHint},
		{"a plus sign", []string{"+5"}, 5 * time.Second},
		{"not a number", []string{"NaN"}, noHint},
		{"infinite", []string{"Infinity"}, noHint},
		{"an exponent, as programs write large numbers", []string{"1e999"}, maxWait},
		{"hex", []string{"0x10"}, noHint},
		{"words", []string{"soon"}, noHint},
		{"a unit", []string{"5s"}, 5 * time.Second},
		{"empty", []string{""}, noHint},
		{"a blank", []string{" "}, noHint},
		{"a day", []string{"86400"}, 24 * time.Hour},
		{"ten years", []string{"315360000"}, maxWait},
		{"more than ten years", []string{"319999999"}, maxWait},
		{"between a delta and an epoch", []string{"500000000"}, maxWait},
		{"64 bits of seconds", []string{"9223372036854775807"}, maxWait},
		{"64 bits of nanoseconds in seconds", []string{"9223372037"}, maxWait},
		{"one and 400 zeros", []string{"1" + strings.Repeat("0", 400)}, maxWait},
		{"an epoch", []string{"1780272030"}, 30 * time.Second},
		{"an epoch that is past", []string{"1780271999"}, 0},
		{"an epoch in milliseconds", []string{"1780272030000"}, 30 * time.Second},
		{"IMF-fixdate", []string{"Mon, 01 Jun 2026 00:01:00 GMT"}, time.Minute},
		{"RFC 850", []string{"Monday, 01-Jun-26 00:00:05 GMT"}, 5 * time.Second},
		{"RFC 850 of the last century", []string{"Monday, 01-Jun-98 00:00:05 GMT"}, 0},
		{"asctime", []string{"Mon Jun  1 00:00:05 2026"}, 5 * time.Second},
		{"a past date is no hint", []string{"Wed, 21 Oct 2015 07:28:00 GMT"}, 0},
		{"the present instant is no hint", []string{"Mon, 01 Jun 2026 00:00:00 GMT"}, 0},
		{"a far date", []string{"Fri, 31 Dec 9999 23:59:59 GMT"}, maxWait},
		{"a leap second", []string{"Mon, 01 Jun 2026 00:00:60 GMT"}, noHint},
		{"the thirty-first of February", []string{"Tue, 31 Feb 2026 00:00:00 GMT"}, noHint},
		{"a date in lower case", []string{"mon, 01 jun 2026 00:01:00 gmt"}, noHint},
		{"a date of another zone", []string{"Monday, 01-Jun-26 00:00:05 PST"}, noHint},
		{"repeated", []string{"7", "7"}, 7 * time.Second},
		{"repeated differently: the longest", []string{"7", "30", "9"}, 30 * time.Second},
		{"joined", []string{"7, 7"}, 7 * time.Second},
		{"joined differently: the longest", []string{"7, 30"}, 30 * time.Second},
		{"joined epochs", []string{"1780272010, 1780272030"}, 30 * time.Second},
		{"joined dates", []string{"Mon, 01 Jun 2026 00:00:10 GMT, Mon, 01 Jun 2026 00:00:30 GMT"}, 30 * time.Second},
		{"seconds and a date", []string{"7, Mon, 01 Jun 2026 00:00:30 GMT"}, 30 * time.Second},
		{"a date and seconds", []string{"Mon, 01 Jun 2026 00:00:30 GMT, 40"}, 40 * time.Second},
		{"two dates in lines of their own", []string{"Mon, 01 Jun 2026 00:00:30 GMT", "Mon Jun  1 00:00:35 2026"}, 35 * time.Second},
		{"garbage and a good one", []string{"soon", "7"}, 7 * time.Second},
		{"garbage joined to a good one", []string{"soon, 7"}, 7 * time.Second},
		{"an endless line", []string{strings.Repeat("9", 1<<20)}, noHint},
		{"an endless list", []string{strings.Repeat("1,", 1<<16) + "99"}, time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			h := http.Header{"Retry-After": x.lines}
			fb := ParseFeedback(&http.Response{StatusCode: 429, Header: h}, june)
			got := asked(fb, june)
			if got != x.want && !(x.want == 1337*time.Millisecond && got.Round(time.Microsecond) == x.want) {
				t.Errorf("Retry-After %.40q asks for %v, want %v", x.lines, got, x.want)
			}
			if !fb.Limited || fb.Kind != KindPrimary {
				t.Errorf("a 429 is %v, limited %v", fb.Kind, fb.Limited)
			}
		})
	}
}

func TestDatesAreMeasuredAgainstTheAnswersOwnClock(t *testing.T) {
	for _, skew := range []time.Duration{-7 * time.Minute, -time.Second, 0, time.Second, 7 * time.Minute, 24 * time.Hour, -20 * 365 * 24 * time.Hour} {
		server := june.Add(skew)
		date := server.Format(http.TimeFormat)
		at := server.Add(90 * time.Second)
		for name, value := range map[string]string{
			"date": at.Format(http.TimeFormat), "asctime": at.Format(time.ANSIC), "RFC 850": at.Format("Monday, 02-Jan-06 15:04:05 GMT"),
			"epoch": strconv.FormatInt(at.Unix(), 10), "milliseconds": strconv.FormatInt(at.UnixMilli(), 10),
		} {
			if fb := readAt(june, 429, "Date", date, "Retry-After", value); asked(fb, june) != 90*time.Second {
				t.Errorf("clock off by %v, %s: the wait is %v, want 1m30s", skew, name, asked(fb, june))
			}
		}
		fb := readAt(june, 200, "Date", date, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", strconv.FormatInt(at.Unix(), 10))
		if got := fb.Readings[0].Reset.Sub(june); got != 90*time.Second || !fb.Readings[0].absolute {
			t.Errorf("clock off by %v: the reset is in %v, want 1m30s", skew, got)
		}
		if !fb.Date.Equal(server) {
			t.Errorf("Date is %v, want %v", fb.Date, server)
		}
	}
}

func TestWithoutADateTheLocalClockCounts(t *testing.T) {
	for _, date := range [][]string{nil, {"Date", "garbage"}, {"Date", ""}, {"Date", "Fri, 31 Dec 9999 23:59:59 GMT"}, {"Date", "Sat, 01 Jan 0001 00:00:00 GMT"}} {
		fb := readAt(june, 429, append(date, "Retry-After", "Mon, 01 Jun 2026 00:01:00 GMT")...)
		if asked(fb, june) != time.Minute || !fb.Date.IsZero() {
			t.Errorf("with %q the wait is %v and the date %v", date, asked(fb, june), fb.Date)
		}
	}
}

func TestAnAnswerFromACacheTellsNoClock(t *testing.T) {
	date := june.Add(-10 * time.Minute).Format(http.TimeFormat)
	reset := strconv.FormatInt(june.Add(30*time.Second).Unix(), 10)
	fb := readAt(june, 429, "Date", date, "Age", "600", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset)
	if asked(fb, june) != 30*time.Second {
		t.Errorf("the wait is %v, want 30s", asked(fb, june))
	}
	if !fb.Date.IsZero() {
		t.Errorf("Date is %v, want none", fb.Date)
	}
	for _, age := range []string{"0", "-1", "x", ""} {
		if fb := readAt(june, 429, "Date", date, "Age", age, "Retry-After", "5"); fb.Date.IsZero() || asked(fb, june) != 5*time.Second {
			t.Errorf("Age %q: the date is %v and the wait %v", age, fb.Date, asked(fb, june))
		}
	}
}

func TestTheSameInstantInEveryFormIsTheSameWait(t *testing.T) {
	r := dice(t)
	for range 500 {
		now := time.Unix(1e9+r.Int64N(3e9), r.Int64N(1e9)).UTC()
		at := now.Add(time.Duration(1 + r.Int64N(int64(30*24*time.Hour))))
		skew := time.Duration(r.Int64N(int64(14*time.Minute))) - 7*time.Minute
		server, theirs := now.Add(skew), at.Add(skew)
		up := theirs.Add(time.Second - 1).Truncate(time.Second)
		forms := map[string]string{
			"delta":        strconv.FormatInt(int64((at.Sub(now)+time.Second-1)/time.Second), 10),
			"fraction":     fmt.Sprintf("%.9f", at.Sub(now).Seconds()),
			"seconds":      strconv.FormatInt(up.Unix(), 10),
			"milliseconds": strconv.FormatInt(theirs.UnixMilli(), 10),
			"microseconds": strconv.FormatInt(theirs.UnixMicro(), 10),
			"nanoseconds":  strconv.FormatInt(theirs.UnixNano(), 10),
			"IMF-fixdate":  up.Format(http.TimeFormat),
			"RFC 850":      up.Format("Monday, 02-Jan-06 15:04:05 GMT"),
			"asctime":      up.Format(time.ANSIC),
		}
		want := at.Sub(now)
		for name, text := range forms {
			fb := readAt(now, 429, "Retry-After", text, "Date", server.Format(http.TimeFormat))
			// A Date is in whole seconds, and so are most forms: up to 2 s late, and early only by what a form cuts off.
			if got := asked(fb, now); got < want-time.Millisecond || got > want+2*time.Second {
				t.Fatalf("now %v: %s %q asks for %v, want %v", now, name, text, got, want)
			}
			// Against the same base all forms agree within a second.
			fb = readAt(server, 429, "Retry-After", text)
			if got := asked(fb, server); (got - want).Abs() > time.Second {
				t.Fatalf("now %v: %s %q asks for %v, want %v", server, name, text, got, want)
			}
			if name == "IMF-fixdate" || name == "RFC 850" || name == "asctime" {
				continue
			}
			fb = readAt(server, 429, "RateLimit-Remaining", "0", "RateLimit-Reset", text)
			if got := asked(fb, server); (got - want).Abs() > time.Second {
				t.Fatalf("now %v: a reset in %s %q is in %v, want %v", server, name, text, got, want)
			}
		}
	}
}

// wantReading is a reading as a table writes it; -1: not said.
type wantReading struct {
	quota, remaining, used float64
	window, reset          time.Duration
	name, from             string
}

func (w wantReading) compare(r Reading, now time.Time) string {
	got := wantReading{-1, -1, -1, r.Limit.Window, -1, r.Limit.Name, r.From}
	if r.Has&HasQuota != 0 {
		got.quota = r.Limit.Quota
	}
	if r.Has&HasRemaining != 0 {
		got.remaining = r.Remaining
	}
	if r.Has&HasUsed != 0 {
		got.used = r.Used
	}
	if !r.Reset.IsZero() {
		got.reset = r.Reset.Sub(now)
	}
	if got != w {
		return fmt.Sprintf("got %+v, want %+v", got, w)
	}
	return ""
}

func TestTriosAreReadInAllTheirSpellings(t *testing.T) {
	const x, ietf, dashed = "X-Ratelimit-Remaining", "Ratelimit-Remaining", "X-Rate-Limit-Remaining"
	for _, c := range []struct {
		name   string
		header []string
		want   []wantReading
	}{
		{"nothing", nil, nil},
		{"the vendors' trio", []string{"X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4999", "X-RateLimit-Reset", "1780275600"},
			[]wantReading{{5000, 4999, -1, 0, time.Hour, "", x}}},
		{"in lower case", []string{"x-ratelimit-limit", "5000", "x-ratelimit-remaining", "4999", "x-ratelimit-reset", "1780275600"},
			[]wantReading{{5000, 4999, -1, 0, time.Hour, "", x}}},
		{"with what is used and a name", []string{"X-RateLimit-Limit", "5000", "X-RateLimit-Remaining", "4999", "X-RateLimit-Used", "1", "X-RateLimit-Resource", "core"},
			[]wantReading{{5000, 4999, 1, 0, -1, "core", x}}},
		{"the other spelling", []string{"X-Rate-Limit-Limit", "15", "X-Rate-Limit-Remaining", "14", "X-Rate-Limit-Reset", "900"},
			[]wantReading{{15, 14, -1, 0, 15 * time.Minute, "", dashed}}},
		{"the early drafts", []string{"RateLimit-Limit", "100, 100;w=60", "RateLimit-Remaining", "9", "RateLimit-Reset", "12"},
			[]wantReading{{100, 9, -1, time.Minute, 12 * time.Second, "", ietf}}},
		{"an epoch under the drafts' names", []string{"RateLimit-Limit", "600", "RateLimit-Remaining", "599", "RateLimit-Reset", "1780272060"},
			[]wantReading{{600, 599, -1, 0, time.Minute, "", ietf}}},
		{"an epoch in milliseconds", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1780272060000"},
			[]wantReading{{-1, 0, -1, 0, time.Minute, "", x}}},
		{"an epoch with a fraction", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1780272060.25"},
			[]wantReading{{-1, 0, -1, 0, time.Minute + time.Second/4, "", x}}},
		{"a fractional delta", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0.5"},
			[]wantReading{{-1, 0, -1, 0, time.Second / 2, "", x}}},
		{"a window on what remains", []string{"ratelimit-limit", "100;w=21600", "ratelimit-remaining", "76;w=21600"},
			[]wantReading{{100, 76, -1, 6 * time.Hour, -1, "", ietf}}},
		{"a window on what remains alone", []string{"ratelimit-limit", "100", "ratelimit-remaining", "76;w=60"},
			[]wantReading{{100, 76, -1, time.Minute, -1, "", ietf}}},
		{"no limit", []string{"X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "12"},
			[]wantReading{{-1, 0, -1, 0, 12 * time.Second, "", dashed}}},
		{"no reset", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "59"},
			[]wantReading{{60, 59, -1, 0, -1, "", x}}},
		{"a quota alone", []string{"X-RateLimit-Limit", "60"},
			[]wantReading{{60, -1, -1, 0, -1, "", "X-Ratelimit-Limit"}}},
		{"a reset alone, as Contentful sends it", []string{"X-RateLimit-Reset", "12"},
			[]wantReading{{-1, -1, -1, 0, 12 * time.Second, "", "X-Ratelimit-Reset"}}},
		{"used alone, as Twilio and Binance send it", []string{"X-RateLimit-Used", "12"},
			[]wantReading{{-1, -1, 12, 0, -1, "", "X-Ratelimit-Used"}}},
		{"remaining follows from used", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Used", "12"},
			[]wantReading{{60, 48, 12, 0, -1, "", "X-Ratelimit-Used"}}},
		{"used beyond the quota", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Used", "61"},
			[]wantReading{{60, 0, 61, 0, -1, "", "X-Ratelimit-Used"}}},
		{"used repeated: the most", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Used", "12", "X-RateLimit-Used", "20"},
			[]wantReading{{60, 40, 20, 0, -1, "", "X-Ratelimit-Used"}}},
		{"a float, and the quota that follows", []string{"X-RateLimit-Remaining", "587.0", "X-RateLimit-Used", "13", "X-RateLimit-Reset", "171"},
			[]wantReading{{600, 587, 13, 0, 171 * time.Second, "", x}}},
		{"repeated: the most restrictive", []string{"X-RateLimit-Remaining", "5", "X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "7", "X-RateLimit-Reset", "30"},
			[]wantReading{{-1, 3, -1, 0, 30 * time.Second, "", x}}},
		{"joined: the most restrictive", []string{"X-RateLimit-Remaining", "5, 3", "X-RateLimit-Reset", "7, 30"},
			[]wantReading{{-1, 3, -1, 0, 30 * time.Second, "", x}}},
		{"equal resets", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "7, 7"},
			[]wantReading{{-1, 0, -1, 0, 7 * time.Second, "", x}}},
		{"a past reset", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1780271999"},
			[]wantReading{{-1, 0, -1, 0, 0, "", x}}},
		{"an absurd reset", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "99999999999"},
			[]wantReading{{-1, 0, -1, 0, -1, "", x}}},
		{"a reset that does not fit", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1" + strings.Repeat("0", 400)},
			[]wantReading{{-1, 0, -1, 0, -1, "", x}}},
		{"a bad reset does not drop its siblings", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "-1"},
			[]wantReading{{60, 7, -1, 0, -1, "", x}}},
		{"a bad limit does not drop its siblings", []string{"X-RateLimit-Limit", "0x3c", "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "9"},
			[]wantReading{{-1, 7, -1, 0, 9 * time.Second, "", x}}},
		{"minus one is unlimited", []string{"X-RateLimit-Limit", "-1", "X-RateLimit-Remaining", "-1", "X-RateLimit-Reset", "-1"}, nil},
		{"minus one remains: unknown", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "-1"},
			[]wantReading{{60, -1, -1, 0, -1, "", x}}},
		{"negative zero remains: unknown", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "-0"},
			[]wantReading{{60, -1, -1, 0, -1, "", x}}},
		{"empty fields", []string{"X-RateLimit-Limit", "", "X-RateLimit-Remaining", ""}, nil},
		{"not numbers", []string{"X-RateLimit-Limit", "NaN", "X-RateLimit-Remaining", "Inf"}, nil},
		{"all zero on a success is no quota", []string{"X-RateLimit-Limit", "0", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0"}, nil},
		{"zero of zero with a reset to come", []string{"X-RateLimit-Limit", "0", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "9"},
			[]wantReading{{0, 0, -1, 0, 9 * time.Second, "", x}}},
		{"both families say the same", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "1780272009",
			"RateLimit-Limit", "60", "RateLimit-Remaining", "7", "RateLimit-Reset", "9"},
			[]wantReading{{60, 7, -1, 0, 9 * time.Second, "", ietf}}},
		{"the second family completes the first", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "7",
			"RateLimit-Limit", "60, 60;w=60", "RateLimit-Remaining", "7", "RateLimit-Reset", "9"},
			[]wantReading{{60, 7, -1, time.Minute, 9 * time.Second, "", x}}},
		{"all three families say the same", []string{"X-RateLimit-Remaining", "7", "RateLimit-Remaining", "7", "X-Rate-Limit-Remaining", "7", "X-Rate-Limit-Limit", "60"},
			[]wantReading{{60, 7, -1, 0, -1, "", dashed}}},
		{"two families of two limits", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "7", "RateLimit-Limit", "5000", "RateLimit-Remaining", "4000"},
			[]wantReading{{5000, 4000, -1, 0, -1, "", ietf}, {60, 7, -1, 0, -1, "", x}}},
		{"two families of two windows", []string{"X-RateLimit-Remaining", "7", "X-RateLimit-Reset", "60", "RateLimit-Remaining", "7", "RateLimit-Reset", "3600"},
			[]wantReading{{-1, 7, -1, 0, time.Hour, "", ietf}, {-1, 7, -1, 0, time.Minute, "", x}}},
		{"an endless name is no name", []string{"X-RateLimit-Limit", "60", "X-RateLimit-Resource", strings.Repeat("n", 129)},
			[]wantReading{{60, -1, -1, 0, -1, "", "X-Ratelimit-Limit"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fb := readAt(june, 200, c.header...)
			if len(fb.Readings) != len(c.want) {
				t.Fatalf("%d readings, want %d: %+v", len(fb.Readings), len(c.want), fb.Readings)
			}
			for i, w := range c.want {
				if diff := w.compare(fb.Readings[i], june); diff != "" {
					t.Error(diff)
				}
			}
			if fb.Limited || fb.Kind != KindNone || !fb.RetryAt.IsZero() {
				t.Errorf("a success is read as %v, limited %v, until %v", fb.Kind, fb.Limited, fb.RetryAt)
			}
		})
	}
}

func TestAnAnswerIsARefusalOnlyWithEvidence(t *testing.T) {
	left := []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "4", "X-RateLimit-Reset", "40"}
	spent := []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "40"}
	silent := []string{"X-RateLimit-Limit", "60", "X-RateLimit-Reset", "40"}
	spentDay := []string{"RateLimit-Limit", "900", "RateLimit-Remaining", "0", "RateLimit-Reset", "3600"}
	leftDay := []string{"RateLimit-Limit", "900", "RateLimit-Remaining", "5", "RateLimit-Reset", "3600"}
	negative := []string{"X-RateLimit-Limit", "60", "X-RateLimit-Remaining", "-3", "X-RateLimit-Reset", "40"}
	with := func(h []string, more ...string) []string { return append(append([]string(nil), h...), more...) }
	for _, x := range []struct {
		name    string
		status  int
		header  []string
		limited bool
		kind    Kind
		wait    time.Duration
	}{
		{"a bare 429 comes from before the limiter that reports, as with Riot Games", 429, nil, true, KindSecondary, noHint},
		{"a 429 with a wait", 429, []string{"Retry-After", "5"}, true, KindPrimary, 5 * time.Second},
		{"a 429 of a spent limit", 429, spent, true, KindPrimary, 40 * time.Second},
		{"a 429 with a wait and a spent limit: the wait counts", 429, with(spent, "Retry-After", "5"), true, KindPrimary, 5 * time.Second},
		{"a 429 with no hint and a spent limit", 429, with(spent, "Retry-After", "0"), true, KindPrimary, 40 * time.Second},
		{"a 429 with a past date and a spent limit", 429, with(spent, "Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"), true, KindPrimary, 40 * time.Second},
		{"a 429 with a malformed wait and a spent limit", 429, with(spent, "Retry-After", "-1"), true, KindPrimary, 40 * time.Second},
		{"a 429 of two spent limits: the longest", 429, with(spent, spentDay...), true, KindPrimary, time.Hour},
		{"a 429 of one of two limits", 429, with(spent, leftDay...), true, KindPrimary, 40 * time.Second},
		{"a 429 with units left is another limiter's", 429, left, true, KindSecondary, noHint},
		{"a 429 with units left and a wait", 429, with(left, "Retry-After", "60"), true, KindSecondary, time.Minute},
		{"a 429 with units left and no hint", 429, with(left, "Retry-After", "0"), true, KindSecondary, 0},
		{"a 429 that is silent about what remains", 429, silent, true, KindPrimary, 40 * time.Second},
		{"a 429 with less than nothing", 429, negative, true, KindPrimary, 40 * time.Second},
		{"a 429 of a spent limit whose reset is past", 429, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1780271999"}, true, KindPrimary, 0},
		{"a 429 of a quota of zero", 429, []string{"X-RateLimit-Limit", "0", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "0"}, true, KindPrimary, 0},
		{"a bare 403 is about rights", 403, nil, false, KindNone, noHint},
		{"a 403 with units left is about rights", 403, left, false, KindNone, noHint},
		{"a 403 that is silent about what remains", 403, silent, false, KindNone, noHint},
		{"a 403 of a spent limit", 403, spent, true, KindPrimary, 40 * time.Second},
		{"a 403 with a wait", 403, []string{"Retry-After", "5"}, true, KindSecondary, 5 * time.Second},
		{"a 403 with a wait and units left", 403, with(left, "Retry-After", "5"), true, KindSecondary, 5 * time.Second},
		{"a 403 with no hint is about rights", 403, []string{"Retry-After", "0"}, false, KindNone, 0},
		{"a 403 with a malformed wait is about rights", 403, []string{"Retry-After", "-1"}, false, KindNone, noHint},
		{"a bare 503 is overload", 503, nil, false, KindOverload, noHint},
		{"a 503 with a wait", 503, []string{"Retry-After", "5"}, false, KindOverload, 5 * time.Second},
		{"a 503 of a spent limit is the limit's", 503, spent, true, KindPrimary, 40 * time.Second},
		{"a bare 529 is overload", 529, nil, false, KindOverload, noHint},
		{"a 529 with a wait", 529, []string{"Retry-After", "5"}, false, KindOverload, 5 * time.Second},
		{"a 500", 500, nil, false, KindNone, noHint},
		{"a 502 with a wait", 502, []string{"Retry-After", "5"}, false, KindNone, 5 * time.Second},
		{"a 404 with a wait", 404, []string{"Retry-After", "5"}, false, KindNone, 5 * time.Second},
		{"a 413 with a wait", 413, []string{"Retry-After", "5"}, false, KindNone, 5 * time.Second},
		{"a 200 with a wait is noise", 200, []string{"Retry-After", "5"}, false, KindNone, noHint},
		{"a 201 with a wait is a poll", 201, []string{"Retry-After", "5"}, false, KindNone, noHint},
		{"a 202 with a wait is a poll", 202, []string{"Retry-After", "Mon, 01 Jun 2026 00:01:00 GMT"}, false, KindNone, noHint},
		{"a 301 with a wait is a redirect", 301, []string{"Retry-After", "5"}, false, KindNone, noHint},
		{"a 304 of a spent limit", 304, spent, false, KindNone, noHint},
		{"a 200 of a spent limit", 200, spent, false, KindNone, noHint},
		{"a status out of range", 0, []string{"Retry-After", "5"}, false, KindNone, noHint},
	} {
		t.Run(x.name, func(t *testing.T) {
			fb := readAt(june, x.status, x.header...)
			if fb.Limited != x.limited || fb.Kind != x.kind || asked(fb, june) != x.wait {
				t.Errorf("limited %v, %v, wait %v; want %v, %v, %v", fb.Limited, fb.Kind, asked(fb, june), x.limited, x.kind, x.wait)
			}
		})
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range map[Kind]string{KindNone: "none", KindPrimary: "primary", KindSecondary: "secondary", KindOverload: "overload",
		KindQuota: "quota", KindConcurrency: "concurrency", KindBan: "ban", 99: "none"} {
		if k.String() != want {
			t.Errorf("kind %d is called %q, want %q", k, k, want)
		}
	}
}

// odd are values that servers and their enemies write.
var odd = []string{"", " ", "0", "1", "5", "60", "5000", "-1", "-0", "+1", "1.5", "0.0", ".5", "NaN", "1e999", "0x10", "unlimited",
	"100, 100;w=60", "100;w=60", "7, 30", "5;w=-1", "5;w=1e9", ";;;", ",,,", "1,", ",1", "1780272060", "1780272060000", "1780272060000000",
	"1780272060000000000", "9223372036854775807", "9223372036854775808", "99999999999999999999999999", "500000000", "Mon, 01 Jun 2026 00:01:00 GMT",
	"Monday, 01-Jun-26 00:00:05 GMT", "Mon Jun  1 00:00:05 2026", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT",
	"Thu, 01 Jan 1970 00:00:00 GMT", "\x00", "\xff\xfe", "１２", "5 apples"}

var oddNames = []string{"Retry-After", "Date", "Age", "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Used",
	"X-Ratelimit-Resource", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"}

// oddHeader is a random header, good and bad fields mixed.
func oddHeader(r *rand.Rand) http.Header {
	h := make(http.Header)
	for range r.IntN(12) {
		name := oddNames[r.IntN(len(oddNames))]
		h[name] = append(h[name], odd[r.IntN(len(odd))])
	}
	return h
}

// calm holds for every feedback of a header alone, whatever the server wrote.
func calm(t *testing.T, fb Feedback, status int, now time.Time) {
	t.Helper()
	sane(t, fb, now)
	if status < 400 && (!fb.RetryAt.IsZero() || fb.Limited) {
		t.Errorf("a %d is limited %v until %v", status, fb.Limited, fb.RetryAt)
	}
	for _, r := range fb.Readings {
		for _, v := range []float64{r.Remaining, r.Used, r.Limit.Quota} {
			if !(v >= 0) || v > maxUnits {
				t.Errorf("a figure is %v", v)
			}
		}
		if r.Has == 0 && r.Reset.IsZero() || r.Limit.Window > maxWait || r.From == "" {
			t.Errorf("a hollow reading: %+v", r)
		}
	}
}

func TestNoHeaderMakesAWaitThatIsNegativeOrEndless(t *testing.T) {
	r := dice(t)
	statuses := []int{200, 202, 301, 304, 400, 403, 404, 418, 429, 500, 503, 529, 0, 999}
	for range 4_000 {
		h, status := oddHeader(r), statuses[r.IntN(len(statuses))]
		now := time.Unix(1e9+r.Int64N(3e9), r.Int64N(1e9))
		calm(t, ParseFeedback(&http.Response{StatusCode: status, Header: h}, now), status, now)
		if t.Failed() {
			t.Fatalf("status %d, header %q", status, h)
		}
	}
}

func TestReadingChangesNothingInTheAnswer(t *testing.T) {
	r := dice(t)
	for range 500 {
		h := oddHeader(r)
		before := h.Clone()
		resp := &http.Response{StatusCode: 429, Header: h}
		first, second := ParseFeedback(resp, june), ParseFeedback(resp, june)
		if fmt.Sprint(h) != fmt.Sprint(before) || fmt.Sprint(first) != fmt.Sprint(second) {
			t.Fatalf("%q became %q; %v, then %v", before, h, first, second)
		}
	}
}

func TestAnAnswerWithoutHeadersSaysNothing(t *testing.T) {
	fb := ParseFeedback(&http.Response{StatusCode: 200}, june)
	if fb.Limited || fb.Readings != nil || !fb.Date.IsZero() || !fb.RetryAt.IsZero() {
		t.Errorf("it says %+v", fb)
	}
}

func TestOfEndlessLinesOnlyTheFirstFewAreRead(t *testing.T) {
	many := make([]string, 1000)
	for i := range many {
		many[i] = "5"
	}
	many[999] = "4"
	h := http.Header{"X-Ratelimit-Remaining": many, "X-Ratelimit-Reset": many, "Retry-After": many}
	fb := ParseFeedback(&http.Response{StatusCode: 429, Header: h}, june)
	if fb.Readings[0].Remaining != 5 || asked(fb, june) != 5*time.Second {
		t.Errorf("line 1000 was read: %+v", fb)
	}
}
