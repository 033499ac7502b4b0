package benchmarks

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedhttp/heed"
)

// BenchmarkCall is one request through each client; the table takes the base off.
func BenchmarkCall(b *testing.B) {
	base := new(Instant)
	clients := append([]Client{{"base", func(base http.RoundTripper) http.RoundTripper { return base }}}, Clients()...)
	for _, fields := range []bool{false, true} {
		req := Request("https://api.example.com/v1/items?page=2", fields)
		for _, c := range clients {
			b.Run(fmt.Sprintf("fields=%t/%s", fields, c.Name), func(b *testing.B) {
				rt := c.Over(base)
				b.ReportAllocs()
				for b.Loop() {
					send(b, rt, req)
				}
			})
		}
	}
}

// BenchmarkContention is eight callers at once, in one scope and in eight.
func BenchmarkContention(b *testing.B) {
	const callers = 8
	for _, scopes := range []int{1, callers} {
		b.Run(fmt.Sprintf("scopes=%d", scopes), func(b *testing.B) {
			tr := &heed.Transport{Base: new(Instant)}
			reqs := make([]*http.Request, callers)
			for i := range reqs {
				reqs[i] = Request(fmt.Sprintf("https://api%d.example.com/v1/items", i%scopes), true)
				send(b, tr, reqs[i])
			}
			b.ReportAllocs()
			b.ResetTimer()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for _, req := range reqs {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						send(b, tr, req)
					}
				})
			}
			wg.Wait()
		})
	}
}

func BenchmarkParseFeedback(b *testing.B) {
	now := time.Now()
	for name, h := range map[string]http.Header{"limits=none": Plain(now), "limits=X-RateLimit": Answer(now)} {
		b.Run(name, func(b *testing.B) {
			resp := &http.Response{StatusCode: http.StatusOK, Header: h}
			b.ReportAllocs()
			for b.Loop() {
				heed.ParseFeedback(resp, now)
			}
		})
	}
}

func send(tb testing.TB, rt http.RoundTripper, req *http.Request) {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		tb.Error(err)
		return
	}
	resp.Body.Close()
}
