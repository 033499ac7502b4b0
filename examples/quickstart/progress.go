package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// progress shows how a crawl comes along: one line that is written over on a
// terminal, a line every two seconds elsewhere.
type progress struct {
	w    io.Writer
	live bool
}

// live says that a line on f can be written over.
func live(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// watching is the progress of one crawl, until end.
type watching struct {
	quit, done chan struct{}
}

// follow begins to show a crawl.
func (p progress) follow(name string, items int, count *tally) watching {
	w := watching{make(chan struct{}), make(chan struct{})}
	began := time.Now()
	line := func() string { return status(name, items, count, time.Since(began)) }
	go func() {
		defer close(w.done)
		every := 2 * time.Second
		if p.live {
			every = 100 * time.Millisecond
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.print(line())
			case <-w.quit:
				if p.live {
					fmt.Fprint(p.w, "\r\x1b[K") // the table says it all
				} else {
					p.print(line())
				}
				return
			}
		}
	}()
	return w
}

// end shows the last of it, and returns when nothing more is written.
func (w watching) end() {
	close(w.quit)
	<-w.done
}

func (p progress) print(line string) {
	if p.live {
		fmt.Fprintf(p.w, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

// status is one line of progress, under 80 columns.
func status(name string, items int, count *tally, took time.Duration) string {
	const width = 20
	got := int(count.got.Load())
	full := width * got / items
	return fmt.Sprintf("%-13s [%s%s] %d/%d  %s sent  %s refused  %.0f s", name,
		strings.Repeat("#", full), strings.Repeat(".", width-full), got, items,
		grouped(count.sent.Load()), grouped(count.refused.Load()), took.Seconds())
}
