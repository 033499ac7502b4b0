package heedtest_test

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

func TestTheZeroServerAnswers200(t *testing.T) {
	srv := &heedtest.Server{}
	resp, err := (&http.Client{Transport: srv}).Get("http://api.test/x?y=1")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 || int64(len(body)) != resp.ContentLength {
		t.Errorf("got %d, %q of length %d, %v", resp.StatusCode, body, resp.ContentLength, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
}

func TestNetworkServesAnHourOfVirtualTimeToARealClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{
			Limit:   func() limiter.Core { return &limiter.FixedWindow{Limit: 60, Window: time.Minute} },
			Dialect: heedtest.RateLimit, Latency: 20 * time.Millisecond, Jitter: 10 * time.Millisecond,
		}
		client := &http.Client{Transport: srv.Network(t), Timeout: time.Second}
		began := time.Now()
		for range 4000 {
			resp, err := client.Get("https://any.example/path")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			time.Sleep(time.Hour/4000 - 60*time.Millisecond)
		}
		r := srv.Report()
		if ran := time.Since(began); ran < 55*time.Minute {
			t.Errorf("only %v passed", ran)
		}
		if r.Accepted+r.Rejected != 4000 || r.Rejected == 0 {
			t.Errorf("a client a tenth above the rate should be refused sometimes:\n%v", r)
		}
	})
}
