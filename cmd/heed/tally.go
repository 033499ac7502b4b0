package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedhttp/heed"
)

// tally counts what happened in a run. Safe for concurrent use.
type tally struct {
	ok, failed atomic.Int64 // URLs
	bytes      atomic.Int64 // of the bodies of those that are ok
	requests   atomic.Int64 // sends, retries and redirects included
	retries    atomic.Int64
	refusals   atomic.Int64 // answers of a limit
	hits       atomic.Int64 // answered from the cache, revalidated ones included

	mu    sync.Mutex
	waits map[heed.Reason]time.Duration
}

// done is the number of URLs that have come to an end.
func (t *tally) done() int64 { return t.ok.Load() + t.failed.Load() }

// waited adds what one call waited.
func (t *tally) waited(info heed.Info) {
	if len(info.Waits) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits == nil {
		t.waits = make(map[heed.Reason]time.Duration)
	}
	for _, w := range info.Waits {
		t.waits[w.Reason] += w.For
	}
}

// answered counts one answer of a server.
func (t *tally) answered(e heed.Event) {
	if e.Limited || e.Status == http.StatusTooManyRequests {
		t.refusals.Add(1)
	}
}

// cached counts one outcome of the cache.
func (t *tally) cached(e heed.Event) {
	if e.Cache == "hit" || e.Cache == "revalidated" {
		t.hits.Add(1)
	}
}

// summary writes what the run came to, for people.
func (t *tally) summary(w io.Writer, took time.Duration, caching bool) {
	fmt.Fprintf(w, "%s: %d ok, %d failed; %s in %s\n", count(t.done(), "URL", "URLs"),
		t.ok.Load(), t.failed.Load(), showBytes(t.bytes.Load()), showSpan(took))
	fmt.Fprintf(w, "%s, %s, %s (429)", count(t.requests.Load(), "request", "requests"),
		count(t.retries.Load(), "retry", "retries"), count(t.refusals.Load(), "refusal", "refusals"))
	if caching {
		fmt.Fprintf(w, ", %s", count(t.hits.Load(), "cache hit", "cache hits"))
	}
	fmt.Fprintf(w, "\n%s\n", t.showWaits())
}

// showWaits sums up the waits, longest first.
func (t *tally) showWaits() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	type sum struct {
		reason heed.Reason
		d      time.Duration
	}
	var sums []sum
	var all time.Duration
	for reason, d := range t.waits {
		if d >= time.Millisecond {
			sums = append(sums, sum{reason, d})
			all += d
		}
	}
	if len(sums) == 0 {
		return "no waits"
	}
	slices.SortFunc(sums, func(a, b sum) int { return cmp.Or(cmp.Compare(b.d, a.d), cmp.Compare(a.reason, b.reason)) })
	parts := make([]string, len(sums))
	for i, s := range sums {
		parts[i] = fmt.Sprintf("%s %s", s.reason, showSpan(s.d))
	}
	return fmt.Sprintf("waited %s over all URLs: %s", showSpan(all), strings.Join(parts, ", "))
}

// counting adds the waits of every call that passes it to a tally: also of
// those that http.Client makes itself to follow a redirect, and whose answers
// its caller never sees.
type counting struct {
	next  http.RoundTripper
	tally *tally
}

// RoundTrip implements http.RoundTripper.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		c.tally.waited(heed.InfoOfError(err))
		return nil, err
	}
	c.tally.waited(heed.InfoOf(resp))
	return resp, nil
}
