package limiter

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// shard is a part of the keys of a Keyed under one lock.
//
// Its heap finds the key that is whole soonest without being touched by a decision: spending only ever moves the instant at which a
// key is whole away, so the instant under which it lies in the heap is a lower bound, corrected when it comes to the top. Each
// spending causes at most one correction.
type shard[K comparable] struct {
	mu       sync.Mutex
	keys     map[K]*held[K]
	heap     []*held[K] // by due
	floor    instant    // nothing is decided before it: keys that were dropped as whole had debts then
	bound    atomic.Uint64
	clock    clock
	settling sync.Mutex // held by whoever adds a key, before mu

	_ [40]byte // so that two shards do not share a pair of cache lines
}

type held[K comparable] struct {
	key   K
	core  Core
	whole instant // when the core is whole if nobody spends
	due   instant // what whole was when the heap was last put in order
}

func (s *shard[K]) takeNow(key K, cost float64) (time.Time, Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.now()
	if h := s.keys[key]; h != nil {
		return now, s.spend(h, now, cost), true
	}
	return now, Result{}, false
}

func (s *shard[K]) take(now time.Time, key K, cost float64) (Result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.keys[key]; h != nil {
		return s.spend(h, now, cost), true
	}
	return Result{}, false
}

func (s *shard[K]) peek(now time.Time, key K, cost float64) (floor instant, r Result, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.keys[key]; h != nil {
		return s.floor, notBefore(s.floor, now, func(now time.Time) Result { return h.core.Peek(now, cost) }), true
	}
	return s.floor, Result{}, false
}

func (s *shard[K]) earliest() instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.floor
}

// What became of a core that was to be held.
type outcome int

const (
	inserted    outcome = iota
	alreadyHeld         // the key is held already: that core decided
	overtaken           // by time: keys have been dropped as whole at a later instant, so the answer is void
)

// insert holds a core that has answered r to a cost at now, when nothing was to be decided before floor.
func (s *shard[K]) insert(now time.Time, floor instant, key K, core Core, r Result, cost float64) (Result, outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.keys[key]; h != nil {
		return s.spend(h, now, cost), alreadyHeld
	}
	if s.floor > max(floor, instantOf(now)) {
		return r, overtaken
	}
	if s.keys == nil {
		s.keys = make(map[K]*held[K])
	}
	whole := wholeAt(now, r)
	h := &held[K]{key: key, core: core, whole: whole, due: whole}
	s.keys[key] = h
	s.heap = append(s.heap, h)
	s.up(len(s.heap) - 1)
	s.rebound()
	return r, inserted
}

// spend is called with the lock held. Core is a pure decision, so this is not a callback that could wait.
func (s *shard[K]) spend(h *held[K], now time.Time, cost float64) Result {
	r := notBefore(s.floor, now, func(now time.Time) Result { return h.core.Take(now, cost) })
	if r.Allowed && cost > 0 {
		h.whole = wholeAt(now, r)
	}
	return r
}

// nobody is the bound of a shard without keys; it is after every instant at which a key is whole, even if that is never.
const nobody instant = math.MaxUint64

// soonest is a lower bound, read without the lock, of when the first key of this shard is whole.
func (s *shard[K]) soonest() instant { return instant(s.bound.Load()) }

// rebound is called with the lock held, after the top of the heap may have changed.
func (s *shard[K]) rebound() {
	bound := nobody
	if len(s.heap) > 0 {
		bound = s.heap[0].due
	}
	s.bound.Store(uint64(bound))
}

// drop forgets the key that is whole soonest, if that is by the given instant, and tells when that is. Otherwise it leaves the bound
// exact.
func (s *shard[K]) drop(by, now instant) (whole instant, dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.rebound()
	if len(s.heap) == 0 {
		return 0, false
	}
	for s.heap[0].due < s.heap[0].whole {
		s.heap[0].due = s.heap[0].whole
		s.down(0)
	}
	top := s.heap[0]
	if top.whole > by {
		return 0, false
	}
	last := len(s.heap) - 1
	s.heap[0], s.heap[last] = s.heap[last], nil
	s.heap = s.heap[:last]
	s.down(0)
	delete(s.keys, top.key)
	if top.whole <= now {
		s.floor = max(s.floor, top.whole)
	}
	return top.whole, true
}

func (s *shard[K]) up(i int) {
	for i > 0 && s.heap[i].due < s.heap[(i-1)/2].due {
		s.heap[i], s.heap[(i-1)/2] = s.heap[(i-1)/2], s.heap[i]
		i = (i - 1) / 2
	}
}

func (s *shard[K]) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s.heap); child++ {
			if s.heap[child].due < s.heap[least].due {
				least = child
			}
		}
		if least == i {
			return
		}
		s.heap[i], s.heap[least] = s.heap[least], s.heap[i]
		i = least
	}
}

// wholeAt is the instant that a Reset means.
func wholeAt(now time.Time, r Result) instant {
	if r.Reset < 0 {
		return nobody - 1
	}
	return min(instantOf(now).add(uint64(r.Reset)), nobody-1)
}

// notBefore decides at now or at floor, whichever is later, and counts the times in the answer from now all the same.
func notBefore(floor instant, now time.Time, decide func(time.Time) Result) Result {
	early := instantOf(now).until(floor)
	if early == 0 {
		return decide(now)
	}
	if early < 0 { // longer than a Duration: nothing sensible can be said about such an instant
		return Result{RetryAfter: Never, Reset: Never}
	}
	r := decide(now.Add(early))
	for _, d := range []*time.Duration{&r.RetryAfter, &r.Reset} {
		if *d > 0 {
			if *d += early; *d < 0 {
				*d = Never
			}
		}
	}
	return r
}
