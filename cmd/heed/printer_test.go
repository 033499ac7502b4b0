package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// TestBodiesAreWholeAndInOrderWhateverHappens runs many items at a time, some
// of which fail at any point, and holds the output against the list.
func TestBodiesAreWholeAndInOrderWhateverHappens(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		const n = 60
		kept, pieces := make([]bool, n), make([]int, n)
		var want strings.Builder
		for i := range n {
			kept[i], pieces[i] = random.IntN(4) > 0, random.IntN(4)
			for j := range pieces[i] {
				if kept[i] {
					fmt.Fprintf(&want, "%d.%d ", i, j)
				}
			}
		}
		var out bytes.Buffer
		p := newPrinter(&out)
		p.temp = t.TempDir()
		var next int
		var mu sync.Mutex
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for {
					mu.Lock()
					i := next
					next++
					mu.Unlock()
					if i >= n {
						return
					}
					d, err := p.begin(&item{index: i})
					if err != nil {
						t.Error(err)
						return
					}
					for j := range pieces[i] {
						if !kept[i] {
							break // what fails before its first byte prints none
						}
						if _, err := fmt.Fprintf(d, "%d.%d ", i, j); err != nil {
							t.Error(err)
						}
					}
					if err := d.end(kept[i]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
		if out.String() != want.String() {
			t.Fatalf("seed %d: printed %q, want %q", seed, out.String(), want.String())
		}
		if p.spooled != 0 || len(p.parts) != 0 {
			t.Errorf("seed %d: %d bytes and %d bodies are left", seed, p.spooled, len(p.parts))
		}
		p.close()
		left, err := os.ReadDir(p.temp)
		if err != nil || len(left) > 0 {
			t.Errorf("seed %d: %v is left on disk, %v", seed, left, err)
		}
	}
}

// begun gives the deliveries of n items.
func begun(t *testing.T, p *printer, n int) []delivery {
	t.Helper()
	ds := make([]delivery, n)
	for i := range ds {
		var err error
		if ds[i], err = p.begin(&item{index: i}); err != nil {
			t.Fatal(err)
		}
	}
	return ds
}

func mustWrite(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
}

func TestTheBodyInTurnGoesStraightThrough(t *testing.T) {
	var out bytes.Buffer
	p := newPrinter(&out)
	p.temp = t.TempDir()
	defer p.close()
	ds := begun(t, p, 3)
	mustWrite(t, ds[0], "a1")
	mustWrite(t, ds[1], "b1")
	if out.String() != "a1" {
		t.Errorf("printed %q", out.String())
	}
	if err := ds[0].end(true); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, ds[1], "b2") // its turn has come while it was under way
	if out.String() != "a1b1b2" || p.spooled != 0 {
		t.Errorf("printed %q, %d bytes on disk", out.String(), p.spooled)
	}
	mustWrite(t, ds[2], "c1")
	if err := ds[1].end(false); err != nil {
		t.Fatal(err)
	}
	if err := ds[2].end(false); err != nil {
		t.Fatal(err)
	}
	if out.String() != "a1b1b2" || p.spooled != 0 {
		t.Errorf("printed %q of bodies that failed, %d bytes on disk", out.String(), p.spooled)
	}
}

func TestABrokenOutputIsSaidOnceAndNothingIsLeftOnDisk(t *testing.T) {
	full := errors.New("no space left on device")
	p := newPrinter(&brokenWriter{left: 3, err: full})
	p.temp = t.TempDir()
	ds := begun(t, p, 4)
	mustWrite(t, ds[1], "bbb")
	mustWrite(t, ds[2], "ccc")
	mustWrite(t, ds[0], "aaa")
	for _, i := range []int{2, 1} {
		if err := ds[i].end(true); err != nil {
			t.Fatal(err)
		}
	}
	err := ds[0].end(true)
	var output *outputError
	if !errors.As(err, &output) || !errors.Is(err, full) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%v, want one line about the output", err)
	}
	if _, err := ds[3].Write([]byte("d")); !errors.Is(err, full) {
		t.Errorf("the output works again: %v", err)
	}
	if p.spooled != 0 {
		t.Errorf("%d bytes are left on disk", p.spooled)
	}
	p.close()
}

func TestADiskThatCannotBeWrittenToIsNoSuccess(t *testing.T) {
	p := newPrinter(io.Discard)
	p.temp = "main.go" // not a directory
	ds := begun(t, p, 2)
	_, err := ds[1].Write([]byte("x"))
	var output *outputError
	if !errors.As(err, &output) || !strings.Contains(output.Error(), "TMPDIR") {
		t.Errorf("%v, want an error that names TMPDIR", err)
	}
}

func TestNothingNewBeginsWhileTooMuchWaitsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newPrinter(&out)
		p.temp = t.TempDir()
		ds := begun(t, p, 2)
		mustWrite(t, ds[1], "b")
		p.spooled += mostSpooled // as if it were that much
		ds[1].(*printing).size += mostSpooled
		passed, gaveUp, done := false, false, make(chan struct{})
		go func() { p.room(nil); passed = true }()
		go func() { p.room(done); gaveUp = true }()
		synctest.Wait()
		if passed || gaveUp {
			t.Fatal("another item may begin")
		}
		close(done)
		synctest.Wait()
		if passed || !gaveUp {
			t.Fatalf("passed: %v, gave up: %v, want the second alone", passed, gaveUp)
		}
		if err := errors.Join(ds[1].end(true), ds[0].end(true)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !passed || out.String() != "b" {
			t.Errorf("passed: %v, printed %q", passed, out.String())
		}
		p.close()
	})
}
