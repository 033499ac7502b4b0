package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestADialMeetsAnAccept(t *testing.T) {
	var l Listener
	client, err := l.DialContext(t.Context(), "tcp", "api.example:443")
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got := client.RemoteAddr().String(); got != "api.example:443" || server.LocalAddr().String() != got {
		t.Errorf("dialled %s, accepted at %s", got, server.LocalAddr())
	}
	if client.LocalAddr() != server.RemoteAddr() {
		t.Errorf("from %s and %s", client.LocalAddr(), server.RemoteAddr())
	}
	if _, err := client.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 2)
	if _, err := io.ReadFull(server, p); err != nil || string(p) != "hi" {
		t.Errorf("read %q, %v", p, err)
	}
}

func TestEveryDialComesFromAnotherAddress(t *testing.T) {
	l := Listener{Backlog: 3}
	seen := map[string]bool{}
	for range 3 {
		c, err := l.DialContext(t.Context(), "tcp", "x:1")
		if err != nil {
			t.Fatal(err)
		}
		seen[c.LocalAddr().String()] = true
	}
	if len(seen) != 3 {
		t.Errorf("addresses: %v", seen)
	}
}

func TestAFullBacklogHoldsADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listener{Backlog: 1}
		dial := func(ctx context.Context) error {
			_, err := l.DialContext(ctx, "tcp", "x:1")
			return err
		}
		if err := dial(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := dial(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("dial: %v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { _, _ = l.Accept() })
		if err := dial(t.Context()); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("dial: %v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { _ = l.Close() })
		if err := dial(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) || time.Since(began) != 3*time.Second {
			t.Errorf("dial: %v after %v", err, time.Since(began))
		}
	})
}

func TestADialWithAnEndedContextFails(t *testing.T) {
	var l Listener
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var op *net.OpError
	if _, err := l.DialContext(ctx, "tcp", "x:1"); !errors.Is(err, context.Canceled) || !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("dial: %v", err)
	}
	if len(l.queue) != 0 {
		t.Error("it left a connection behind")
	}
}

func TestAClosedListenerLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Listener
		accepted := make(chan error)
		go func() { _, err := l.Accept(); accepted <- err }()
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a second Close: %v", err)
		}
		if _, err := l.DialContext(t.Context(), "tcp", "x:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial: %v", err)
		}
	})
}

func TestCloseEndsWhatWasNeverAccepted(t *testing.T) {
	var l Listener
	c, err := l.DialContext(t.Context(), "tcp", "x:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read: %v", err)
	}
}

func TestItCarriesHTTPInsideABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Listener{Buffer: 1000} // smaller than the bodies
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			select {
			case <-r.Context().Done():
			case <-time.After(time.Minute):
				_, _ = w.Write(body)
			}
		})}
		var served sync.WaitGroup
		served.Go(func() { _ = srv.Serve(l) })
		tr := &http.Transport{DialContext: l.DialContext}
		client := &http.Client{Transport: tr, Timeout: time.Hour}
		var clients sync.WaitGroup
		for range 20 {
			clients.Go(func() {
				sent := strings.Repeat("0123456789", 500)
				resp, err := client.Post("http://any.example/", "text/plain", strings.NewReader(sent))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				if err != nil || string(got) != sent {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
				_ = resp.Body.Close()
			})
		}
		began := time.Now()
		clients.Wait()
		if took := time.Since(began); took != time.Minute {
			t.Errorf("took %v", took)
		}
		client.Timeout = time.Second
		if _, err := client.Get("http://any.example/"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that times out gets %v", err)
		}
		tr.CloseIdleConnections()
		_ = srv.Close()
		served.Wait()
	})
}
