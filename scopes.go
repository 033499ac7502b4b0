package heed

import (
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Bounds of what is kept of scopes, and of the debts of those that had to go.
const (
	maxScopes = 10_000
	maxDebts  = 1_000_000
)

// scopes is the bounded set of a Transport's scopes, the one used longest ago
// first to go. One with somebody in it stays. One that owes a wait leaves the
// instant behind, so that forgetting a scope never forgives it.
type scopes struct {
	mu    sync.Mutex
	seed  maphash.Seed
	live  *simplelru.LRU[scopeKey, *scope]
	last  *scope           // the one asked for last: at the front already
	debts map[uint64]int64 // hash of the key: the monotonic instant before which it may not send
	most  int
	swept int64 // when debts were last swept
}

func newScopes(seed maphash.Seed, most int) *scopes {
	live, err := simplelru.NewLRU[scopeKey, *scope](1<<31-1, nil) // the bound is ours: it asks before it evicts
	if err != nil {
		panic(err)
	}
	return &scopes{seed: seed, live: live, most: most}
}

// get finds or makes a scope.
func (m *scopes) get(key scopeKey, now func() instant) *scope {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && m.last.key == key {
		return m.last
	}
	if s, ok := m.live.Get(key); ok {
		m.last = s
		return s
	}
	s := &scope{key: key, name: key.display()}
	for range 2 { // two, so that a crowd that could not leave is worn down afterwards
		if m.live.Len() >= m.most {
			m.evict(now())
		}
	}
	if len(m.debts) > 0 {
		h := maphash.Comparable(m.seed, key)
		if until, ok := m.debts[h]; ok {
			s.ledger.hold = until
			delete(m.debts, h)
		}
	}
	m.live.Add(key, s)
	m.last = s
	return s
}

// evict makes room for one: among the oldest few the first that owes nothing, else the oldest that nobody is in.
func (m *scopes) evict(now instant) {
	m.last = nil // it may be the one that goes
	const few = 16
	var owing *scope
	var owes int64
	for range few {
		_, s, ok := m.live.GetOldest()
		if !ok {
			return
		}
		s.mu.Lock()
		busy, idle, debt := s.busy(), s.ledger.idle(now), s.ledger.debt(now)
		s.mu.Unlock()
		if !busy && idle {
			m.live.Remove(s.key)
			return
		}
		if !busy && owing == nil {
			owing, owes = s, debt
		}
		m.live.Get(s.key) // to the front: not asked again soon
	}
	if owing != nil {
		m.live.Remove(owing.key)
		m.remember(owing.key, owes, now)
	}
}

// remember keeps a debt when its scope goes.
func (m *scopes) remember(key scopeKey, until int64, now instant) {
	if until <= now.mono {
		return
	}
	if m.debts == nil {
		m.debts = make(map[uint64]int64)
	}
	if len(m.debts) >= maxDebts {
		m.purge(now)
	}
	m.debts[maphash.Comparable(m.seed, key)] = until
}

// purge makes room among the debts: it drops those that are over, but looks at
// all of them at most once a minute; else the one of a few that ends soonest.
func (m *scopes) purge(now instant) {
	if m.swept == 0 || now.mono-m.swept > int64(time.Minute) {
		m.swept = now.mono
		before := len(m.debts)
		maps.DeleteFunc(m.debts, func(_ uint64, until int64) bool { return until <= now.mono })
		if len(m.debts) < before {
			return
		}
	}
	var soonest uint64
	var at int64
	n := 0
	for h, until := range m.debts {
		if n == 0 || until < at {
			soonest, at = h, until
		}
		if n++; n == 64 {
			break
		}
	}
	delete(m.debts, soonest)
}
