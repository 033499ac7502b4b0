package memnet

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatWasWrittenBeforeACloseIsRead(t *testing.T) {
	a, b := Pipe(0)
	if _, err := a.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(b)
	if string(got) != "last words" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestErrorsAreThoseOfATCPConnection(t *testing.T) {
	p := make([]byte, 1)
	for _, c := range []struct {
		name string
		do   func(a, b *Conn) error
		op   string
		want error
	}{
		{"reading an end closed here", func(a, _ *Conn) error { _ = a.Close(); _, err := a.Read(p); return err }, "read", net.ErrClosed},
		{"writing an end closed here", func(a, _ *Conn) error { _ = a.Close(); _, err := a.Write(p); return err }, "write", net.ErrClosed},
		{"closing twice", func(a, _ *Conn) error { _ = a.Close(); return a.Close() }, "close", net.ErrClosed},
		{"a deadline on a closed end", func(a, _ *Conn) error { _ = a.Close(); return a.SetDeadline(time.Now()) }, "set", net.ErrClosed},
		{"writing after CloseWrite", func(a, _ *Conn) error { _ = a.CloseWrite(); _, err := a.Write(p); return err }, "write", net.ErrClosed},
		{"writing to a peer that closed", func(a, b *Conn) error { _ = b.Close(); _, err := a.Write(p); return err }, "write", syscall.EPIPE},
		{"a passed read deadline", func(a, _ *Conn) error { _ = a.SetDeadline(time.Unix(1, 0)); _, err := a.Read(p); return err }, "read", os.ErrDeadlineExceeded},
		{"a passed write deadline", func(a, _ *Conn) error { _ = a.SetDeadline(time.Unix(1, 0)); _, err := a.Write(p); return err }, "write", os.ErrDeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := Pipe(0)
			err := c.do(a, b)
			var op *net.OpError
			if !errors.Is(err, c.want) || !errors.As(err, &op) || op.Op != c.op {
				t.Errorf("got %v, want a *net.OpError of %s with %v", err, c.op, c.want)
			}
			if want := c.want == os.ErrDeadlineExceeded; op != nil && op.Timeout() != want {
				t.Errorf("Timeout() is %v", !want)
			}
		})
	}
}

func TestAHalfClosedConnectionStillReads(t *testing.T) {
	a, b := Pipe(0)
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer reads %v", err)
	}
	if _, err := b.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(a); string(got) != "answer" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestAClosedPeerFreesAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(1)
		time.AfterFunc(time.Second, func() { _ = b.Close() })
		if n, err := a.Write([]byte("ab")); n != 1 || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("Write: %d, %v", n, err)
		}
	})
}

func TestClosingOwnEndFreesOwnReaderAndWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := Pipe(1)
		errs := make(chan error, 2)
		go func() { _, err := a.Read(make([]byte, 1)); errs <- err }()
		go func() { _, err := a.Write(make([]byte, 2)); errs <- err }()
		synctest.Wait()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestTheEndsKnowEachOther(t *testing.T) {
	a, b := Pipe(0)
	if a.LocalAddr() != b.RemoteAddr() || a.RemoteAddr() != b.LocalAddr() || a.LocalAddr() == b.LocalAddr() {
		t.Errorf("%v to %v and %v to %v", a.LocalAddr(), a.RemoteAddr(), b.LocalAddr(), b.RemoteAddr())
	}
	if _, err := netip.ParseAddrPort(a.LocalAddr().String()); err != nil || a.LocalAddr().Network() != "mem" {
		t.Errorf("%v: %v", a.LocalAddr(), err)
	}
}

func TestADeadlineEndsAndALaterOneReopensAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe(0)
		if err := a.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := errors.Join(a.SetReadDeadline(time.Now().Add(time.Minute)), b.SetWriteDeadline(time.Now().Add(time.Minute))); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if n, err := a.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("Read: %d, %v", n, err)
		}
	})
}
