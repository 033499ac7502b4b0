package limiter

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEveryKeyHasALimitOfItsOwn(t *testing.T) {
	k := Keyed[string]{New: func() Core { return &SlidingLog{Limit: 2, Window: time.Minute} }}
	for _, key := range []string{"ada", "bob", ""} {
		for i := range 3 {
			if got, want := k.TakeAt(noon, key, 1).Allowed, i < 2; got != want {
				t.Errorf("unit %d of %q: allowed %v", i+1, key, got)
			}
		}
	}
	if k.Len() != 3 || k.Forgiven() != 0 {
		t.Errorf("%d keys are held and %d forgiven, want 3 and 0", k.Len(), k.Forgiven())
	}
	if r := k.PeekAt(noon, "ada", 1); r.Allowed || r.RetryAfter != time.Minute {
		t.Errorf("a spent key said %+v", r)
	}
	if r := k.PeekAt(noon, "eve", 1); !r.Allowed || k.Len() != 3 {
		t.Errorf("a new key said %+v, and %d are held after only asking", r, k.Len())
	}
}

func TestKeyedReadsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := Keyed[int]{New: func() Core { return &TokenBucket{Rate: 2} }}
		if !k.Take(7, 1).Allowed {
			t.Fatal("a new key was refused")
		}
		r := k.Take(7, 1)
		if r.Allowed || r.RetryAfter != time.Second/2 {
			t.Fatalf("an empty bucket of two a second said %+v", r)
		}
		time.Sleep(r.RetryAfter - 1)
		if k.Take(7, 1).Allowed {
			t.Error("a nanosecond early it was allowed")
		}
		time.Sleep(time.Nanosecond)
		if !k.Take(7, 1).Allowed {
			t.Error("after RetryAfter it was refused")
		}
	})
}

func TestKeyedAdmitsExactlyTheLimitOfEachKeyToSixtyFourGoroutines(t *testing.T) {
	const limit, keys = 50, 40
	k := Keyed[int]{New: func() Core { return &TokenBucket{Burst: limit} }, MaxKeys: keys}
	var admitted [keys]atomic.Int64
	together(64, func(i int) {
		for n := range 2 * limit * keys / 64 {
			key := (n + i) % keys
			k.PeekAt(noon, key, 1)
			if k.TakeAt(noon, key, 1).Allowed {
				admitted[key].Add(1)
			}
		}
	})
	for key := range admitted {
		if n := admitted[key].Load(); n != limit {
			t.Errorf("key %d: %d of %d units were admitted", key, n, limit)
		}
	}
	if k.Len() != keys || k.Forgiven() != 0 {
		t.Errorf("%d keys are held and %d forgiven, want %d and 0", k.Len(), k.Forgiven(), keys)
	}
}

func TestKeyedStaysWithinItsBoundUnderAMillionKeys(t *testing.T) {
	t.Parallel()
	const most = 1000
	k := Keyed[uint64]{New: func() Core { return &FixedWindow{Limit: 5, Window: 100 * time.Millisecond} }, MaxKeys: most}
	n := *arrivals * 10 / 8
	if underRace {
		n /= 20
	}
	together(8, func(i int) {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		for j := range n {
			if r := k.TakeAt(noon.Add(time.Duration(j)*time.Millisecond), rng.Uint64(), 1); !r.Allowed {
				t.Errorf("a key never seen before was refused: %+v", r)
			}
			if j%100 == 0 && k.Len() > most {
				t.Errorf("%d keys are held, more than %d", k.Len(), most)
			}
		}
	})
	held, heaped := 0, 0
	for i := range k.shards {
		held += len(k.shards[i].keys)
		heaped += len(k.shards[i].heap)
	}
	if held != k.Len() || heaped != held || held != most {
		t.Errorf("%d keys are in the maps, %d in the heaps, %d counted; want %d", held, heaped, k.Len(), most)
	}
}

// As long as nothing is forgiven, a Keyed that drops keys all the time answers as one core for each key that is never dropped.
func TestEvictionForgivesNobodyWhileAnIdleKeyExists(t *testing.T) {
	t.Parallel()
	for name, core := range map[string]func() Core{
		"FixedWindow":    func() Core { return &FixedWindow{Limit: 3, Window: time.Second} },
		"SlidingLog":     func() Core { return &SlidingLog{Limit: 3, Window: time.Second} },
		"SlidingCounter": func() Core { return &SlidingCounter{Limit: 3, Window: time.Second / 2} },
		"TokenBucket":    func() Core { return &TokenBucket{Rate: 3, Burst: 3} },
		"LeakyBucket":    func() Core { return &LeakyBucket{Rate: 3, Queue: 3} },
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			const places = 200 // at 100 takes a second and debts of at most one, many of them are always whole
			k := Keyed[int]{New: core, MaxKeys: places}
			all := map[int]Core{}
			now, refused, missed := noon, 0, 0
			for i := range *arrivals / 5 {
				now = now.Add(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
				key := rng.IntN(20)
				if rng.IntN(3) == 0 {
					key = 20 + rng.IntN(2000)
				}
				if all[key] == nil {
					all[key] = core()
				}
				if k.shard(key).keys[key] == nil && k.Len() == places {
					missed++
				}
				cost := []float64{1, 1, 1, 0.5, 2.25, 4, 0}[rng.IntN(7)]
				want, got := all[key].Take(now, cost), k.TakeAt(now, key, cost)
				if got != want {
					t.Fatalf("take %d: key %d got %+v, want %+v", i, key, got, want)
				}
				if !got.Allowed {
					refused++
				}
			}
			if k.Forgiven() != 0 {
				t.Errorf("%d keys in debt were forgiven", k.Forgiven())
			}
			if missed < *arrivals/50 || refused < *arrivals/50 {
				t.Errorf("a new key met a full table %d times, and %d takes were refused; that tests little", missed, refused)
			}
		})
	}
}

// debts are when each held key is whole.
func debts[K comparable](k *Keyed[K]) map[K]instant {
	all := map[K]instant{}
	for i := range k.shards {
		for key, h := range k.shards[i].keys {
			all[key] = h.whole
		}
	}
	return all
}

func TestAmongDebtorsTheOneWhoseDebtEndsSoonestIsDropped(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	const places = 50
	k := Keyed[int]{New: func() Core { return &TokenBucket{Rate: 1, Burst: 100} }, MaxKeys: places}
	now, forgiven, idle := noon, uint64(0), 0
	for i := range *arrivals / 20 {
		now = now.Add(time.Duration(rng.Int64N(int64(2 * time.Second))))
		if i%1000 == 0 {
			now = now.Add(time.Minute)
		}
		key, cost := rng.IntN(120), 1+99*rng.Float64()
		before := debts(&k)
		_, held := before[key]
		k.TakeAt(now, key, cost)
		if held || len(before) < places {
			continue
		}
		after := debts(&k)
		if len(after) != places {
			t.Fatalf("%d keys are held after one came and one went, want %d", len(after), places)
		}
		var gone instant
		soonest := instant(math.MaxUint64)
		for key, whole := range before {
			soonest = min(soonest, whole)
			if _, still := after[key]; !still {
				gone = whole
			}
		}
		switch {
		case gone <= instantOf(now):
			idle++ // any that is whole will do
		case gone != soonest:
			t.Fatalf("a key was dropped that is whole in %v; another is in %v", instantOf(now).until(gone), instantOf(now).until(soonest))
		default:
			forgiven++
		}
	}
	if k.Forgiven() != forgiven || forgiven == 0 || idle == 0 {
		t.Errorf("%d were forgiven, %d by its own count, and %d were whole", forgiven, k.Forgiven(), idle)
	}
}

func TestKeysThatAreNeverWholeAreDroppedToo(t *testing.T) {
	k := Keyed[int]{New: func() Core { return &TokenBucket{Burst: 1} }, MaxKeys: 2}
	for key := range 10 {
		if !k.TakeAt(noon, key, 1).Allowed {
			t.Errorf("new key %d was refused", key)
		}
	}
	if k.Len() != 2 || k.Forgiven() != 8 {
		t.Errorf("%d keys are held and %d forgiven, want 2 and 8", k.Len(), k.Forgiven())
	}
}

// The shard whose debtor was dropped must not take the end of that debt for the present.
func TestForgivingADebtDoesNotMoveTheClock(t *testing.T) {
	k := Keyed[string]{New: func() Core { return &TokenBucket{Rate: 1} }, MaxKeys: 1}
	for i, key := range []string{"a", "b", "a", "b"} {
		if r := k.TakeAt(noon, key, 1); !r.Allowed || r.Reset != time.Second || k.Forgiven() != uint64(i) {
			t.Errorf("take %d: %q got %+v, with %d forgiven", i, key, r, k.Forgiven())
		}
	}
}

// The table was full of a, which was whole, so b took its place. If the clock then goes back to when a was in debt, a new core would
// forgive that debt; so a is decided for as at the instant at which it was whole, and the times are still counted from now.
func TestAClockThatGoesBackBeforeAnEvictionForgivesNothing(t *testing.T) {
	k := Keyed[string]{New: func() Core { return &SlidingLog{Limit: 1, Window: time.Second} }, MaxKeys: 1}
	k.TakeAt(noon, "a", 1)
	k.TakeAt(noon.Add(time.Second), "b", 1)
	if k.Forgiven() != 0 || k.Len() != 1 {
		t.Fatalf("%d keys are held and %d forgiven, want 1 and 0", k.Len(), k.Forgiven())
	}
	back := noon.Add(time.Second / 4)
	if r := k.PeekAt(back, "a", 1); !r.Allowed || r.Reset != 0 {
		t.Errorf("asked again, a got %+v; its debt has once been over", r)
	}
	if r := k.TakeAt(back, "a", 1); !r.Allowed || r.Reset != 1750*time.Millisecond {
		t.Errorf("a got %+v; it must be as if it had spent at one second", r)
	}
	for _, r := range []Result{k.PeekAt(back, "a", 1), k.TakeAt(back, "a", 1)} {
		if r.Allowed || r.RetryAfter != 1750*time.Millisecond {
			t.Errorf("a got %+v, want 1.75 s to wait", r)
		}
	}
	if !k.PeekAt(back.Add(1750*time.Millisecond), "a", 1).Allowed {
		t.Error("after that time it was refused")
	}
	if r := k.PeekAt(time.Time{}, "a", 1); r.Allowed || r.RetryAfter != Never {
		t.Errorf("an instant too far back to be counted from got %+v", r)
	}
}

func TestAnAnswerThatTimeHasOvertakenIsVoid(t *testing.T) {
	var s shard[string]
	s.floor = instantOf(noon)
	r := Result{Allowed: true, Reset: time.Second}
	core := &SlidingLog{Limit: 1}
	if _, o := s.insert(noon.Add(-1), s.floor-1, "a", core, r, 1); o != overtaken || len(s.keys) != 0 {
		t.Errorf("outcome %v and %d keys; an eviction has been at a later instant since", o, len(s.keys))
	}
	if _, o := s.insert(noon.Add(-1), s.floor, "a", core, r, 1); o != inserted {
		t.Errorf("outcome %v; the answer was made with this floor", o)
	}
	if got, o := s.insert(noon, s.floor, "a", &SlidingLog{Limit: 1}, r, 1); o != alreadyHeld || !got.Allowed {
		t.Errorf("outcome %v, %+v; the core that is held decides, and it has spent nothing", o, got)
	}
}

func TestAKeyThatHasSpentNothingTakesNoRoom(t *testing.T) {
	k := Keyed[int]{New: func() Core { return &TokenBucket{Rate: 1, Burst: 5} }}
	unlimited := Keyed[int]{New: func() Core { return &TokenBucket{Rate: math.Inf(1)} }}
	for key := range 100 {
		for _, cost := range []float64{0, 6, -1, math.NaN()} {
			if got, want := k.TakeAt(noon, key, cost).Allowed, cost == 0; got != want {
				t.Errorf("a cost of %v: allowed %v", cost, got)
			}
		}
		if !unlimited.TakeAt(noon, key, 1).Allowed {
			t.Error("no limit refused")
		}
	}
	if k.Len() != 0 || unlimited.Len() != 0 {
		t.Errorf("%d and %d keys are held", k.Len(), unlimited.Len())
	}
}

func TestAKeyThatIsNotItselfIsRefused(t *testing.T) {
	k := Keyed[float64]{New: func() Core { return &TokenBucket{Rate: 1} }}
	if r := k.TakeAt(noon, math.NaN(), 1); r.Allowed || r.RetryAfter != Never || k.Len() != 0 {
		t.Errorf("NaN got %+v, and %d keys are held", r, k.Len())
	}
	if !k.TakeAt(noon, 1.5, 1).Allowed {
		t.Error("an ordinary key was refused")
	}
}

func TestTheBoundOfKeyedIsWhatMaxKeysSays(t *testing.T) {
	for set, want := range map[int]int64{0: 100_000, -1: math.MaxInt64, -5: math.MaxInt64, 1: 1, 7: 7} {
		k := Keyed[int]{New: func() Core { return &FixedWindow{Limit: 1, Window: time.Second} }, MaxKeys: set}
		if got := k.places(); got != want {
			t.Errorf("MaxKeys %d has %d places, want %d", set, got, want)
		}
		for key := range 1000 {
			k.TakeAt(noon, key, 1)
		}
		if got, want := k.Len(), int(min(want, 1000)); got != want {
			t.Errorf("MaxKeys %d holds %d of 1000 keys, want %d", set, got, want)
		}
	}
}

func TestKeyedWithoutNewSaysWhatToDo(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "set it to a function") {
			t.Errorf("it panicked with %q", text)
		}
	}()
	new(Keyed[int]).Take(1, 1)
}

// A New that panics must leave neither a lock held nor a place taken.
func TestAPanicInNewLeavesNothingBehind(t *testing.T) {
	fail := true
	k := Keyed[int]{MaxKeys: 1, New: func() Core {
		if fail {
			panic("no core today")
		}
		return &TokenBucket{Rate: 1}
	}}
	func() {
		defer func() { _ = recover() }()
		k.TakeAt(noon, 1, 1)
	}()
	fail = false
	if !k.TakeAt(noon, 1, 1).Allowed || k.Len() != 1 {
		t.Error("the next take did not work")
	}
}
