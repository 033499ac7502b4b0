package limiter

import (
	"math/rand/v2"
	"testing"
	"time"
)

// accepted runs random traffic of single units, bursts and gulps through a core and returns what it let through, in order.
func accepted(c Core, seed uint64, n int, pace, window time.Duration) (taken history) {
	rng := rand.New(rand.NewPCG(seed, 7))
	at := noon.UnixNano()
	for range n {
		switch p := rng.IntN(100); {
		case p < 40:
		case p < 97:
			at += rng.Int64N(int64(pace) * 3 / 2)
		case p < 98:
			at = floorTo(at, int64(window), 0) + int64(window) - 1
		default:
			at += rng.Int64N(int64(window) * 2)
		}
		cost := int64(nano)
		if rng.IntN(10) == 0 {
			cost = 1 + rng.Int64N(5*nano)
		}
		if c.Take(time.Unix(0, at), float64(cost)/nano).Allowed {
			taken.accept(at, cost)
		}
	}
	return taken
}

// most is the most that lies in any span of the given length, the end excluded.
func (h history) most(span int64) (most int64) {
	var in int64
	first := 0
	for _, a := range h {
		for in += a.cost; h[first].at <= a.at-span; first++ {
			in -= h[first].cost
		}
		most = max(most, in)
	}
	return most
}

func TestNoSpanOfASlidingLogHoldsMoreThanItsLimit(t *testing.T) {
	for seed := range uint64(5) {
		h := accepted(&SlidingLog{Limit: 20, Window: time.Second}, seed, *arrivals/10, time.Second/20, time.Second)
		if most := h.most(nano); most > 20*nano || most < 19*nano {
			t.Errorf("seed %d: the fullest second holds %v of 20 units", seed, float64(most)/nano)
		}
	}
}

func TestNoSpanOfAFixedWindowOrASlidingCounterHoldsMoreThanTwiceItsLimit(t *testing.T) {
	for seed := range uint64(5) {
		for name, c := range map[string]Core{
			"FixedWindow":    &FixedWindow{Limit: 20, Window: time.Second},
			"SlidingCounter": &SlidingCounter{Limit: 20, Window: time.Second},
		} {
			h := accepted(c, seed, *arrivals/10, time.Second/20, time.Second)
			if most := h.most(nano); most > 2*20*nano || most < 20*nano {
				t.Errorf("%s, seed %d: the fullest second holds %v of 20 units", name, seed, float64(most)/nano)
			}
		}
	}
}

func TestNoWindowOfAFixedWindowHoldsMoreThanItsLimit(t *testing.T) {
	h := accepted(&FixedWindow{Limit: 20, Window: time.Second}, 3, *arrivals/10, time.Second/20, time.Second)
	in := map[int64]int64{}
	for _, a := range h {
		if in[a.at/nano] += a.cost; in[a.at/nano] > 20*nano {
			t.Fatalf("the window that begins at %d holds %d nano-units", a.at/nano, in[a.at/nano])
		}
	}
}

func TestAFixedWindowLetsTwiceItsLimitThroughAcrossAnEdge(t *testing.T) {
	w := &FixedWindow{Limit: 100, Window: time.Minute}
	edge := noon.Add(time.Minute)
	n := 0
	for _, at := range []time.Time{edge.Add(-1), edge} {
		for w.Take(at, 1).Allowed {
			n++
		}
	}
	if n != 200 {
		t.Errorf("%d units went through within a nanosecond, want 200: the documentation says so", n)
	}
}

// In any span of T a bucket lets through at most its capacity and what flows in T.
func TestInAnySpanABucketLetsThroughItsCapacityAndTheFlow(t *testing.T) {
	for seed := range uint64(5) {
		for name, c := range map[string]Core{
			"TokenBucket": &TokenBucket{Rate: 20, Burst: 8},
			"LeakyBucket": &LeakyBucket{Rate: 20, Queue: 8},
		} {
			h := accepted(c, seed, *arrivals/10, time.Second/20, time.Second)
			for _, span := range []int64{0, 1, nano / 20, nano / 3, nano, 7 * nano} {
				// The span [from, from+T] has both ends in it, hence one nanosecond more for most.
				if most := h.most(span + 1); most > 8*nano+20*span {
					t.Errorf("%s, seed %d: %v units in %d ns, more than 8 + 20 a second", name, seed, float64(most)/nano, span)
				}
			}
			if most := h.most(nano); most < 15*nano {
				t.Errorf("%s, seed %d: the fullest second holds only %v units; such traffic tests nothing", name, seed, float64(most)/nano)
			}
		}
	}
}

func TestAQueueLetsThroughAtAConstantRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := &LeakyBucket{Rate: 100. / 60, Queue: 10}
	const perUnit = 600 * time.Millisecond
	var ready time.Time // when the queue is empty
	at, refused, held := noon, 0, 0
	for range *arrivals / 10 {
		if rng.IntN(3) > 0 {
			at = at.Add(time.Duration(rng.Int64N(int64(2 * perUnit))))
		}
		cost := float64(rng.IntN(4)) / 2 // 0, 0.5, 1 or 1.5
		ask := b.Take
		wait, ok := b.Delay(at, cost)
		if ready.Before(at) {
			ready = at
		}
		fits := ready.Sub(at)+time.Duration(cost*float64(perUnit)) <= 10*perUnit
		if ok != fits {
			t.Fatalf("with %v queued a cost of %v was accepted: %v", ready.Sub(at), cost, ok)
		}
		if !ok {
			if refused++; wait != ask(at, cost).RetryAfter || wait <= 0 {
				t.Fatalf("refused, and told to wait %v where Take says %v", wait, ask(at, cost).RetryAfter)
			}
			continue
		}
		if wait != ready.Sub(at) {
			t.Fatalf("held for %v; all that came before is out after %v", wait, ready.Sub(at))
		}
		if wait > 0 {
			held++
		}
		ready = ready.Add(time.Duration(cost * float64(perUnit)))
	}
	if refused == 0 || held == 0 {
		t.Errorf("%d refused and %d held: such traffic tests nothing", refused, held)
	}
}

func TestAQueueThatDoesNotLeakHoldsNobodyForEver(t *testing.T) {
	b := &LeakyBucket{Queue: 3}
	if wait, ok := b.Delay(noon, 1); wait != 0 || !ok {
		t.Errorf("the first got %v, %v; nothing is before it", wait, ok)
	}
	if wait, ok := b.Delay(noon, 1); wait != Never || ok {
		t.Errorf("the second got %v, %v; it could never be let through", wait, ok)
	}
	if r := b.Peek(noon, 0); r.Remaining != 2 {
		t.Errorf("%v remain of 3 after one was accepted and one refused", r.Remaining)
	}
}
