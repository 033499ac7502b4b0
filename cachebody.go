package heed

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// stored is one caller's view of a stored body, whose bytes all callers share and none can change.
type stored struct {
	mu     sync.Mutex
	left   []byte
	closed atomic.Bool
}

func (s *stored) Read(p []byte) (int, error) {
	if s.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

func (s *stored) Close() error {
	s.closed.Store(true)
	return nil
}

// fill passes a body to its caller as it comes and keeps a copy, which becomes
// an entry if and when the body has come whole.
type fill struct {
	below  io.ReadCloser
	store  *Cache
	resp   *http.Response // whose trailers show at the end of the body
	entry  *entry
	since  uint64 // the store's epoch when the request was sent
	limit  int64  // bytes to keep at most
	length int64  // of the body; -1: known at its end

	mu       sync.Mutex // not held while below is read
	over     bool
	copied   []byte
	reserved int64
}

func (f *fill) Read(p []byte) (int, error) {
	n, err := f.below.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return n, err
	}
	if n < 0 || n > len(p) || n > 0 && !f.keep(p[:n]) {
		f.abandon()
		return n, err
	}
	got := int64(len(f.copied))
	switch {
	case err == io.EOF && (f.length < 0 || f.length == got), err == nil && f.length == got:
		f.commit()
	case err != nil:
		f.abandon()
	}
	return n, err
}

// Close ends the copy: what has not come whole by now is not stored.
func (f *fill) Close() error {
	f.mu.Lock()
	if !f.over {
		f.abandon()
	}
	f.mu.Unlock()
	return f.below.Close()
}

// keep copies a piece; false says that there is no room for it.
func (f *fill) keep(p []byte) bool {
	need := int64(len(f.copied) + len(p))
	if need > f.limit || f.length >= 0 && need > f.length {
		return false
	}
	if need > int64(cap(f.copied)) {
		grown := max(need, 2*int64(cap(f.copied)), 512)
		if f.length >= 0 {
			if f.copied == nil {
				grown = max(grown, min(f.length, 64<<10))
			}
			grown = min(grown, f.length)
		}
		grown = min(grown, f.limit)
		if !f.store.reserve(grown - f.reserved) {
			return false
		}
		f.reserved = grown
		f.copied = append(make([]byte, 0, grown), f.copied...)
	}
	f.copied = append(f.copied, p...)
	return true
}

// commit makes the entry. Trailers are not stored, so an answer with trailers is not.
func (f *fill) commit() {
	if len(f.resp.Trailer) > 0 {
		f.abandon()
		return
	}
	body := f.copied
	if cap(body)-len(body) > len(body)/8 {
		body = slices.Clip(slices.Clone(body))
	}
	e := *f.entry
	e.body = body
	f.store.release(f.reserved)
	f.store.put(&e, f.since)
	f.over, f.copied, f.reserved, f.entry = true, nil, 0, nil
}

// abandon gives up the copy. The caller still gets every byte.
func (f *fill) abandon() {
	f.store.release(f.reserved)
	f.over, f.copied, f.reserved, f.entry = true, nil, 0, nil
}
