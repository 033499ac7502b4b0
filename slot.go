package heed

import (
	"io"
	"net/http"
	"sync"
)

// leave gives back a concurrency slot.
func (l *throttleLayer) leave(s *scope, q *lane) {
	s.mu.Lock()
	s.occupy(l.rules, q, -1)
	s.wake()
	s.mu.Unlock()
}

// lend keeps a concurrency slot until the body ends: at its end, an error, or Close.
func (l *throttleLayer) lend(resp *http.Response, s *scope, q *lane) {
	if resp == nil || resp.Body == nil || resp.Body == http.NoBody {
		l.leave(s, q)
		return
	}
	held := slot{ReadCloser: resp.Body, leave: sync.OnceFunc(func() { l.leave(s, q) })}
	if rw, ok := resp.Body.(io.ReadWriteCloser); ok { // 101 and CONNECT
		resp.Body = &duplexSlot{held, rw}
		return
	}
	resp.Body = &held
}

type slot struct {
	io.ReadCloser
	leave func()
}

func (b *slot) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.leave()
	}
	return n, err
}

func (b *slot) Close() error {
	defer b.leave()
	return b.ReadCloser.Close()
}

type duplexSlot struct {
	slot
	io.Writer
}
