package heed

import "net/http"

// Cache is a private HTTP cache.
type Cache struct{}

type cacheLayer struct {
	next  layer
	cache *Cache
	watch *watch
}

func (l *cacheLayer) name() string { return "Cache" }

func (l *cacheLayer) roundTrip(c *call, req *http.Request) (*http.Response, error) {
	return l.next.roundTrip(c, req)
}
