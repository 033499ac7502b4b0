package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// result is one line of the table.
type result struct {
	client        string
	took          time.Duration
	sent, refused int64
	got, of       int
}

// tries bounds what one resource may cost a client that asks again at once, so
// that the comparison ends whatever the flags say.
const tries = 100_000

// crawl fetches all items with one kind of client from an API of its own, so
// that the second client does not find the limit spent by the first.
func crawl(ctx context.Context, p plan, c client, show progress) (result, error) {
	url, stop, err := api(p)
	if err != nil {
		return result{}, err
	}
	defer stop()
	base := &http.Transport{MaxIdleConnsPerHost: p.workers}
	defer base.CloseIdleConnections()

	count := &tally{base: base}
	caller := c.make(count)
	watching := show.follow(c.name, p.items, count)
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	items := make(chan int)
	var workers sync.WaitGroup
	for range p.workers {
		workers.Go(func() {
			for i := range items {
				if err := fetch(ctx, caller, fmt.Sprintf("%s/items/%d", url, i), c.again); err != nil {
					cancel(err)
					return
				}
				count.got.Add(1)
			}
		})
	}
feed:
	for i := range p.items {
		select {
		case items <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(items)
	workers.Wait()
	took := time.Since(began)
	watching.end()
	if err := context.Cause(ctx); err != nil {
		return result{}, err
	}
	return result{c.name, took, count.sent.Load(), count.refused.Load(), int(count.got.Load()), p.items}, nil
}

// fetch gets one resource and reads it to its end.
func fetch(ctx context.Context, client *http.Client, url string, again bool) error {
	for range tries {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		switch {
		case err != nil:
			return err
		case resp.StatusCode == http.StatusOK:
			return nil
		case resp.StatusCode != http.StatusTooManyRequests || !again:
			return fmt.Errorf("GET %s: %s", url, resp.Status)
		}
	}
	return fmt.Errorf("GET %s: refused %d times", url, tries)
}
