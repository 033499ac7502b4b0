package main

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// console is what a run says while it goes: whole lines, above the progress
// bar if there is one. It uses no colour. Safe for concurrent use.
type console struct {
	mu    sync.Mutex
	w     io.Writer
	bar   *bar // nil: plain lines
	notes bool // say also what is no error, and what a bar does not show
}

// Write puts whole lines out, for loggers. It never fails: a run does not end
// because nobody listens.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar == nil || !c.bar.above(p) {
		_, _ = c.w.Write(p)
	}
	return len(p), nil
}

// say prints a line in any case.
func (c *console) say(format string, args ...any) {
	_, _ = c.Write(fmt.Appendf(nil, format+"\n", args...))
}

// note prints a line that only plain output needs: the bar shows the same.
func (c *console) note(format string, args ...any) {
	if c.notes {
		c.say(format, args...)
	}
}

// advance tells the bar how many URLs have come to an end, and how many there are.
func (c *console) advance(done int64, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		c.bar.set(done, int64(total))
	}
}

// close takes the bar away. What is said after it stands in its place.
func (c *console) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		c.bar.close()
	}
	c.bar = nil
}

// terminal says that a stream is a terminal that can move its cursor.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}
