//go:build !race

package heedtest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/heedhttp/heed/heedtest"
)

func TestAnAnswerInProcessAllocatesLittle(t *testing.T) {
	srv := &heedtest.Server{Limit: perWindow(1e9, time.Hour), Dialect: heedtest.RateLimit, MaxEvents: -1}
	req, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := testing.AllocsPerRun(1000, func() {
		if _, err := srv.Respond(req); err != nil {
			t.Fatal(err)
		}
	})
	if got > 45 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkRespond(b *testing.B) {
	srv := &heedtest.Server{Limit: perWindow(1e9, time.Hour), Dialect: heedtest.RateLimit}
	req, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := srv.Respond(req); err != nil {
			b.Fatal(err)
		}
	}
}
