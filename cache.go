package heed

import (
	"sync"
	"time"
)

// defaultCacheBytes is the bound of a Cache that names none.
const defaultCacheBytes = 64 << 20

// maxEntryBytes caps one entry where MaxEntry does not say.
const maxEntryBytes = 8 << 20

// Cache is a private HTTP cache in memory (RFC 9111). The zero value works. It
// is live, safe for concurrent use, and may be shared by Transports; it must
// not be copied, and there is nothing to close.
//
// It answers GET and HEAD with what is fresh, validates what is not, keeps one
// entry for each variant, and drops what an unsafe method changed. Every
// credential that a request carries (Authorization, Cookie, API keys in fields,
// user info and query, and any field whose name suggests an identity) has
// entries of its own. A credential that is added below the Cache, by Base, it
// does not see: then share the Cache only among Transports that all add the same one.
//
// It is bounded in bytes: entries with their header and overhead, and the
// bodies that are still coming, together. The entry used longest ago goes
// first. Entries hold no cookies, no TLS state and no trailers, and what they
// are found by is kept as a keyed hash (HMAC-SHA-256).
//
// What it will not do: store an answer that is cut short, has trailers, was
// asked for in part or is not read to its end; guess a lifetime for a failure;
// serve stale without the word of the server (stale-if-error) or the caller (max-stale).
type Cache struct {
	// MaxEntry is the most bytes that one entry may take; a larger answer
	// passes through and is not stored. Zero: an eighth of the whole, at most
	// 8 MiB; negative: half of the whole, which is the most there can be. Set it
	// before first use.
	MaxEntry int64

	most int64
	once sync.Once
	keys *keyer
	line timeline

	mu    sync.Mutex
	shelf *shelf
}

// NewCache returns a Cache of at most maxBytes. Zero or negative: 64 MiB, as in the zero Cache.
func NewCache(maxBytes int64) *Cache { return &Cache{most: maxBytes} }

// Len is how many answers are stored.
func (c *Cache) Len() int {
	defer c.lock().Unlock()
	return c.shelf.recent.Len()
}

// Bytes is how many bytes are taken: by entries, and by bodies that are still coming.
func (c *Cache) Bytes() int64 {
	defer c.lock().Unlock()
	return c.shelf.used + c.shelf.reserved
}

// Clear forgets all entries. Answers that are under way are not stored either.
func (c *Cache) Clear() {
	defer c.lock().Unlock()
	c.shelf.clear()
}

// ready makes what the zero value lacks.
func (c *Cache) ready() {
	c.once.Do(func() {
		if c.most <= 0 {
			c.most = defaultCacheBytes
		}
		c.keys, c.line, c.shelf = newKeyer(), timeline{time.Now()}, newShelf(c.most)
	})
}

func (c *Cache) lock() *sync.Mutex {
	c.ready()
	c.mu.Lock()
	return &c.mu
}

// maxEntry is the bytes that one entry may take.
func (c *Cache) maxEntry() int64 {
	switch half := c.most / 2; {
	case c.MaxEntry < 0:
		return half
	case c.MaxEntry > 0:
		return min(c.MaxEntry, half)
	}
	return min(c.most/8, maxEntryBytes)
}

// find gives the entries of a resource for a principal. The slice is not to be changed.
func (c *Cache) find(key resourceKey) []*entry {
	defer c.lock().Unlock()
	if r := c.shelf.rows[key]; r != nil {
		return r.entries
	}
	return nil
}

// touch says that the entry was of use.
func (c *Cache) touch(e *entry) {
	defer c.lock().Unlock()
	c.shelf.recent.Get(e.id)
}

// epoch is the number of the last invalidation.
func (c *Cache) epoch() uint64 {
	defer c.lock().Unlock()
	return c.shelf.epoch
}

// put stores an entry that was asked for at epoch since; false says that it was not worth it any more.
func (c *Cache) put(e *entry, since uint64) bool {
	c.ready()
	if e.bytes = e.size(); e.bytes > c.maxEntry() {
		return false
	}
	defer c.lock().Unlock()
	return c.shelf.put(e, since)
}

func (c *Cache) drop(e *entry) {
	defer c.lock().Unlock()
	c.shelf.drop(e)
}

func (c *Cache) purge(uri digest) {
	defer c.lock().Unlock()
	c.shelf.purge(uri)
}

// reserve makes room for n bytes of a body that is coming. Bodies under way may
// take half of the whole, so that they do not push out all that is stored.
func (c *Cache) reserve(n int64) bool {
	defer c.lock().Unlock()
	if c.shelf.reserved+n > c.most/2 {
		return false
	}
	c.shelf.reserved += n
	c.shelf.shrink()
	return true
}

func (c *Cache) release(n int64) {
	defer c.lock().Unlock()
	c.shelf.reserved -= n
}
