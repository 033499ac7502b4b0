package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// longestLine is how long a line of a list may be, in bytes.
const longestLine = 64 << 10

// list is the URLs that are still to be fetched. One goroutine feeds it and
// any number take from it, so that fetching begins before the list has been
// read to its end.
type list struct {
	mu    sync.Mutex
	more  sync.Cond // something was added, or nothing will be
	items []*item   // not yet taken
	total int       // ever added
	ended bool
	err   error // why it ended before its end
}

func newList() *list {
	l := new(list)
	l.more.L = &l.mu
	return l
}

// feed adds every URL of args, and at each "-" those of stdin: one a line,
// without blank lines and lines that begin with #. prepare sees each item
// first, in the order of the list.
func (l *list) feed(args []string, stdin io.Reader, prepare func(*item)) {
	add := func(raw string) {
		it := newItem(l.size(), raw)
		prepare(it)
		l.mu.Lock()
		l.items = append(l.items, it)
		l.total++
		l.more.Signal()
		l.mu.Unlock()
	}
	var err error
	for _, arg := range args {
		if arg != "-" {
			add(arg)
			continue
		}
		if err = eachLine(stdin, add); err != nil {
			err = fmt.Errorf("cannot read standard input: %s; what was read of it is fetched", showError(err))
			break
		}
	}
	l.mu.Lock()
	l.ended, l.err = true, err
	l.more.Broadcast()
	l.mu.Unlock()
}

// next takes the first item; nil when there will be none, or ctx has ended.
func (l *list) next(ctx context.Context) *item {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.more.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.items) == 0 && !l.ended && ctx.Err() == nil {
		l.more.Wait()
	}
	if len(l.items) == 0 || ctx.Err() != nil {
		return nil
	}
	it := l.items[0]
	l.items[0] = nil // it may be collected before the array is
	l.items = l.items[1:]
	return it
}

// size is how many items there have been so far.
func (l *list) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// end says how the reading ended, and whether it has.
func (l *list) end() (ended bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended, l.err
}

// eachLine calls add with every line that says something. A line that is too
// long is given cut: no URL is as long.
func eachLine(r io.Reader, add func(string)) error {
	lines := bufio.NewReaderSize(r, longestLine)
	for first := true; ; first = false {
		line, err := lines.ReadSlice('\n')
		text := string(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			text = "(a line of more than 64 KiB)"
			_, err = lines.ReadSlice('\n')
		}
		if first {
			text = strings.TrimPrefix(text, "\ufeff") // the mark that some editors put first
		}
		if text = strings.TrimSpace(text); text != "" && text[0] != '#' {
			add(text)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
