package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// mostParallel bounds the fetches at a time: beyond it, other things break first.
const mostParallel = 1000

// get is the command that fetches URLs.
type get struct {
	URLs      []string      `arg:"" optional:"" name:"url" help:"What to fetch; - reads a list from standard input, as does no URL at all."`
	Parallel  int           `short:"n" default:"8" placeholder:"N" help:"Fetch N URLs at a time (default: 8)."`
	Output    string        `short:"o" placeholder:"DIR" help:"Save each body in a file in DIR, in place of printing it."`
	Timeout   time.Duration `placeholder:"TIME" help:"Give up a URL after TIME, waits included (default: never)."`
	MaxWait   time.Duration `default:"65m" placeholder:"TIME" help:"Wait at most TIME in all for the limits on one URL; one that must wait longer fails at once (default: 65m)."`
	Retries   *int          `placeholder:"N" help:"Send a failed request again at most N times (default: 6, not counting refusals by a limit)."`
	CacheSize byteSize      `placeholder:"SIZE" help:"Keep answers of up to SIZE in memory, as 64MB, and answer from them what HTTP caching allows (default: no cache)."`
	Quiet     bool          `short:"q" help:"Say nothing but errors."`
	Verbose   bool          `short:"v" help:"Log waits, holds and retries."`
}

// Help is the long text of heed get --help.
func (*get) Help() string {
	return `Bodies are printed whole and in the order of the URLs, however they arrive; or saved with -o, in files named after host and path.
A file appears when it is complete and then replaces the file of that name; a URL that fails leaves the old one alone.

A list has one URL a line; blank lines and lines that begin with # are skipped.

A status of 400 or more is a failure. One URL that fails does not stop the others. Redirects are followed.

Exit status:

  0    all URLs were fetched
  1    some URLs failed; each has a line that says why
  2    the command line is wrong, or there is no URL
  3    the output could not be written
  130  interrupted; what was fetched until then is kept`
}

// mistake says what is wrong with the flags, empty when nothing is.
func (g *get) mistake() string {
	switch {
	case g.Parallel < 1 || g.Parallel > mostParallel:
		return fmt.Sprintf("--parallel %d is not between 1 and %d", g.Parallel, mostParallel)
	case g.Timeout < 0:
		return fmt.Sprintf("--timeout %v is negative; give a time such as 30s, or leave it out", g.Timeout)
	case g.MaxWait <= 0:
		return fmt.Sprintf("--max-wait %v is no time to wait; give one such as 30s", g.MaxWait)
	case g.Retries != nil && (*g.Retries < 0 || *g.Retries > 1000):
		return fmt.Sprintf("--retries %d is not between 0 and 1000", *g.Retries)
	case g.Quiet && g.Verbose:
		return "-q and -v do not go together"
	}
	dashes := 0
	for _, arg := range g.URLs {
		if arg == "-" {
			dashes++
		}
	}
	if dashes > 1 {
		return "standard input (-) can be read only once"
	}
	return ""
}

func (g *get) run(ctx context.Context, s streams) int {
	if wrong := g.mistake(); wrong != "" {
		return usage(s.err, "heed get", wrong)
	}
	args := g.URLs
	if len(args) == 0 {
		if terminal(s.in) {
			return usage(s.err, "heed get", "no URL; give some as arguments, or a list on standard input")
		}
		args = []string{"-"}
	}
	var out sink = newPrinter(s.out)
	if g.Output != "" {
		folder, err := openFolder(g.Output)
		if err != nil {
			fmt.Fprintf(s.err, "heed: %v\n", err)
			return exitOutput
		}
		out = folder
	}
	defer out.close()
	r := newRound(g, out, s)
	defer r.fetcher.base.CloseIdleConnections()
	return r.run(ctx, args, s.in)
}

// round is one run of get.
type round struct {
	*get
	out     sink
	list    *list
	tally   *tally
	board   *board
	console *console
	fetcher *fetcher
	stderr  io.Writer

	stop    context.CancelFunc // everything
	once    sync.Once          // says why the output was given up
	spoiled atomic.Bool        // something could not be written
}

func newRound(g *get, out sink, s streams) *round {
	r := &round{get: g, out: out, list: newList(), tally: new(tally), board: newBoard(), stderr: s.err}
	r.console = &console{w: s.err, notes: !g.Quiet}
	printing := g.Output == "" && terminal(s.out) // then a bar and the bodies would overwrite each other
	if terminal(s.err) && !printing && !g.Quiet {
		r.console.notes = false
		r.console.bar = newBar(s.err, func() (string, time.Duration) { return r.board.line(time.Now()) })
	}
	r.fetcher = newFetcher(g, r.tally, r.board, r.console)
	return r
}

func (r *round) run(parent context.Context, args []string, stdin io.Reader) int {
	began := time.Now()
	ctx, stop := context.WithCancel(parent)
	defer stop()
	r.stop = stop
	var named names
	// Not waited for: a read from a terminal or a pipe cannot be cut short.
	go r.list.feed(args, stdin, func(it *item) {
		if r.Output != "" && it.url != nil {
			it.name = named.assign(it.url)
		}
		r.console.advance(r.tally.done(), it.index+1)
	})
	var workers sync.WaitGroup
	for range r.Parallel {
		workers.Go(func() {
			for {
				r.out.room(ctx.Done())
				it := r.list.next(ctx)
				if it == nil {
					return
				}
				r.deliver(ctx, it)
				r.board.end(it)
				r.console.advance(r.tally.done(), r.list.size())
			}
		})
	}
	workers.Wait()
	r.console.close()
	return r.close(parent, time.Since(began))
}

// deliver fetches one item and counts how it ended; one that was stopped from
// outside is not counted.
func (r *round) deliver(ctx context.Context, it *item) {
	to, err := r.out.begin(it)
	if err != nil {
		r.fail(ctx, it, err, nil)
		return
	}
	if it.wrong != nil {
		r.fail(ctx, it, it.wrong, nil)
		r.drop(to)
		return
	}
	n, err, ended := r.fetcher.fetch(ctx, it, to)
	if err != nil {
		r.fail(ctx, it, err, ended)
		r.drop(to)
		return
	}
	if err := to.end(true); err != nil {
		r.fail(ctx, it, err, nil)
		return
	}
	r.tally.ok.Add(1)
	r.tally.bytes.Add(n)
	if it.name != "" {
		r.console.note("ok %s -> %s (%s)", it.label, it.name, showBytes(n))
	} else {
		r.console.note("ok %s (%s)", it.label, showBytes(n))
	}
}

// drop ends a delivery that failed. Bodies that waited behind it may be printed by that, and fail to be.
func (r *round) drop(to delivery) {
	if err := to.end(false); err != nil {
		r.breakOff(err)
	}
}

// fail says why an item failed.
func (r *round) fail(ctx context.Context, it *item, err, ended error) {
	var output *outputError
	if errors.As(err, &output) {
		r.spoiled.Store(true)
		if !output.alone {
			r.tally.failed.Add(1)
			r.breakOff(err)
			return
		}
	} else if ctx.Err() != nil && !errors.Is(ended, errTimeout) && !errors.Is(ended, errStalled) {
		return
	}
	r.tally.failed.Add(1)
	why := err.Error() // of an item that is no URL: our own words
	if it.wrong == nil {
		why = explain(err, ended, r.fetcher.limits)
	}
	r.console.say("heed: %s: %s", it.label, why)
}

// breakOff ends the run: nothing more can be written.
func (r *round) breakOff(err error) {
	r.spoiled.Store(true)
	r.once.Do(func() { r.console.say("heed: %v", err) })
	r.stop()
}

// close says what the run came to, and gives the exit status.
func (r *round) close(parent context.Context, took time.Duration) int {
	ended, listErr := r.list.end()
	done, total := r.tally.done(), int64(r.list.size())
	interrupted := parent.Err() != nil && (done < total || !ended)
	switch {
	case interrupted && ended:
		r.console.say("heed: interrupted: %d of %s done; what was fetched is kept", done, count(total, "URL", "URLs"))
	case interrupted:
		r.console.say("heed: interrupted: %s done and the list not read to its end; what was fetched is kept", count(done, "URL", "URLs"))
	case listErr != nil:
		r.console.say("heed: %v", listErr)
	case total == 0:
		return usage(r.stderr, "heed get", "standard input has no URL; give one a line, or give URLs as arguments")
	}
	if !r.Quiet {
		r.tally.summary(r.stderr, took, r.CacheSize > 0)
	}
	switch {
	case interrupted:
		return exitInterrupted
	case r.spoiled.Load():
		return exitOutput
	case r.tally.failed.Load() > 0 || listErr != nil:
		return exitFailed
	}
	return exitOK
}
