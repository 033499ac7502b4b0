package heedtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedhttp/heed/heedtest"
	"github.com/heedhttp/heed/limiter"
)

func TestNetworkServesAnHourOfVirtualTimeToARealClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{
			Limit:   func() limiter.Core { return &limiter.TokenBucket{Rate: 0.25, Burst: 60} },
			Dialect: heedtest.RateLimit, Latency: 20 * time.Millisecond, Jitter: 10 * time.Millisecond,
		}
		client := &http.Client{Transport: srv.Network(t), Timeout: time.Second}
		began, sent := time.Now(), 0
		for ; time.Since(began) < time.Hour; sent++ {
			resp, err := client.Get("https://any.example/path")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			time.Sleep(3500 * time.Millisecond)
		}
		r := srv.Report()
		if r.Accepted+r.Rejected != sent || sent < 1000 || r.Accepted < 900 || r.Accepted > 960 || r.Rejected == 0 {
			t.Errorf("%d were sent:\n%v", sent, r)
		}
	})
}

func TestNetworkKnowsEveryHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) })}
		client := &http.Client{Transport: srv.Network(t)}
		for _, host := range []string{"a.example", "b.example:8080", "[::1]:443"} {
			for _, scheme := range []string{"http", "https"} {
				resp, err := client.Get(scheme + "://" + host)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := io.ReadAll(resp.Body); err != nil || string(got) != host {
					t.Errorf("%s://%s reached %q, %v", scheme, host, got, err)
				}
				_ = resp.Body.Close()
			}
		}
	})
}

func TestNetworkCarriesAnUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Dialect: heedtest.XRateLimit, Limit: perHour(10), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			_ = rw.Flush()
			line, err := rw.ReadString('\n')
			if err != nil {
				t.Error(err)
			}
			fmt.Fprint(rw, "you said "+line)
			_ = rw.Flush()
		})}
		req, err := http.NewRequest(http.MethodGet, "http://api.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"echo"}}
		resp, err := srv.Network(t).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		conn, ok := resp.Body.(io.ReadWriter)
		if resp.StatusCode != 101 || !ok {
			t.Fatalf("got %v with a %T", resp.Status, resp.Body)
		}
		fmt.Fprintln(conn, "hello")
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "you said hello\n" {
			t.Errorf("got %q, %v", line, err)
		}
		if e := newest(srv); e.Rejected {
			t.Errorf("the event is %+v", e)
		}
	})
}

func TestAHandlerReachesItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wrote error
		srv := &heedtest.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Second)
			fmt.Fprint(w, "late")
			wrote = http.NewResponseController(w).Flush()
		})}
		if resp, err := (&http.Client{Transport: srv.Network(t)}).Get("http://api.test/"); err == nil {
			t.Errorf("got %v", resp)
		}
		if !errors.Is(wrote, os.ErrDeadlineExceeded) {
			t.Errorf("the handler's write ended with %v", wrote)
		}
	})
}

func TestNetworkWaitsOutBothWays(t *testing.T) {
	for _, h := range []http.Handler{nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "a")
		w.(http.Flusher).Flush()
		fmt.Fprint(w, "b")
	}), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})} {
		synctest.Test(t, func(t *testing.T) {
			srv := &heedtest.Server{Latency: 30 * time.Millisecond, Handler: h}
			began := time.Now()
			if got := get(t, srv.Network(t), "http://api.test/", "").StatusCode; got != 200 || time.Since(began) != 60*time.Millisecond {
				t.Errorf("got %d after %v", got, time.Since(began))
			}
			if e := newest(srv); e.At.Sub(began) != 30*time.Millisecond || e.Status != 200 {
				t.Errorf("the event is %+v", e)
			}
		})
	}
}

func TestWhatIsFlushedIsToldAtTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{
			Limit: perHour(1), Dialect: heedtest.RateLimit,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.(http.Flusher).Flush()
				time.Sleep(time.Minute)
			}),
		}
		rt := srv.Network(t)
		go get(t, rt, "http://api.test/", "")
		time.Sleep(time.Second)
		get(t, rt, "http://api.test/", "")
		if r := srv.Report(); r.Violations != 1 {
			t.Errorf("the header was out, and yet:\n%v", r)
		}
		time.Sleep(time.Minute)
	})
}

func TestNetworkSpendsWhatWasSentThoughItsClientGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &heedtest.Server{Limit: perHour(1), MaxConcurrent: 1, Latency: time.Second}
		client := &http.Client{Transport: srv.Network(t), Timeout: time.Second / 2}
		if _, err := client.Get("http://api.test/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Minute)
		if r := srv.Report(); r.Accepted != 1 || r.Events[0].Status != 0 {
			t.Errorf("got %+v", r)
		}
		client.Timeout = 0
		if got := get(t, client.Transport, "http://api.test/", "").StatusCode; got != 429 {
			t.Errorf("the next got %d", got)
		}
	})
}
