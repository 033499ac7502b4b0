package limiter

import (
	"hash/maphash"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Keyed keeps one Core for each key: one limit for every client, user or address. Set New and use it; it must not be copied after
// that. It is safe for concurrent use, and keys seldom wait for each other because the locks are sharded.
//
// The number of keys is bounded. A new key that finds no room takes the place of one that is whole, wherever it is: since a whole
// core and a new one answer alike, nothing is forgiven by that. Only while every key is in debt (has spent something that has not
// come back) does the key whose debt ends soonest have to go, and starts afresh when it returns; [Keyed.Forgiven] counts these.
// When that number grows, MaxKeys is too small for the number of clients that are active at the same time, or somebody is making up
// keys: put a limit without a key in front.
//
// A key that has spent nothing takes no room, however often it is refused. Each shard has its own clock, with the properties that
// [Limiter] describes.
type Keyed[K comparable] struct {
	// New makes the core of a key that is not held, and must be set: without it the first use panics. It is called outside all
	// locks, may be called by several goroutines at once, and what it makes may be dropped unused. All cores of one Keyed should
	// have the same configuration.
	New func() Core

	// MaxKeys is how many keys are held at most. 0 is 100,000; negative is no bound, which a client who can choose its key turns
	// into memory without bound.
	MaxKeys int

	once     sync.Once
	seed     maphash.Seed
	held     atomic.Int64 // keys in the shards, and places that are reserved for some about to be
	forgiven atomic.Uint64
	shards   [shardCount]shard[K]
}

const shardCount = 32 // a power of two

// Take spends cost units of a key now if they fit. A key that is not equal to itself (a float NaN) could never be found again, so it
// is refused.
func (k *Keyed[K]) Take(key K, cost float64) Result {
	s := k.shard(key)
	now, r, found := s.takeNow(key, cost)
	if found {
		return r
	}
	return k.admit(s, now, key, cost)
}

// TakeAt is Take at an instant that the caller gives.
func (k *Keyed[K]) TakeAt(now time.Time, key K, cost float64) Result {
	s := k.shard(key)
	if r, found := s.take(now, key, cost); found {
		return r
	}
	return k.admit(s, now, key, cost)
}

// PeekAt decides as TakeAt would, without spending.
func (k *Keyed[K]) PeekAt(now time.Time, key K, cost float64) Result {
	s := k.shard(key)
	floor, r, found := s.peek(now, key, cost)
	if found {
		return r
	}
	return notBefore(floor, now, func(now time.Time) Result { return k.New().Peek(now, cost) })
}

// Len is how many keys are held, with those that are just being added.
func (k *Keyed[K]) Len() int { return int(k.held.Load()) }

// Forgiven is how many keys in debt had to be dropped because all were.
func (k *Keyed[K]) Forgiven() uint64 { return k.forgiven.Load() }

func (k *Keyed[K]) shard(key K) *shard[K] {
	k.once.Do(k.start)
	return &k.shards[k.indexOf(key)]
}

func (k *Keyed[K]) start() {
	if k.New == nil {
		panic("limiter: Keyed.New is not set; set it to a function that makes the Core of one key")
	}
	k.seed = maphash.MakeSeed()
}

func (k *Keyed[K]) indexOf(key K) uint64 { return maphash.Comparable(k.seed, key) % shardCount }

// admit decides for a key that was not held a moment ago, and holds it from now on if it has spent something.
func (k *Keyed[K]) admit(s *shard[K], now time.Time, key K, cost float64) Result {
	if key != key { // only a NaN is not itself
		return Result{RetryAfter: Never, Reset: Never}
	}
	for {
		core, floor := k.New(), s.earliest()
		r := notBefore(floor, now, func(now time.Time) Result { return core.Take(now, cost) })
		if !r.Allowed || r.Reset == 0 {
			return r // as good as new
		}
		if r, outcome := k.settle(s, now, floor, key, core, r, cost); outcome != overtaken {
			return r
		}
	}
}

// settle finds a place for a new key. Keys settle in a shard one at a time: did two bring the same key at once, each would take a
// place, and the one too many might cost another key its debt.
func (k *Keyed[K]) settle(s *shard[K], now time.Time, floor instant, key K, core Core, r Result, cost float64) (Result, outcome) {
	s.settling.Lock()
	defer s.settling.Unlock()
	if r, found := s.take(now, key, cost); found {
		return r, alreadyHeld
	}
	k.reserve(s, instantOf(now))
	r, outcome := s.insert(now, floor, key, core, r, cost)
	if outcome != inserted {
		k.held.Add(-1)
	}
	return r, outcome
}

// reserve takes a place for one more key, so that there are never more than MaxKeys. No two shards are ever locked together.
func (k *Keyed[K]) reserve(own *shard[K], now instant) {
	for {
		held := k.held.Load()
		switch {
		case held < k.places():
			if k.held.CompareAndSwap(held, held+1) {
				return
			}
		case !k.evict(own, now):
			runtime.Gosched() // every place is reserved by somebody who is about to fill it
		}
	}
}

// places is how many keys there is room for.
func (k *Keyed[K]) places() int64 {
	switch {
	case k.MaxKeys == 0:
		return 100_000
	case k.MaxKeys < 0:
		return math.MaxInt64
	}
	return int64(k.MaxKeys)
}

// evict drops one key: a whole one, of this shard if it has one, else the one that is whole soonest. It is false when there is none.
func (k *Keyed[K]) evict(own *shard[K], now instant) bool {
	if own.soonest() <= now {
		if _, dropped := own.drop(now, now); dropped {
			k.held.Add(-1)
			return true
		}
	}
	for {
		// The least of the lower bounds may be too low. Taking what is whole by the second least, and correcting the least if nothing
		// is, finds the key that is whole soonest of all, with one lock at a time.
		var least *shard[K]
		first, second := nobody, nobody
		for i := range k.shards {
			bound := k.shards[i].soonest()
			switch {
			case bound < first:
				least, first, second = &k.shards[i], bound, first
			case bound < second:
				second = bound
			}
		}
		if least == nil {
			return false
		}
		if whole, dropped := least.drop(max(now, second), now); dropped {
			k.held.Add(-1)
			if whole > now {
				k.forgiven.Add(1)
			}
			return true
		}
	}
}
