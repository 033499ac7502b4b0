package heed

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestNamesAreReadByTheirWords(t *testing.T) {
	for _, c := range []struct {
		name  string
		role  role
		limit string
		span  time.Duration
		unit  Unit
	}{
		{"X-Ratelimit-Limit", roleLimit, "", 0, ""},
		{"X-Rate-Limit-Remaining", roleLeft, "", 0, ""},
		{"X-RateLimit-Reset-After", roleAfter, "", 0, ""},
		{"Acme-Ratelimit-Write-Remaining-Minute", roleLeft, "write-minute", time.Minute, ""},
		{"Acme_Rate_Limit_Search_Quota", roleLimit, "search", 0, ""},
		{"Acme-Ratelimit-Input-Tokens-Limit", roleLimit, "input-tokens", 0, UnitTokens},
		{"X-Ratelimit-Complexity-Left", roleLeft, "complexity", 0, UnitPoints},
		{"X-Acme-Ratelimit-Bytes-Used", roleUsed, "bytes", 0, UnitBytes},
		{"X-Ratelimit-Renewalperiod-Tokens", roleWindow, "tokens", 0, UnitTokens},
		{"X-User-Rate-Limit-Remaining", roleLeft, "user", 0, ""},
		{"Acme-Rate-Limit-Remaining", roleLeft, "", 0, ""},
		{"X-Ratelimit-Orgremaining", roleLeft, "org", 0, ""},
		{"X-Hourlimit-Remaining", roleLeft, "hour", time.Hour, ""},
		{"X-Ratelimit-Limit-24hour", roleLimit, "24hour", 24 * time.Hour, ""},
		{"X-Ratelimit-Remaining-15-Minutes", roleLeft, "15-minutes", 15 * time.Minute, ""},
		{"X-Ratelimit-Reset-Seconds", roleReset, "", 0, ""},
		{"X-Limit-Per-Hour", roleLimit, "hour", time.Hour, ""},
		{"X-Remaining-This-Hour", roleLeft, "hour", time.Hour, ""},
		{"X-Acme-Retry-After-Ms", roleRetry, "acme", 0, ""},
	} {
		n, ok := parseName(c.name)
		if !ok || n.role != c.role || n.limit != c.limit || n.window != c.span || n.unit != c.unit {
			t.Errorf("%s is %+v, %v", c.name, n, ok)
		}
		if !hinted(c.name) {
			t.Errorf("%s is passed by", c.name)
		}
	}
}

func TestFieldsOfOtherThingsAreNoLimits(t *testing.T) {
	h := headerOf("X-Total-Count", "100", "X-Page-Limit", "20", "X-Limit", "20", "X-Count", "3", "X-Total", "9", "Content-Length", "7",
		"Access-Control-Max-Age", "600", "X-Memory-Used", "77", "X-Quota", "x", "Upload-Limit", "1024", "X-Max-Size", "5",
		"X-Usage", "12", "X-Reset", "1", "X-Retry", "5", "Age", "0", "X-Cost-Center", "88")
	fb := ParseFeedback(&http.Response{StatusCode: 200, Header: h, Body: http.NoBody}, fuzzNow)
	if len(fb.Readings) != 0 || fb.Limited || !fb.RetryAt.IsZero() {
		t.Errorf("they say %+v", fb)
	}
}

func TestTheNamesThatAreKnownByHeartAreReadAsTheGrammarReadsThem(t *testing.T) {
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Used", "Ratelimit-Limit",
		"Ratelimit-Remaining", "Ratelimit-Reset", "Ratelimit-Policy", "Ratelimit", "Retry-After"} {
		known, ok := common(name)
		p := nameParser{lower: strings.ToLower(name)}
		p.split()
		p.read()
		read, good := p.finish(name)
		if !ok || !good || known != read || glance(name) != glimpseCommon || !hinted(name) {
			t.Errorf("%s: %+v by heart, %+v by the grammar", name, known, read)
		}
	}
}

// One instant in every way of writing it.
func TestAnInstantIsTheSameInEveryUnitAndForm(t *testing.T) {
	at := fuzzNow.Add(90 * time.Second)
	for _, value := range []string{
		"90", "90.0", "+90", "9e1", `"90"`, "90s", "1m30s", "1m30.0s", "90 seconds", "90000ms", "PT1M30S", "PT90S", "1.5 minutes",
		fmt.Sprint(at.Unix()), fmt.Sprint(at.UnixMilli()), fmt.Sprint(at.UnixMicro()), fmt.Sprint(at.UnixNano()), "1.77235929e+09",
		"2026-03-01T10:01:30Z", "2026-03-01T10:01:30.000Z", "2026-03-01T12:01:30+02:00", "2026-03-01T10:01:30", "2026-03-01 10:01:30",
		"2026-03-01 10:01:30 UTC", "2026-03-01T10:01:30+0000", "Sun, 01 Mar 2026 10:01:30 GMT", "Sunday, 01-Mar-26 10:01:30 GMT",
		"Sun Mar  1 10:01:30 2026", "Sun, 01 Mar 2026 10:01:30 +0000", "Sun Mar 01 2026 10:01:30 GMT+0000 (Coordinated Universal Time)",
	} {
		for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset", "Acme-Rate-Limit-Resets-At", "Retry-After", "X-Ratelimit-Retryafter"} {
			h := headerOf("X-Ratelimit-Remaining", "0", name, value)
			if !strings.Contains(name, "etry") {
				family, _ := parseName(http.CanonicalHeaderKey(name))
				h = headerOf(family.family+"-Remaining", "0", name, value)
			}
			fb := ParseFeedback(&http.Response{StatusCode: 429, Header: h, Body: http.NoBody}, fuzzNow)
			if !fb.RetryAt.Equal(at) {
				t.Errorf("%s: %s is %v", name, value, fb.RetryAt)
			}
		}
	}
}

func TestValuesThatAreNoWaitAreNone(t *testing.T) {
	for _, value := range []string{"", "-1", "-5", "NaN", "Inf", "0x10", "1_000", "9 99", "soon", "Tue, 31 Feb 2026 00:00:00 GMT", "5 parsecs", "P", "PT", "1e", "12:30", strings.Repeat("1", 5000)} {
		fb := ParseFeedback(&http.Response{StatusCode: 429, Header: headerOf("Retry-After", value), Body: http.NoBody}, fuzzNow)
		if !fb.RetryAt.IsZero() {
			t.Errorf("%.20q asks for %v", value, fb.RetryAt)
		}
	}
	for _, value := range []string{"9223372037000", "9223372036854775807", "1" + strings.Repeat("0", 400), "400000000", "1e300"} {
		fb := ParseFeedback(&http.Response{StatusCode: 429, Header: headerOf("Retry-After", value), Body: http.NoBody}, fuzzNow)
		if wait := fb.RetryAt.Sub(fuzzNow); wait < 100*24*time.Hour || wait > maxWait {
			t.Errorf("%.20q asks for %v: very large is not soon", value, wait)
		}
	}
}

func TestTheVerdictFollowsStatusFieldsAndBody(t *testing.T) {
	for _, c := range []struct {
		status  int
		header  http.Header
		body    string
		limited bool
		kind    Kind
		wait    float64 // seconds; negative: none
	}{
		{429, nil, "slow down", true, KindPrimary, -1},
		{429, headerOf("Retry-After", "5"), "", true, KindPrimary, 5},
		{503, headerOf("Retry-After", "5"), "", false, KindOverload, 5},
		{529, headerOf("Retry-After", "5"), "", false, KindOverload, 5},
		{200, headerOf("Retry-After", "5"), "", false, KindNone, -1},
		{301, headerOf("Retry-After", "5"), "", false, KindNone, -1},
		{404, headerOf("Retry-After", "5"), "", false, KindNone, 5},
		{420, nil, "enhance your calm", true, KindPrimary, -1},
		{509, nil, "", false, KindOverload, -1},
		{418, nil, "", false, KindNone, -1},
		{418, headerOf("Retry-After", "60"), "", true, KindBan, 60},
		{430, nil, "", true, KindSecondary, -1},
		{403, nil, `{"message":"Must have admin rights"}`, false, KindNone, -1},
		{403, headerOf("X-Ratelimit-Remaining", "4900"), `{"message":"You have exceeded a secondary rate limit"}`, true, KindSecondary, -1},
		{403, headerOf("X-Ratelimit-Remaining", "4900"), `{"message":"Forbidden"}`, false, KindNone, -1},
		{403, headerOf("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "9"), "", true, KindPrimary, 9},
		{404, headerOf("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "9"), "", false, KindNone, -1},
		{500, headerOf("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "9"), "", false, KindNone, -1},
		{500, nil, `{"error":{"code":"THROTTLED"}}`, true, KindPrimary, -1},
		{400, nil, `{"error":{"code":"invalid_limit","message":"limit must be below 100"}}`, false, KindNone, -1},
		{400, nil, `{"__type":"LimitExceededException"}`, false, KindNone, -1},
		{429, nil, `{"error":{"code":"insufficient_quota"}}`, true, KindQuota, -1},
		{429, nil, `{"error":"too many concurrent requests"}`, true, KindConcurrency, -1},
		{429, headerOf("X-Ratelimit-Limit", "10", "X-Ratelimit-Remaining", "9", "X-Ratelimit-Reset", "50"), "", true, KindSecondary, -1},
		{200, nil, `{"data":{"error":"rate_limited"}}`, false, KindNone, -1},
		{200, nil, `{"items":[{"type":"RATE_LIMITED"}]}`, false, KindNone, -1},
		{200, nil, `{"errors":[{"extensions":{"code":"THROTTLED"}}]}`, true, KindPrimary, -1},
		{429, nil, `{"retry_after":1.337,"global":false}`, true, KindPrimary, 1.337},
		{429, headerOf("Retry-After", "1"), `{"retry_after":0.64}`, true, KindPrimary, 0.64},
		{429, headerOf("X-Daily-Limit-Remaining", "0", "X-Daily-Limit-Reset", "3600", "X-Minutely-Limit-Remaining", "0", "X-Minutely-Limit-Reset", "20"), "", true, KindQuota, 3600},
		{429, headerOf("X-Daily-Limit-Remaining", "5", "X-Daily-Limit-Reset", "3600", "X-Minutely-Limit-Remaining", "0", "X-Minutely-Limit-Reset", "20"), "", true, KindPrimary, 20},
	} {
		if c.header == nil {
			c.header = http.Header{}
		}
		resp := &http.Response{StatusCode: c.status, Header: c.header, Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body))}
		fb := ParseFeedback(resp, fuzzNow)
		wait := -1.0
		if !fb.RetryAt.IsZero() {
			wait = fb.RetryAt.Sub(fuzzNow).Seconds()
		}
		if fb.Limited != c.limited || fb.Kind != c.kind || wait != c.wait {
			t.Errorf("%d %v %s: limited %v, %v, wait %v; want %v, %v, %v", c.status, c.header, c.body, fb.Limited, fb.Kind, wait, c.limited, c.kind, c.wait)
		}
	}
}

func TestAnAnswerThatLayInACacheIsReadAtItsAge(t *testing.T) {
	h := headerOf("Date", fuzzNow.Add(-10*time.Minute).Format(http.TimeFormat), "Age", "600", "X-Ratelimit-Remaining", "0",
		"X-Ratelimit-Reset", fmt.Sprint(fuzzNow.Add(30*time.Second).Unix()))
	fb := ParseFeedback(&http.Response{StatusCode: 429, Header: h, Body: http.NoBody}, fuzzNow)
	if wait := fb.RetryAt.Sub(fuzzNow); wait != 30*time.Second {
		t.Errorf("the wait is %v, want 30 s", wait)
	}
	if !fb.Date.IsZero() {
		t.Errorf("it tells the clock %v", fb.Date)
	}
}

func TestFloodsAreReadWithinBounds(t *testing.T) {
	h := make(http.Header)
	for i := range 20000 {
		h[fmt.Sprintf("X-Ratelimit-Limit-N%d", i)] = []string{"1"}
	}
	h["X-Ratelimit-Remaining"] = []string{strings.Repeat("7,", 1<<19)}
	h["X-Ratelimit-Limit"] = []string{strings.Repeat("9", 1<<20)}
	h["Ratelimit"] = []string{strings.Repeat(`"a";r=1,`, 1<<16)}
	h["Ratelimit-Policy"] = make([]string, 1<<16)
	h["X-Ratelimit-Policy"] = []string{strings.Repeat(`\"`, 1<<19)}
	h["Beta-Ratelimit"] = []string{strings.Repeat(`"\"`, 1<<19), strings.Repeat(`;"\`, 1<<19)}
	h["Retry-After"] = []string{strings.Repeat("\xff", 1<<16), "7"}
	h["X-App-Usage"] = []string{`{"a":` + strings.Repeat("[", 1<<19)}
	began := time.Now()
	fb := ParseFeedback(&http.Response{StatusCode: 429, Header: h, Body: io.NopCloser(strings.NewReader(strings.Repeat(`{"a":`, 1<<20))), ContentLength: -1}, fuzzNow)
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("it took %v", d)
	}
	sane(t, fb, fuzzNow)
	if wait := fb.RetryAt.Sub(fuzzNow); wait != 7*time.Second {
		t.Errorf("the wait is %v, want what the second line says", wait)
	}
}

func TestADialectOfTheUsersGoesFirstAndItsExcessesArePutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []Answer
		mine := Dialect{Name: "mine", Match: "GET *.acme.example/v1/", Body: true, Read: func(a Answer, fb *Feedback) bool {
			seen = append(seen, a)
			fb.Limited, fb.Kind, fb.RetryAt = true, KindQuota, a.Now.Add(2*maxWait)
			fb.Readings = append(fb.Readings, Reading{Remaining: -5, Has: HasRemaining, Reset: a.Now.Add(-time.Hour)})
			return true
		}}
		tr := serve(func() *http.Response {
			resp := answering(200, "application/json", io.NopCloser(strings.NewReader(`{"ok":false,"error":"ratelimited"}`)))
			resp.Header.Set("X-Ratelimit-Remaining", "3")
			return resp
		})
		tr.Dialects = []Dialect{mine}
		resp := do(t, tr, "https://api.acme.example/v1/x")
		defer resp.Body.Close()
		if len(seen) != 1 || seen[0].Status != 200 || string(seen[0].Body) == "" || seen[0].URL.Path != "/v1/x" || seen[0].Method != "GET" {
			t.Fatalf("it saw %+v", seen)
		}
		if asked := InfoOf(resp).Asked; asked != maxWait {
			t.Errorf("the wait is %v, want the longest there is", asked)
		}
		fb := judge(seen[0], []Dialect{mine}, evidence{status: 200, now: seen[0].Now}, Feedback{}, false)
		sane(t, fb, seen[0].Now)
	})
}

func TestMistakesInDialectsAreReportedTogether(t *testing.T) {
	read := func(Answer, *Feedback) bool { return false }
	tr := &Transport{Dialects: []Dialect{{Name: "a"}, {Name: "b", Match: "x.example/{id}", Read: read}, {Name: "c", Match: "*.x.example/", Read: read}, {Name: "d", Match: "a.*.example/", Read: read}}}
	err := tr.Validate()
	if err == nil || !strings.Contains(err.Error(), "Dialects[0]") || !strings.Contains(err.Error(), "Dialects[1]") || strings.Contains(err.Error(), "Dialects[2]") || !strings.Contains(err.Error(), "Dialects[3]") {
		t.Errorf("Validate says %v", err)
	}
}

// A limit that only a refusal names would never be heard of again: it must not
// slow the scope down once the hold is over.
func TestALimitThatOnlyARefusalNamesHoldsTheScopeOnceAndNoLonger(t *testing.T) {
	for _, resp := range []*http.Response{
		{StatusCode: 429, Header: headerOf("Stripe-Rate-Limited-Reason", "global-rate"), Body: http.NoBody},
		{StatusCode: 429, Header: headerOf("X-Ratelimit-Group", "market", "Retry-After", "5"), Body: http.NoBody},
		{StatusCode: 429, Header: headerOf("X-Sentry-Rate-Limits", "60:error:key"), Body: http.NoBody},
		{StatusCode: 429, Header: headerOf("Content-Type", "application/json"), Body: io.NopCloser(strings.NewReader(`{"error":"Request rate limit reached (1 request/ second)"}`)), ContentLength: -1},
	} {
		fb := ParseFeedback(resp, fuzzNow)
		if len(fb.Readings) != 1 || !fb.Limited {
			t.Fatalf("it says %+v", fb)
		}
		var l ledger
		at := instant{wall: fuzzNow.UnixNano(), mono: 1}
		if held := l.learn(at, at, &fb, 0.5); held <= 0 {
			t.Error("the scope is not held")
		}
		if len(l.windows) != 0 {
			t.Errorf("%v is kept as a window", l.windows[0].id)
		}
	}
}
