package heedtest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/heedhttp/heed/heedtest"
)

// clean gives a client of its own, whose connections end with the test.
func clean(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func TestListenServesRealSockets(t *testing.T) {
	srv := &heedtest.Server{Limit: perHour(3), Dialect: heedtest.Draft10, Skew: -time.Hour}
	url := srv.Listen(t)
	client := clean(t)
	for i := range 5 {
		resp, err := client.Get(url + "/x")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		want := 200
		if i >= 3 {
			want = 429
		}
		if resp.StatusCode != want || err != nil || !strings.HasPrefix(string(body), `{"message":`) {
			t.Errorf("%d: got %d %q, %v", i, resp.StatusCode, body, err)
		}
		if resp.Header.Get("RateLimit") == "" || (resp.Header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf("%d: got %v", i, resp.Header)
		}
		if date, err := http.ParseTime(resp.Header.Get("Date")); err != nil || time.Since(date) < 59*time.Minute {
			t.Errorf("%d: Date %v, %v", i, date, err)
		}
	}
	// One connection: each was sent after the one before was read, and the
	// third told that nothing remains.
	if r := srv.Report(); r.Accepted != 3 || r.Rejected != 2 || r.Violations != 2 {
		t.Errorf("got\n%v", r)
	}
}

func TestOnSocketsWhatMayHaveCrossedIsNoViolation(t *testing.T) {
	for _, c := range []struct {
		grace time.Duration
		want  int
	}{{time.Hour, 0}, {-1, 4}} {
		srv := &heedtest.Server{Limit: perHour(1), Dialect: heedtest.RetryAfter, Grace: c.grace}
		url := srv.Listen(t)
		for range 6 {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // another connection each time
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		if r := srv.Report(); r.Violations != c.want || r.Rejected != 5 {
			t.Errorf("with a grace of %v, want %d violations:\n%v", c.grace, c.want, r)
		}
	}
}

func TestListenSpeaksUnencryptedHTTP2(t *testing.T) {
	srv := &heedtest.Server{Limit: perHour(1), Dialect: heedtest.RetryAfter, Grace: time.Hour}
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	defer tr.CloseIdleConnections()
	url := srv.Listen(t)
	for _, want := range []int{200, 429, 429} {
		resp, err := (&http.Client{Transport: tr}).Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || resp.ProtoMajor != 2 {
			t.Errorf("got %d by %s", resp.StatusCode, resp.Proto)
		}
	}
	if r := srv.Report(); r.Violations != 0 {
		t.Errorf("requests that share a connection may cross a telling:\n%v", r)
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	entered := make(chan struct{})
	var ended atomic.Bool
	srv := &heedtest.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		<-time.After(20 * time.Millisecond) // what a handler has still to do
		ended.Store(true)
	})}
	url, stop, err := srv.Start()
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	failed := make(chan error)
	go func() {
		_, err := (&http.Client{Transport: tr}).Get(url)
		failed <- err
	}()
	<-entered
	stop()
	if !ended.Load() {
		t.Error("a handler was left running")
	}
	stop()
	if err := <-failed; err == nil {
		t.Error("a request that was being served got an answer after the stop")
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it still listens: %v", err)
	}
	tr.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

func TestListenWaitsOutBothWays(t *testing.T) {
	srv := &heedtest.Server{Latency: 30 * time.Millisecond}
	url, client := srv.Listen(t), clean(t)
	began := time.Now()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if took := time.Since(began); took < 60*time.Millisecond {
		t.Errorf("took %v", took)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestSixtyFourGoroutinesThroughEveryDoor(t *testing.T) {
	srv := &heedtest.Server{
		Limit: perHour(100), Dialect: heedtest.GitHub, MaxEvents: 500, MaxClients: 8,
		Jitter: time.Microsecond, Rand: func() func() float64 { n := 0.0; return func() float64 { n += 0.25; return n - float64(int(n)) } }(),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }),
	}
	url := srv.Listen(t)
	network := &http.Client{Transport: srv.Network(t)}
	loopback := clean(t)
	loopback.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	respond := func(r *http.Request) (*http.Response, error) { r.RequestURI = ""; return srv.Respond(r) }
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := range 20 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("hello"))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", string(rune('a'+(g+i)%10)))
				do := []func(*http.Request) (*http.Response, error){loopback.Do, network.Do, srv.RoundTrip, respond}[i%4]
				resp, err := do(req)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode == 200 != (string(body) == "hello") {
					t.Errorf("got %d %q, %v", resp.StatusCode, body, err)
				}
				if i == 10 {
					_ = srv.Report().String()
				}
			}
		})
	}
	all.Wait()
	r := srv.Report()
	if r.Accepted+r.Rejected != 64*20 || len(r.Events) != 500 || r.Dropped != 64*20-500 || len(r.Clients) > 8 {
		t.Errorf("got\n%v", r)
	}
}
