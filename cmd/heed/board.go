package main

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/heedhttp/heed"
)

const (
	worthSaying = time.Second      // from when on a wait is told
	sayAgain    = 10 * time.Second // how long after a line about a scope the next may come at the earliest
	mostScopes  = 1000             // that are remembered beyond those that wait
)

// board knows who waits for what, for the progress line. It is fed by the
// hooks of a heed.Observer. Safe for concurrent use.
type board struct {
	mu    sync.Mutex
	waits map[any]wait         // by call: at most as many as there are fetches at a time
	holds map[string]time.Time // by scope: until when
	spent map[string]time.Time // by scope: when a limit that is used up is whole again
	quiet map[string]time.Time // by scope: until when nothing more is said about it
}

// wait is what one call waits for.
type wait struct {
	scope  string
	reason heed.Reason
	until  time.Time
}

func newBoard() *board {
	return &board{
		waits: make(map[any]wait),
		holds: make(map[string]time.Time),
		spent: make(map[string]time.Time),
		quiet: make(map[string]time.Time),
	}
}

// begin notes that a call waits. The line is for a log, and empty when the
// wait is short or the scope was spoken of already.
func (b *board) begin(call any, w wait, now time.Time) (line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := b.holds[w.scope]; until.After(now) && w.reason == heed.ReasonQueue {
		w.reason, w.until = heed.ReasonHold, until // in the queue behind a hold
	}
	b.waits[call] = w
	return b.tell(w, now)
}

// hold notes that a whole scope must wait.
func (b *board) hold(scope string, until, now time.Time) (line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	remember(b.holds, scope, until, now)
	return b.tell(wait{scope, heed.ReasonHold, until}, now)
}

// limit notes what an answer says of a limit.
func (b *board) limit(scope string, r heed.Reading, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Has&heed.HasRemaining != 0 && r.Remaining < 1 {
		remember(b.spent, scope, r.Reset, now)
	}
}

// remember notes an instant of a scope, as long as there is room. What has
// passed makes room.
func remember(m map[string]time.Time, scope string, until, now time.Time) {
	if len(m) >= mostScopes {
		maps.DeleteFunc(m, func(_ string, end time.Time) bool { return !end.After(now) })
	}
	if _, ok := m[scope]; ok || len(m) < mostScopes {
		m[scope] = until
	}
}

// end notes that a call waits no longer.
func (b *board) end(call any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, call)
}

// tell makes the line about a wait. While a wait that was told goes on, others
// of the scope are told only if they are far longer. The lock is held.
func (b *board) tell(w wait, now time.Time) string {
	d := w.until.Sub(now)
	if d < worthSaying || d < 2*b.quiet[w.scope].Sub(now) {
		return ""
	}
	quiet := now.Add(max(d, sayAgain))
	remember(b.quiet, w.scope, quiet, now)
	if b.quiet[w.scope] != quiet {
		return "" // so many scopes wait that no more lines are of use
	}
	return w.show(now)
}

// line says for the progress bar who waits the longest at now, how long, and
// how many other scopes wait. Of each scope the call that goes next counts. It
// is empty when nobody waits for long enough to be worth a word.
func (b *board) line(now time.Time) (line string, left time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := make(map[string]wait)
	for _, w := range b.waits {
		w = b.current(w, now)
		if old, ok := next[w.scope]; !ok || w.until.Before(old.until) {
			next[w.scope] = w
		}
	}
	var worst wait
	n := 0
	for _, w := range next {
		if w.until.Sub(now) < worthSaying {
			continue
		}
		n++
		if w.until.After(worst.until) {
			worst = w
		}
	}
	if n == 0 {
		return "", 0
	}
	line, left = worst.show(now), worst.until.Sub(now)
	if n > 1 {
		line += ", " + count(int64(n-1), "host", "hosts") + " more"
	}
	return line, left
}

// current is what a call waits for by now. It is told only when it begins to
// wait; what answers said since then of its scope is newer.
func (b *board) current(w wait, now time.Time) wait {
	if until := b.holds[w.scope]; until.After(w.until) {
		return wait{w.scope, heed.ReasonHold, until}
	}
	if until := b.spent[w.scope]; until.After(w.until) && w.until.Sub(now) < worthSaying {
		return wait{w.scope, heed.ReasonLimit, until}
	}
	return w
}

func (w wait) show(now time.Time) string {
	left := max(w.until.Sub(now), 0).Round(time.Second)
	return fmt.Sprintf("%s: waiting %v (%s)", host(w.scope), left, w.reason)
}

// host is a scope without its scheme and the mark of its credential.
func host(scope string) string {
	if _, rest, ok := strings.Cut(scope, "://"); ok {
		scope = rest
	}
	scope, _, _ = strings.Cut(scope, "#")
	return printable(scope)
}
