// Package memnet is a network inside the process: a net.Listener and the
// DialContext that reaches it, joined by buffered pipes. Nothing in it needs
// the operating system, and everything that waits in it waits on a sync.Cond,
// so that a testing/synctest bubble sees those goroutines as durably blocked
// and lets its clock run on. Deadlines follow the clock of the bubble.
package memnet

import (
	"context"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// DefaultBacklog is how many dialled connections wait for Accept when nothing
// else is said.
const DefaultBacklog = 128

// A Listener accepts the connections that its DialContext makes, whatever
// address is dialled: it is the whole network. The zero value is ready to
// use. Its fields are not changed after first use. Safe for concurrent use.
type Listener struct {
	Buffer  int // bytes held in each direction of a connection; 0: DefaultBuffer
	Backlog int // connections that wait for Accept; a dial beyond waits. 0: DefaultBacklog

	mu     sync.Mutex
	turn   *sync.Cond
	queue  []*Conn
	dialed int
	closed bool
}

var _ net.Listener = (*Listener)(nil)

func (l *Listener) lock() {
	l.mu.Lock()
	if l.turn == nil {
		l.turn = sync.NewCond(&l.mu)
	}
}

// Accept waits for the next dialled connection. After Close it gives
// net.ErrClosed in a *net.OpError.
func (l *Listener) Accept() (net.Conn, error) {
	l.lock()
	defer l.mu.Unlock()
	for !l.closed {
		if len(l.queue) > 0 {
			c := l.queue[0]
			l.queue[0] = nil
			l.queue = l.queue[1:]
			l.turn.Broadcast()
			return c, nil
		}
		l.turn.Wait()
	}
	return nil, &net.OpError{Op: "accept", Net: "mem", Addr: l.Addr(), Err: net.ErrClosed}
}

// Close refuses new connections and closes those that wait for Accept; what
// was accepted lives on. A second Close gives net.ErrClosed.
func (l *Listener) Close() error {
	l.lock()
	defer l.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: "mem", Addr: l.Addr(), Err: net.ErrClosed}
	}
	l.closed = true
	for _, c := range l.queue {
		_ = c.Close() // the dialler reads io.EOF, as from a server that died
	}
	l.queue = nil
	l.turn.Broadcast()
	return nil
}

// Addr is an address out of the block kept for documentation (RFC 5737), so
// that nothing mistakes it for a host.
func (l *Listener) Addr() net.Addr { return Addr("192.0.2.2:80") }

// DialContext connects to the listener; it fits http.Transport.DialContext.
// The network name is ignored and the address is only kept as the name of the
// far end. It waits while the backlog is full, until ctx ends (its error) or
// the listener closes (ECONNREFUSED, as when there was never one). Every
// connection has its own client address, so that a server can tell them
// apart.
func (l *Listener) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	l.lock()
	defer l.mu.Unlock()
	backlog := l.Backlog
	if backlog <= 0 {
		backlog = DefaultBacklog
	}
	if !l.closed && len(l.queue) >= backlog {
		stop := context.AfterFunc(ctx, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.turn.Broadcast()
		})
		defer stop()
	}
	for {
		var err error
		if l.closed {
			err = syscall.ECONNREFUSED
		} else {
			err = ctx.Err()
		}
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: "mem", Addr: Addr(address), Err: err}
		}
		if len(l.queue) < backlog {
			break
		}
		l.turn.Wait()
	}
	near := Addr(net.JoinHostPort("192.0.2.1", strconv.Itoa(1024+l.dialed%(1<<16-1024))))
	l.dialed++
	client, server := pipe(l.Buffer, near, Addr(address))
	l.queue = append(l.queue, server)
	l.turn.Broadcast()
	return client, nil
}
