package limiter

import (
	"strconv"
	"testing"
	"time"
	"unsafe"
)

// busy is one of each with a hundred units a minute, and the requests that keep it at its limit: one in 600 ms is allowed.
func busy() map[string]Core {
	return map[string]Core{
		"FixedWindow":    &FixedWindow{Limit: 100, Window: time.Minute},
		"SlidingLog":     &SlidingLog{Limit: 100, Window: time.Minute},
		"SlidingCounter": &SlidingCounter{Limit: 100, Window: time.Minute},
		"TokenBucket":    &TokenBucket{Rate: 100. / 60, Burst: 100},
		"LeakyBucket":    &LeakyBucket{Rate: 100. / 60, Queue: 100},
	}
}

func TestNoCoreAllocatesInSteadyState(t *testing.T) {
	for name, c := range busy() {
		now := noon
		for range 1000 { // a log grows to its limit first
			c.Take(now, 1)
			now = now.Add(300 * time.Millisecond)
		}
		if n := testing.AllocsPerRun(1000, func() {
			c.Take(now, 1)
			c.Peek(now, 2.5)
			now = now.Add(300 * time.Millisecond)
		}); n != 0 {
			t.Errorf("%s allocates %v times for a Take and a Peek", name, n)
		}
		l := New(c)
		if n := testing.AllocsPerRun(100, func() { l.TakeAt(now, 1); l.Take(1); l.Allow() }); n > 0 {
			t.Errorf("a Limiter around a %s allocates %v times", name, n)
		}
	}
}

func TestAHeldKeyIsDecidedWithoutAllocation(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	numbers := Keyed[int]{New: func() Core { return &TokenBucket{Rate: 1, Burst: 1e6} }}
	names := Keyed[string]{New: func() Core { return &TokenBucket{Rate: 1, Burst: 1e6} }}
	type pair struct {
		user string
		n    int
	}
	pairs := Keyed[pair]{New: func() Core { return &TokenBucket{Rate: 1, Burst: 1e6} }}
	if n := testing.AllocsPerRun(1000, func() {
		numbers.Take(7, 1)
		numbers.TakeAt(noon, 7, 1)
		numbers.PeekAt(noon, 7, 1)
		names.Take("ada", 1)
		pairs.Take(pair{"ada", 7}, 1)
	}); n != 0 {
		t.Errorf("five decisions about keys that are held allocate %v times", n)
	}
}

func TestALogHoldsNoMoreThanItsLimitInEntries(t *testing.T) {
	for _, limit := range []float64{1, 3, 4, 5, 100, 1000, 2.5} {
		l := &SlidingLog{Limit: limit, Window: time.Minute}
		now := noon
		for range 5000 {
			l.Take(now, 1)
			if now = now.Add(time.Duration(float64(20*time.Second) / limit)); len(l.ring) > int(limit+0.5) {
				t.Fatalf("%d entries for %v units", len(l.ring), limit)
			}
		}
		if len(l.ring) < int(limit) {
			t.Errorf("%d entries hold %v units; the limit was never reached", len(l.ring), limit)
		}
	}
}

func TestALogGrowsOnlyAsItIsUsed(t *testing.T) {
	l := &SlidingLog{Limit: 1e6, Window: time.Minute}
	for i := range 5 {
		l.Take(noon.Add(time.Duration(i)), 1)
	}
	if len(l.ring) > 8 {
		t.Errorf("5 units take %d entries", len(l.ring))
	}
	for range 100 {
		l.Take(noon.Add(time.Second), 1) // one instant is one entry
	}
	if l.n != 6 {
		t.Errorf("6 instants take %d entries", l.n)
	}
}

// The size classes of the allocator are 48, 64 and 80 bytes here: one field more in a core is 16 bytes more for each client.
func TestTheSizesOfWhatThereIsOneOfForEachClient(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"FixedWindow", unsafe.Sizeof(FixedWindow{}), 56},
		{"SlidingLog", unsafe.Sizeof(SlidingLog{}), 64},
		{"SlidingCounter", unsafe.Sizeof(SlidingCounter{}), 40},
		{"TokenBucket", unsafe.Sizeof(TokenBucket{}), 56},
		{"LeakyBucket", unsafe.Sizeof(LeakyBucket{}), 56},
		{"an entry of a log", unsafe.Sizeof(entry{}), 16},
		{"a held key", unsafe.Sizeof(held[string]{}), 48},
		{"a shard, a multiple of two cache lines", unsafe.Sizeof(shard[string]{}), 128},
	} {
		if strconv.IntSize == 64 && c.got != c.want {
			t.Errorf("%s has %d bytes, want %d", c.name, c.got, c.want)
		}
	}
}
