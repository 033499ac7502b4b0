package main

import "github.com/heedhttp/heed"

// newCache makes the cache of a run, of at most the given number of bytes.
func newCache(int64) *heed.Cache { return new(heed.Cache) }
