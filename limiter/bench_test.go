package limiter

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

// benchmarkCore asks for a unit every 300 ms where one in 600 ms is allowed, so half of the decisions spend and half refuse.
func benchmarkCore(b *testing.B, c Core) {
	b.ReportAllocs()
	now := noon
	for range 500 { // a log grows to its limit first
		c.Take(now, 1)
		now = now.Add(300 * time.Millisecond)
	}
	for b.Loop() {
		c.Take(now, 1)
		now = now.Add(300 * time.Millisecond)
	}
}

func BenchmarkFixedWindow(b *testing.B)    { benchmarkCore(b, busy()["FixedWindow"]) }
func BenchmarkSlidingLog(b *testing.B)     { benchmarkCore(b, busy()["SlidingLog"]) }
func BenchmarkSlidingCounter(b *testing.B) { benchmarkCore(b, busy()["SlidingCounter"]) }
func BenchmarkTokenBucket(b *testing.B)    { benchmarkCore(b, busy()["TokenBucket"]) }
func BenchmarkLeakyBucket(b *testing.B)    { benchmarkCore(b, busy()["LeakyBucket"]) }

// BenchmarkSlidingLogGulps has costs that differ, so that a refusal has to search for the entry that frees enough.
func BenchmarkSlidingLogGulps(b *testing.B) {
	b.ReportAllocs()
	l := &SlidingLog{Limit: 10_000, Window: time.Minute}
	rng := rand.New(rand.NewPCG(1, 2))
	now := noon
	for b.Loop() {
		l.Take(now, 1+float64(rng.IntN(20)))
		now = now.Add(20 * time.Millisecond)
	}
}

func BenchmarkLimiter(b *testing.B) {
	b.ReportAllocs()
	l := New(busy()["TokenBucket"])
	for b.Loop() {
		l.Take(1)
	}
}

func BenchmarkKeyed(b *testing.B) {
	const keys = 10_000
	k := Keyed[int]{New: func() Core { return busy()["TokenBucket"] }}
	now := time.Now()
	for key := range keys {
		k.TakeAt(now, key, 1)
	}
	b.Run("held", func(b *testing.B) {
		b.ReportAllocs()
		var seed atomic.Uint64
		b.RunParallel(func(pb *testing.PB) {
			rng := rand.New(rand.NewPCG(seed.Add(1), 1))
			for pb.Next() {
				k.Take(rng.IntN(keys), 1)
			}
		})
	})
	b.Run("churn", func(b *testing.B) { // keys never seen before, all in debt: the worst that a client can do
		b.ReportAllocs()
		k := Keyed[uint64]{New: func() Core { return &TokenBucket{Rate: 1, Burst: 100} }, MaxKeys: keys}
		var seed atomic.Uint64
		b.RunParallel(func(pb *testing.PB) {
			rng := rand.New(rand.NewPCG(seed.Add(1), 1))
			for pb.Next() {
				k.Take(rng.Uint64(), 1)
			}
		})
	})
}
