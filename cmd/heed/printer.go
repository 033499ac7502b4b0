package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// mostSpooled is how many bytes of bodies may wait on disk for their turn
// before nothing new is fetched.
const mostSpooled = 1 << 30

// printer is a sink that prints bodies one after the other, in the order of
// the list. The body whose turn it is goes straight through; those that come
// before their turn wait in temporary files, so that memory is bounded
// whatever the bodies' size.
//
// The turn is a baton: whoever has it writes without a lock, and passes it on
// by ending. Since items begin in order, it is always with one that has begun
// or with the next to begin.
type printer struct {
	out  io.Writer
	temp string // where to make the directory; empty: as the system says

	mu      sync.Mutex
	turn    int               // index of the item that may print
	parts   map[int]*printing // ended before their turn
	spooled int64             // bytes on disk
	drained chan struct{}     // closed, and made anew, when bytes leave the disk
	dir     string            // of the temporary files; empty: not needed yet
	broken  error             // out is no good any more
}

// newPrinter makes a printer to out.
func newPrinter(out io.Writer) *printer {
	return &printer{out: out, parts: make(map[int]*printing), drained: make(chan struct{})}
}

func (p *printer) begin(it *item) (delivery, error) {
	return &printing{printer: p, index: it.index}, nil
}

// room holds back whoever would begin another item while too much waits on disk.
func (p *printer) room(done <-chan struct{}) {
	for {
		p.mu.Lock()
		full, drained := p.spooled > mostSpooled, p.drained
		p.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-drained:
		case <-done:
			return
		}
	}
}

func (p *printer) close() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir) // what cannot be removed is the system's to clean
	}
}

// write prints for the holder of the turn.
func (p *printer) write(b []byte) (int, error) {
	n, err := p.out.Write(b)
	if err != nil {
		return n, p.fail(err)
	}
	return n, nil
}

func (p *printer) fail(err error) error {
	wrong := &outputError{what: "cannot write to standard output", err: err, hint: "save to a directory with -o DIR, or see who reads the output"}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		p.broken = wrong
	}
	return p.broken
}

// pass gives the turn to the next item, and prints for those that have ended already.
func (p *printer) pass() error {
	var failed error
	for {
		p.mu.Lock()
		p.turn++
		next := p.parts[p.turn]
		delete(p.parts, p.turn)
		p.mu.Unlock()
		if next == nil {
			return failed
		}
		failed = cmp.Or(failed, next.flush())
	}
}

// printing is one body on its way to the output.
type printing struct {
	printer *printer
	index   int
	path    string   // of what waits on disk; empty: nothing does
	file    *os.File // the same, while it is being written
	size    int64
}

// mine says whether it is this body's turn.
func (b *printing) mine() bool {
	b.printer.mu.Lock()
	defer b.printer.mu.Unlock()
	return b.printer.turn == b.index
}

// Write prints, or puts aside for later.
func (b *printing) Write(data []byte) (int, error) {
	if b.mine() {
		if err := b.flush(); err != nil {
			return 0, err
		}
		return b.printer.write(data)
	}
	n, err := b.spool(data)
	if err != nil {
		return n, b.unspooled(err)
	}
	return n, nil
}

func (b *printing) unspooled(err error) error {
	return &outputError{
		what: "cannot keep a body until its turn to be printed", err: err,
		hint: "make room in " + strconv.Quote(printable(os.TempDir())) + " or set TMPDIR, or save to a directory with -o DIR",
	}
}

func (b *printing) spool(data []byte) (n int, err error) {
	p := b.printer
	if b.file == nil {
		p.mu.Lock()
		if p.dir == "" {
			p.dir, err = os.MkdirTemp(p.temp, "heed-")
		}
		dir := p.dir
		p.mu.Unlock()
		if err != nil {
			return 0, err
		}
		path := filepath.Join(dir, strconv.Itoa(b.index))
		if b.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return 0, err
		}
		b.path = path
	}
	n, err = b.file.Write(data)
	b.size += int64(n)
	p.mu.Lock()
	p.spooled += int64(n)
	p.mu.Unlock()
	return n, err
}

// flush prints what waits on disk, if anything does. It needs the turn.
func (b *printing) flush() error {
	if b.path == "" {
		return nil
	}
	defer b.drop()
	p := b.printer
	p.mu.Lock()
	broken := p.broken
	p.mu.Unlock()
	if broken != nil {
		return broken
	}
	file, err := os.Open(b.path)
	if err != nil {
		return p.fail(err)
	}
	defer file.Close()
	if _, err = io.Copy(p.out, file); err != nil {
		return p.fail(err)
	}
	return nil
}

// drop removes what waits on disk.
func (b *printing) drop() {
	if b.file != nil {
		b.file.Close()
	}
	if b.path == "" {
		return
	}
	_ = os.Remove(b.path)
	p := b.printer
	p.mu.Lock()
	p.spooled -= b.size
	close(p.drained)
	p.drained = make(chan struct{})
	p.mu.Unlock()
	b.path, b.file, b.size = "", nil, 0
}

// end keeps the body for its turn, or prints what is left of it and passes the
// turn on. A body that is not kept is printed no further than it was.
func (b *printing) end(keep bool) error {
	var lost error
	if keep && b.file != nil { // from here on it is open only while it is printed, however many bodies wait
		if err := b.file.Close(); err != nil {
			keep, lost = false, b.unspooled(err)
		}
		b.file = nil
	}
	if !keep {
		b.drop()
	}
	p := b.printer
	p.mu.Lock()
	if p.turn != b.index {
		p.parts[b.index] = b
		p.mu.Unlock()
		return lost
	}
	p.mu.Unlock()
	printed := b.flush()
	return cmp.Or(lost, printed, p.pass())
}
