package memnet

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// Addr is an address of the in-memory network, in the form host:port.
type Addr string

// Network is always "mem".
func (Addr) Network() string { return "mem" }

// String is the address in the form host:port.
func (a Addr) String() string { return string(a) }

// A Conn is one end of a connection. It behaves like a TCP connection on a
// perfect wire: what was written before a Close is still read by the peer and
// then io.EOF; writing to a peer that has closed gives EPIPE; using an end
// that was closed on this side gives net.ErrClosed; a passed deadline gives
// os.ErrDeadlineExceeded. Errors other than io.EOF come in a *net.OpError.
// Safe for concurrent use.
type Conn struct {
	in, out       *Stream
	local, remote Addr
	closed        atomic.Bool
}

var _ net.Conn = (*Conn)(nil)

// Pipe makes the two ends of a connection that holds at most buffer bytes in
// each direction; 0 or less means DefaultBuffer.
func Pipe(buffer int) (a, b *Conn) { return pipe(buffer, "192.0.2.1:1", "192.0.2.2:2") }

func pipe(buffer int, a, b Addr) (*Conn, *Conn) {
	ab, ba := NewStream(buffer), NewStream(buffer)
	return &Conn{in: ba, out: ab, local: a, remote: b}, &Conn{in: ab, out: ba, local: b, remote: a}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	return n, c.explain("read", err)
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	return n, c.explain("write", err)
}

func (c *Conn) explain(op string, err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.Is(err, io.ErrClosedPipe): // our own end of the direction
		err = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}

// Close ends both directions. Only the first call closes; later ones give
// net.ErrClosed like those of a *net.TCPConn.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return c.explain("close", net.ErrClosed)
	}
	c.out.CloseWrite(nil)
	c.in.CloseRead(syscall.EPIPE)
	return nil
}

// CloseWrite ends this side's writing; the peer reads io.EOF after what is
// left, and this side can still read.
func (c *Conn) CloseWrite() error {
	c.out.CloseWrite(nil)
	return nil
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.set(t, c.in.SetReadDeadline, c.out.SetWriteDeadline)
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.set(t, c.in.SetReadDeadline) }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.set(t, c.out.SetWriteDeadline) }

func (c *Conn) set(t time.Time, ends ...func(time.Time)) error {
	if c.closed.Load() {
		return c.explain("set", net.ErrClosed)
	}
	for _, end := range ends {
		end(t)
	}
	return nil
}
