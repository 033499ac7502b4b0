package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/heedhttp/heed"
)

const (
	// stall is how long a server may send nothing at all, in an answer or before it.
	stall = 5 * time.Minute
	// A little of an unwanted body is read, so that its connection can be used again.
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
	// mostRedirects is how often one URL is followed elsewhere.
	mostRedirects = 10
)

// fetcher gets bodies through heed. Its fields are set before the first use;
// it is safe for concurrent use then.
type fetcher struct {
	client *http.Client
	base   *http.Transport
	limits limits
	tally  *tally
}

// newFetcher makes the client of a run.
func newFetcher(g *get, t *tally, b *board, con *console) *fetcher {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = g.Parallel // so that a worker finds its connection again
	base.MaxIdleConns = max(base.MaxIdleConns, g.Parallel)
	base.ResponseHeaderTimeout = stall
	transport := &heed.Transport{
		Throttle: heed.Throttle{MaxWait: g.MaxWait},
		Retry:    heed.Retry{MaxWait: g.MaxWait},
		Base:     base,
		Observer: observe(t, b, con),
	}
	if g.CacheSize > 0 {
		transport.Cache = heed.NewCache(int64(g.CacheSize))
	}
	if g.Retries != nil {
		transport.Retry.MaxAttempts = *g.Retries + 1
		if *g.Retries == 0 {
			transport.Retry.MaxAttempts = -1
		}
	}
	if g.Verbose {
		transport.Logger = slog.New(slog.NewTextHandler(con, nil))
	}
	return &fetcher{
		client: &http.Client{Transport: counting{transport, t}, CheckRedirect: redirect},
		base:   base,
		limits: limits{g.Timeout, g.MaxWait, stall},
		tally:  t,
	}
}

// redirect follows a bounded number of redirects.
func redirect(_ *http.Request, via []*http.Request) error {
	if len(via) >= mostRedirects {
		return errRedirects
	}
	return nil
}

// observe makes the hooks that count, and that keep the board. Events of one
// item are told apart by their context, which is the item's own.
func observe(t *tally, b *board, con *console) *heed.Observer {
	tell := func(line string) {
		if line != "" {
			con.note("%s", line)
		}
	}
	return &heed.Observer{
		Waiting: func(e heed.Event) {
			now := time.Now()
			tell(b.begin(itemOf(e), wait{e.Scope, e.Reason, now.Add(e.Wait)}, now))
		},
		Sent: func(e heed.Event) {
			t.requests.Add(1)
			b.end(itemOf(e))
		},
		Answered:  t.answered,
		LimitSeen: func(e heed.Event) { b.limit(e.Scope, e.Reading, time.Now()) },
		Held: func(e heed.Event) {
			now := time.Now()
			tell(b.hold(e.Scope, now.Add(e.Wait), now))
		},
		Retrying: func(e heed.Event) {
			t.retries.Add(1)
			if e.Wait > 0 {
				now := time.Now()
				tell(b.begin(itemOf(e), wait{e.Scope, heed.ReasonBackoff, now.Add(e.Wait)}, now))
			}
		},
		Cached: t.cached,
	}
}

type itemKey struct{}

func itemOf(e heed.Event) any { return e.Context.Value(itemKey{}) }

// fetch streams the body of an item to where it belongs. The error is nil when
// all of it is there; ended is why the item's own context ended.
func (f *fetcher) fetch(ctx context.Context, it *item, to io.Writer) (n int64, err, ended error) {
	ctx = context.WithValue(ctx, itemKey{}, it)
	if f.limits.timeout > 0 {
		var release context.CancelFunc
		ctx, release = context.WithTimeoutCause(ctx, f.limits.timeout, errTimeout)
		defer release()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n, err = f.get(ctx, cancel, it, to)
	if err != nil {
		ended = context.Cause(ctx)
	}
	return n, err, ended
}

func (f *fetcher) get(ctx context.Context, cancel context.CancelCauseFunc, it *item, to io.Writer) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, it.url.String(), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", userAgent())
	resp, err := f.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		drain(resp.Body)
		return 0, &statusError{resp.StatusCode, heed.InfoOf(resp)}
	}
	body := &watched{r: resp.Body, idle: f.limits.stall, timer: time.AfterFunc(f.limits.stall, func() { cancel(errStalled) })}
	defer body.timer.Stop()
	n, err := io.Copy(onlyWriter{to}, body)
	if body.err != nil {
		return n, &truncated{n, body.err}
	}
	return n, err
}

// onlyWriter hides all that io.Copy might do otherwise.
type onlyWriter struct{ io.Writer }

// watched is a body that must not stand still. It keeps the error of reading
// apart from that of writing.
type watched struct {
	r     io.Reader
	idle  time.Duration
	timer *time.Timer
	err   error
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.idle)
	n, err := w.r.Read(p)
	w.timer.Stop() // a slow reader of the output is not the server's fault
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// drain reads what is left of a small body, for a moment.
func drain(body io.ReadCloser) {
	timer := time.AfterFunc(drainTime, func() { body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, drainBytes) // only the connection is at stake
}
