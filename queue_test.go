package heed

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func newWaiter(seq uint64) *waiter { return &waiter{seq: seq, signal: make(chan struct{}, 1)} }

// order walks the queue both ways.
func order(t *testing.T, q *queue) (seqs []uint64) {
	t.Helper()
	for w := q.head; w != nil; w = w.next {
		seqs = append(seqs, w.seq)
	}
	var back []uint64
	for w := q.tail; w != nil; w = w.prev {
		back = append(back, w.seq)
	}
	slices.Reverse(back)
	if !slices.Equal(seqs, back) || len(seqs) != q.n {
		t.Fatalf("forward %v, backward %v, counted %d", seqs, back, q.n)
	}
	return seqs
}

func poked(w *waiter) bool {
	select {
	case <-w.signal:
		return true
	default:
		return false
	}
}

func TestAQueueKeepsTheOrderOfArrival(t *testing.T) {
	r := dice(t)
	for range 50 {
		var q queue
		var model []*waiter
		taken := map[uint64]bool{}
		for range 300 {
			switch {
			case len(model) == 0 || r.IntN(3) > 0:
				seq := r.Uint64N(1000)
				if taken[seq] {
					continue
				}
				taken[seq] = true
				w := newWaiter(seq)
				at, _ := slices.BinarySearchFunc(model, seq, func(m *waiter, s uint64) int { return int(m.seq) - int(s) })
				if ahead := q.insert(w); ahead != at {
					t.Fatalf("%d has %d ahead, want %d", seq, ahead, at)
				}
				model = slices.Insert(model, at, w)
			default:
				i := r.IntN(len(model))
				w := model[i]
				delete(taken, w.seq)
				for _, m := range model {
					poked(m)
				}
				q.remove(w)
				model = slices.Delete(model, i, i+1)
				for j, m := range model {
					if got := poked(m); got != (i == 0 && j == 0) {
						t.Fatalf("removing place %d poked place %d: %v", i, j, got)
					}
				}
				if w.next != nil || w.prev != nil {
					t.Fatal("who left still points into the queue")
				}
			}
			var want []uint64
			for _, m := range model {
				want = append(want, m.seq)
			}
			if got := order(t, &q); !slices.Equal(got, want) {
				t.Fatalf("order %v, want %v", got, want)
			}
		}
	}
}

func TestThoseWhoCannotMakeItAreDismissedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	var q queue
	var all []*waiter
	for i := range 100 {
		w := newWaiter(uint64(i))
		w.bound = int64(r.IntN(200)) // 0: unbounded
		q.insert(w)
		all = append(all, w)
	}
	first := verdict{reason: ReasonHold}
	q.dismiss(100, first)
	for _, w := range all {
		want := w.bound != 0 && w.bound < 100
		if (w.refused != nil) != want || poked(w) != want {
			t.Errorf("bound %d: refused %v", w.bound, w.refused != nil)
		}
	}
	q.dismiss(150, verdict{reason: ReasonLimit})
	for _, w := range all {
		switch {
		case w.bound == 0 || w.bound >= 150:
			if w.refused != nil {
				t.Errorf("bound %d: refused", w.bound)
			}
		case w.bound < 100:
			if w.refused.reason != ReasonHold || poked(w) {
				t.Errorf("bound %d: dismissed a second time", w.bound)
			}
		default:
			if w.refused == nil || w.refused.reason != ReasonLimit {
				t.Errorf("bound %d: not refused", w.bound)
			}
		}
	}
	if q.n != 100 {
		t.Errorf("%d are left in the queue; they take themselves out", q.n)
	}
}

func TestPokingNeverBlocks(t *testing.T) {
	w := newWaiter(1)
	for range 10 {
		w.poke()
	}
	if !poked(w) || poked(w) {
		t.Error("ten pokes are not one look")
	}
	var q queue
	q.wake()
	q.dismiss(1, verdict{})
	if q.n != 0 {
		t.Error("an empty queue has somebody in it")
	}
}
