package benchmarks

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/heedhttp/heed"
)

// refuse is a base that holds its scope for a minute.
type refuse struct{}

func (refuse) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"60"}}, Body: http.NoBody, Request: req,
	}, nil
}

// waiting gives the bytes that each of n waiters holds, its goroutine's stack included.
func waiting(tb testing.TB, n int) (each float64) {
	tr := &heed.Transport{Base: refuse{}, Retry: heed.Retry{MaxAttempts: -1}}
	send(tb, tr, Request("http://api.example.com/", true))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := inUse()
	var wg sync.WaitGroup
	for range n {
		req := Request("http://api.example.com/", true).WithContext(ctx)
		wg.Go(func() {
			if resp, err := tr.RoundTrip(req); err == nil {
				tb.Errorf("answered %d instead of waiting", resp.StatusCode)
			}
		})
	}
	synctest.Wait()
	each = float64(inUse()-before) / float64(n)
	cancel()
	wg.Wait()
	return each
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestWaitersInABubble reports what a waiter holds: in virtual time, so that nothing ends while it is counted.
func TestWaitersInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		each := waiting(t, 10_000)
		if each < 1024 {
			t.Errorf("%.0f bytes for each waiter are too few to be true", each)
		}
		t.Logf("%.0f bytes for each of 10,000 waiters", each)
	})
}
