package memnet

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWriteDoesNotWaitForAReader(t *testing.T) {
	s := NewStream(0)
	if n, err := s.Write(make([]byte, DefaultBuffer)); n != DefaultBuffer || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	got, err := io.ReadAll(io.LimitReader(s, DefaultBuffer))
	if len(got) != DefaultBuffer || err != nil {
		t.Errorf("read %d, %v", len(got), err)
	}
}

func TestAWriteWaitsWhileTheStreamIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(4)
		done := make(chan int)
		go func() {
			n, err := s.Write([]byte("abcdefghij"))
			if err != nil {
				t.Error(err)
			}
			done <- n
		}()
		p := make([]byte, 3)
		for _, want := range []string{"abc", "def", "ghi"} {
			synctest.Wait()
			if len(s.buf)-s.off > 4 {
				t.Errorf("holds %d bytes", len(s.buf)-s.off)
			}
			if n, err := io.ReadFull(s, p); err != nil || string(p[:n]) != want {
				t.Fatalf("read %q, %v, want %q", p[:n], err, want)
			}
		}
		if n := <-done; n != 10 {
			t.Errorf("wrote %d", n)
		}
	})
}

func TestTheEndsOfAStream(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name        string
		end         func(*Stream)
		left        string // what is still read
		read, write error
	}{
		{"the writer ends", func(s *Stream) { s.CloseWrite(nil) }, "abc", io.EOF, io.ErrClosedPipe},
		{"the writer fails", func(s *Stream) { s.CloseWrite(boom) }, "abc", boom, io.ErrClosedPipe},
		{"the first end counts", func(s *Stream) { s.CloseWrite(boom); s.CloseWrite(nil) }, "abc", boom, io.ErrClosedPipe},
		{"the reader ends", func(s *Stream) { s.CloseRead(nil) }, "", io.ErrClosedPipe, io.ErrClosedPipe},
		{"the reader fails", func(s *Stream) { s.CloseRead(boom) }, "", io.ErrClosedPipe, boom},
		{"both end", func(s *Stream) { s.CloseRead(boom); s.CloseWrite(boom) }, "", io.ErrClosedPipe, io.ErrClosedPipe},
		{"a read deadline", func(s *Stream) { s.SetReadDeadline(time.Unix(1, 0)) }, "", os.ErrDeadlineExceeded, nil},
		{"a write deadline", func(s *Stream) { s.SetWriteDeadline(time.Unix(1, 0)); s.SetReadDeadline(time.Unix(1, 0)) }, "", os.ErrDeadlineExceeded, os.ErrDeadlineExceeded},
		{"a deadline after the end", func(s *Stream) { s.CloseWrite(nil); s.SetWriteDeadline(time.Unix(1, 0)) }, "abc", io.EOF, io.ErrClosedPipe},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewStream(8)
			if _, err := s.Write([]byte("abc")); err != nil {
				t.Fatal(err)
			}
			c.end(s)
			if _, err := s.Write([]byte("d")); err != c.write {
				t.Errorf("Write: %v, want %v", err, c.write)
			}
			got, err := io.ReadAll(s)
			if err == nil {
				err = io.EOF
			}
			if string(got) != c.left || err != c.read {
				t.Errorf("read %q, then %v; want %q, then %v", got, err, c.left, c.read)
			}
		})
	}
}

func TestDeadlinesWakeWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1)
		began := time.Now()
		s.SetReadDeadline(began.Add(time.Hour))
		s.SetReadDeadline(began.Add(time.Minute)) // the newest counts
		if _, err := s.Read(make([]byte, 1)); err != os.ErrDeadlineExceeded || time.Since(began) != time.Minute {
			t.Errorf("Read: %v after %v", err, time.Since(began))
		}
		s.SetWriteDeadline(began.Add(time.Hour))
		if n, err := s.Write([]byte("ab")); n != 1 || err != os.ErrDeadlineExceeded || time.Since(began) != time.Hour {
			t.Errorf("Write: %d, %v after %v", n, err, time.Since(began))
		}
		s.SetReadDeadline(time.Time{})
		s.SetWriteDeadline(time.Time{})
		if n, err := s.Read(make([]byte, 2)); n != 1 || err != nil {
			t.Errorf("without a deadline Read gives %d, %v", n, err)
		}
		if n, err := s.Write([]byte("c")); n != 1 || err != nil {
			t.Errorf("without a deadline Write gives %d, %v", n, err)
		}
	})
}

func TestADeadlineTakenBackDoesNotFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1)
		s.SetReadDeadline(time.Now().Add(time.Second))
		s.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Minute, func() {
			if _, err := s.Write([]byte("x")); err != nil {
				t.Error(err)
			}
		})
		if n, err := s.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("Read: %d, %v", n, err)
		}
	})
}

func TestADeadlineMovedWhileReadingIsObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := NewStream(1), time.Now()
		time.AfterFunc(time.Second, func() { s.SetReadDeadline(time.Now()) })
		if _, err := s.Read(make([]byte, 1)); err != os.ErrDeadlineExceeded || time.Since(began) != time.Second {
			t.Errorf("Read: %v after %v", err, time.Since(began))
		}
	})
}

func TestClosingWakesWhoeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewStream(1)
		time.AfterFunc(time.Second, func() { s.CloseWrite(io.ErrUnexpectedEOF) })
		if _, err := s.Read(make([]byte, 1)); err != io.ErrUnexpectedEOF {
			t.Errorf("Read: %v", err)
		}
		s = NewStream(1)
		time.AfterFunc(time.Second, func() { s.CloseRead(io.ErrNoProgress) })
		if n, err := s.Write([]byte("ab")); n != 1 || err != io.ErrNoProgress {
			t.Errorf("Write: %d, %v", n, err)
		}
	})
}

func TestWhatGoesInComesOutInOrder(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			sent := make([]byte, 20_000)
			for i := range sent {
				sent[i] = byte(rnd.Uint32())
			}
			s := NewStream(1 + rnd.IntN(300))
			chunks := rand.New(rand.NewPCG(seed, 2)) // its own, since it is another goroutine's
			go func() {
				for rest := sent; len(rest) > 0; {
					n := min(len(rest), chunks.IntN(500))
					if _, err := s.Write(rest[:n]); err != nil {
						t.Error(err)
					}
					rest = rest[n:]
				}
				s.CloseWrite(nil)
			}()
			var got bytes.Buffer
			for {
				p := make([]byte, rnd.IntN(500))
				n, err := s.Read(p)
				got.Write(p[:n])
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got.Bytes(), sent) {
				t.Errorf("seed %d: %d bytes came out, %d went in", seed, got.Len(), len(sent))
			}
			if c := cap(s.buf); c > 4*s.max+64 {
				t.Errorf("seed %d: keeps %d bytes for a bound of %d", seed, c, s.max)
			}
		})
	}
}

func TestConcurrentWritesDoNotInterleave(t *testing.T) {
	s := NewStream(7)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for range 50 {
				if _, err := s.Write(bytes.Repeat([]byte{byte('a' + i)}, 20)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	go func() {
		writers.Wait()
		s.CloseWrite(nil)
	}()
	got, err := io.ReadAll(s)
	if err != nil || len(got) != 8*50*20 {
		t.Fatalf("read %d, %v", len(got), err)
	}
	for i := 0; i < len(got); i += 20 {
		if !bytes.Equal(got[i:i+20], bytes.Repeat(got[i:i+1], 20)) {
			t.Fatalf("interleaved at %d: %q", i, got[i:i+20])
		}
	}
}
