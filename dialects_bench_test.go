package heed

import (
	"net/http"
	"testing"
	"time"
)

// Answers as they come, for the figures that are promised.

const benchDate = "Sun, 01 Mar 2026 10:00:00 GMT"

var benchNow = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

var benchAnswers = []struct {
	name   string
	header http.Header
	allocs float64
}{
	{"none", headerOf(
		"Date", benchDate, "Content-Type", "application/json", "Content-Length", "1234", "Server", "nginx",
		"Cache-Control", "private", "Etag", `"abc"`, "Vary", "Accept", "X-Request-Id", "0123456789abcdef",
		"Strict-Transport-Security", "max-age=31536000", "Cf-Ray", "8f1d2c3b4a596877-FRA",
		"X-Runtime", "0.012", "Connection", "keep-alive"), 0},
	{"trio", headerOf(
		"Date", benchDate, "X-Ratelimit-Limit", "5000", "X-Ratelimit-Remaining", "4987", "X-Ratelimit-Reset", "1772361000"), 0},
	{"draft-10", headerOf(
		"Date", benchDate, "Ratelimit-Policy", `"burst";q=100;w=60, "daily";q=5000;w=86400`,
		"Ratelimit", `"burst";r=50;t=44, "daily";r=4000;t=36400`), 0},
}

func BenchmarkDialects(b *testing.B) {
	b.Run("map alone", func(b *testing.B) {
		n := 0
		for b.Loop() {
			for name := range benchAnswers[0].header {
				n += len(name)
			}
		}
	})
	for _, c := range benchAnswers {
		b.Run(c.name, func(b *testing.B) {
			var room [3]Reading
			b.ReportAllocs()
			for b.Loop() {
				a := Answer{Status: 200, Header: c.header, Now: benchNow}
				fb := Feedback{Readings: room[:0]}
				fb.parse(&a, 0, nil)
			}
		})
	}
}

func TestReadingTheUsualAnswersAllocatesNextToNothing(t *testing.T) {
	for _, c := range benchAnswers {
		var room [3]Reading
		got := testing.AllocsPerRun(200, func() {
			a := Answer{Status: 200, Header: c.header, Now: benchNow}
			fb := Feedback{Readings: room[:0]}
			fb.parse(&a, 0, nil)
		})
		if got > c.allocs {
			t.Errorf("%s: %v allocations, at most %v", c.name, got, c.allocs)
		}
	}
}

func TestParseFeedbackItselfAllocatesOnlyItsReadings(t *testing.T) {
	for _, c := range benchAnswers[:2] {
		resp := &http.Response{StatusCode: 200, Header: c.header, Body: http.NoBody}
		got := testing.AllocsPerRun(200, func() { ParseFeedback(resp, benchNow) })
		if got > 1 {
			t.Errorf("%s: %v allocations, at most 1", c.name, got)
		}
	}
}
