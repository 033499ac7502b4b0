package heed

import (
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxVariants bounds the entries of one resource for one principal, which are
// looked through one by one.
const maxVariants = 64

// maxPurged bounds the invalidations that are remembered for answers under way.
const maxPurged = 4096

// shelf is the entries behind a Cache: found by resource and principal, bounded
// in bytes, the one used longest ago first to go. The Cache's lock guards it.
type shelf struct {
	recent *simplelru.LRU[entryID, *entry]
	rows   map[resourceKey]*row
	heads  map[digest]*row // the first row of each URI

	used     int64 // bytes of the entries
	reserved int64 // bytes of bodies that are still coming
	most     int64 // bound of both together

	// An answer that was under way while its resource changed must not be
	// stored. Each change has a number; an answer remembers the last before it.
	epoch  uint64
	purged *simplelru.LRU[digest, uint64] // when a URI changed last
	floor  uint64                         // anything may have changed then
}

// row is the entries of one resource for one principal. Rows of one URI are linked.
type row struct {
	key        resourceKey
	entries    []*entry // replaced, never changed, so that it can be read outside the lock
	prev, next *row
}

func newShelf(most int64) *shelf {
	recent, err := simplelru.NewLRU[entryID, *entry](1<<31-1, nil) // the bound is ours: bytes
	if err != nil {
		panic(err)
	}
	purged, err := simplelru.NewLRU[digest, uint64](maxPurged+1, nil)
	if err != nil {
		panic(err)
	}
	return &shelf{recent: recent, purged: purged, rows: make(map[resourceKey]*row), heads: make(map[digest]*row), most: most}
}

// put stores e, which was asked for at epoch since, in place of the entry with the same ID.
func (s *shelf) put(e *entry, since uint64) bool {
	if since < s.floor || e.bytes+s.reserved > s.most {
		return false
	}
	if at, ok := s.purged.Peek(e.id.key.uri); ok && at > since {
		return false
	}
	if old, ok := s.recent.Peek(e.id); ok {
		if old.received.mono > e.received.mono {
			return false // overtaken by a later answer
		}
		s.drop(old)
	}
	if !e.id.head {
		id := e.id
		id.head = true
		if old, ok := s.recent.Peek(id); ok {
			s.drop(old)
		}
	}
	if r := s.rows[e.id.key]; r != nil && len(r.entries) >= maxVariants {
		s.drop(r.entries[0])
	}
	s.used += e.bytes
	s.shrink()
	r := s.rows[e.id.key]
	if r == nil {
		r = s.open(e.id.key)
	}
	r.entries = append(slices.Clip(slices.Clone(r.entries)), e)
	s.recent.Add(e.id, e)
	return true
}

// shrink makes room until the bound holds.
func (s *shelf) shrink() {
	for s.used+s.reserved > s.most {
		_, oldest, ok := s.recent.GetOldest()
		if !ok {
			return
		}
		s.drop(oldest)
	}
}

// drop removes an entry, if it is still there.
func (s *shelf) drop(e *entry) {
	if now, ok := s.recent.Peek(e.id); !ok || now != e {
		return
	}
	s.recent.Remove(e.id)
	s.used -= e.bytes
	r := s.rows[e.id.key]
	if len(r.entries) == 1 {
		s.close(r)
		return
	}
	r.entries = slices.DeleteFunc(slices.Clone(r.entries), func(o *entry) bool { return o == e })
}

func (s *shelf) open(key resourceKey) *row {
	r := &row{key: key, next: s.heads[key.uri]}
	if r.next != nil {
		r.next.prev = r
	}
	s.heads[key.uri] = r
	s.rows[key] = r
	return r
}

func (s *shelf) close(r *row) {
	delete(s.rows, r.key)
	if r.next != nil {
		r.next.prev = r.prev
	}
	switch {
	case r.prev != nil:
		r.prev.next = r.next
	case r.next != nil:
		s.heads[r.key.uri] = r.next
	default:
		delete(s.heads, r.key.uri)
	}
}

// purge forgets a URI for everybody, and what is under way of it.
func (s *shelf) purge(uri digest) {
	s.epoch++
	s.purged.Add(uri, s.epoch)
	if s.purged.Len() > maxPurged {
		if _, at, ok := s.purged.RemoveOldest(); ok {
			s.floor = max(s.floor, at)
		}
	}
	for r := s.heads[uri]; r != nil; r = s.heads[uri] {
		for _, e := range r.entries {
			s.drop(e)
		}
	}
}

// clear forgets all, and what is under way.
func (s *shelf) clear() {
	s.epoch++
	s.floor = s.epoch
	s.recent.Purge()
	s.purged.Purge()
	clear(s.rows)
	clear(s.heads)
	s.used = 0
}
