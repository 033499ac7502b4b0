package heed

import (
	"net/http"
	"time"
)

// cacheLayer answers what it can from the Cache, and fills it. What it answers
// never comes to the layers below.
type cacheLayer struct {
	next  layer
	cache *Cache
	watch *watch
}

// Outcomes, as Info.Cache has them.
const (
	cacheHit         = "hit"
	cacheRevalidated = "revalidated"
	cacheStored      = "stored"
	cacheMiss        = "miss"
	cacheBypass      = "bypass"
)

// lookup is one call's question to the cache, and what was found for it.
type lookup struct {
	ask
	sent  *http.Request // as the caller made it
	read  *http.Request // the same with canonical field names
	key   resourceKey
	found []*entry
	entry *entry // the selected one; nil: none
	began instant
	since uint64 // the store's epoch before sending
}

func (l *cacheLayer) name() string { return "Cache" }

func (l *cacheLayer) roundTrip(c *call, req *http.Request) (*http.Response, error) {
	resp, err := l.answer(c, req)
	l.watch.cached(c, req)
	return resp, err
}

func (l *cacheLayer) answer(c *call, req *http.Request) (*http.Response, error) {
	c.info.Cache = cacheMiss
	if c.over() != nil {
		closeBody(req)
		return nil, c.cancelled(nil)
	}
	l.cache.ready()
	q := lookup{sent: req, read: req, began: l.cache.line.now()}
	if h, odd := canonicalHeader(req.Header); odd {
		q.read = req.WithContext(c)
		q.read.Header = h
	}
	q.ask = asks(q.read)
	switch {
	case q.path == pathWrite:
		return l.write(c, &q)
	case c.wishes.NoCache, q.path == pathBypass && !q.want.onlyIfCached:
		c.info.Cache = cacheBypass
		return l.next.roundTrip(c, req)
	case q.path == pathCache:
		q.key = l.cache.keys.key(q.read)
		q.found = l.cache.find(q.key)
		q.entry = l.cache.keys.choose(q.found, q.read.Header, q.head)
		if e := q.entry; e != nil {
			if age := e.age(q.began); e.policy.usable(&q.want, age) {
				return l.hit(c, &q, age), nil
			}
		}
	}
	if q.want.onlyIfCached { // RFC 9111, 5.2.1.7
		closeBody(req)
		return bodiless(req.WithContext(c), http.StatusGatewayTimeout, make(http.Header)), nil
	}
	return l.fetch(c, &q)
}

// hit answers from the entry, fresh or by permission stale.
func (l *cacheLayer) hit(c *call, q *lookup, age time.Duration) *http.Response {
	closeBody(q.sent)
	l.cache.touch(q.entry)
	c.info.Cache = cacheHit
	req := q.sent.WithContext(c)
	if q.conditional && unchanged(q.read, q.entry) {
		return q.entry.notModified(req, age)
	}
	return q.entry.response(req, age, q.head)
}

// write passes on what may change the resource, and forgets what it changed:
// the target and what the answer names as its place, for everybody (RFC 9111, 4.4).
func (l *cacheLayer) write(c *call, q *lookup) (*http.Response, error) {
	c.info.Cache = cacheBypass
	resp, err := l.next.roundTrip(c, q.sent)
	if err != nil || resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return resp, err
	}
	l.cache.purge(l.cache.keys.uri(q.read))
	for _, name := range [...]string{"Location", "Content-Location"} {
		for _, reference := range resp.Header[name] {
			if other := sameOrigin(q.read, reference); other != nil {
				l.cache.purge(l.cache.keys.uri(other))
			}
		}
	}
	return resp, nil
}
