package heed

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Bounds of one look at a body.
const (
	peekBytes = 64 << 10
	peekTime  = time.Second
)

// readable says whether an answer has a body that may be looked at.
func readable(resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody || resp.ContentLength == 0 {
		return false
	}
	if resp.Request != nil && (resp.Request.Method == http.MethodHead || resp.Request.Method == http.MethodConnect) {
		return false
	}
	switch {
	case resp.StatusCode < 200, resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified:
		return false
	}
	_, twoWays := resp.Body.(io.Writer)
	return !twoWays
}

// wordy says whether a media type can hold words: a picture says nothing about limits.
func wordy(kind string) bool {
	kind = strings.ToLower(kind[:min(len(kind), maxName)])
	for _, prefix := range [...]string{"image/", "video/", "audio/", "font/", "multipart/", "application/octet-stream", "application/zip", "application/gzip", "application/pdf"} {
		if strings.HasPrefix(kind, prefix) {
			return false
		}
	}
	return true
}

// peek reads the beginning of resp's body and puts a body in its place that
// gives the same bytes and the same end. It gives what could be read,
// decompressed, within 64 KiB and a second, or until cancelled.
func peek(resp *http.Response, cancelled <-chan struct{}) []byte {
	b := &peeked{rest: resp.Body, done: make(chan struct{})}
	go b.read()
	timer := time.NewTimer(peekTime)
	select {
	case <-b.done:
	case <-timer.C:
	case <-cancelled:
	}
	b.mu.Lock()
	b.enough = true
	b.mu.Unlock()
	timer.Stop()
	resp.Body = b
	b.mu.Lock()
	raw := b.buf[:len(b.buf):len(b.buf)]
	b.mu.Unlock()
	return decoded(raw, resp.Header)
}

// decoded takes off a content coding that the client asked for itself, within
// the same bounds. What is cut off or broken gives what could be read.
func decoded(raw []byte, h http.Header) []byte {
	coding := h["Content-Encoding"]
	if len(coding) == 0 || len(raw) == 0 {
		return raw
	}
	var r io.Reader
	var err error
	switch strings.ToLower(trim(coding[len(coding)-1])) {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(raw))
	case "deflate":
		if r, err = zlib.NewReader(bytes.NewReader(raw)); err != nil {
			r, err = flate.NewReader(bytes.NewReader(raw)), nil
		}
	case "identity", "":
		return raw
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	plain, _ := io.ReadAll(io.LimitReader(r, peekBytes))
	return plain
}

// peeked is a body of which the beginning was read ahead. The reading ends with
// the peek, except for one Read that is under way then: the first Read by the
// caller that comes so far waits for that one.
type peeked struct {
	rest io.ReadCloser
	done chan struct{} // closed when the reading ahead has ended

	mu     sync.Mutex
	buf    []byte
	enough bool
	err    error // the end of rest, once seen
	fault  any   // what rest panicked with

	closed bool

	given  int // by the caller's Reads alone
	joined bool
}

// read reads ahead until the end, the bound, or the time is over.
func (b *peeked) read() {
	defer close(b.done)
	defer func() {
		if fault := recover(); fault != nil { // it is for the caller who reads, on the caller's own goroutine
			b.mu.Lock()
			b.fault = fault
			b.mu.Unlock()
		}
	}()
	chunk := make([]byte, 4<<10)
	for {
		n, err := b.rest.Read(chunk)
		b.mu.Lock()
		b.buf = append(b.buf, chunk[:n]...)
		b.err = err
		stop := err != nil || b.enough || len(b.buf) >= peekBytes
		b.mu.Unlock()
		if stop {
			return
		}
		if room := peekBytes - len(b.buf); room < len(chunk) {
			chunk = chunk[:room]
		}
	}
}

// Read gives what was read ahead, then the rest.
func (b *peeked) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !b.joined {
		b.mu.Lock()
		closed, n := b.closed, copy(p, b.buf[b.given:])
		b.mu.Unlock()
		if closed {
			return 0, http.ErrBodyReadAfterClose
		}
		if n == 0 {
			<-b.done
			n = copy(p, b.buf[b.given:])
			if n == 0 {
				b.joined, b.buf = true, nil
			}
		}
		if n > 0 {
			b.given += n
			return n, nil
		}
	}
	if b.fault != nil {
		panic(b.fault)
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.rest.Read(p)
}

// Close closes the body; a Read ahead that is still under way ends with it.
func (b *peeked) Close() error {
	b.mu.Lock()
	b.closed, b.enough = true, true
	b.mu.Unlock()
	return b.rest.Close()
}
