//go:build !race

package heed

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A hit must cost little, and the same for a body of any size.
func TestCacheHitAllocatesLittleWhateverTheSize(t *testing.T) {
	for _, vary := range []string{"", "Accept, Accept-Language"} {
		var counts []float64
		for _, size := range []int{0, 2 << 10, 64 << 10, 1 << 20} {
			r := newCacheRig(t, always(200, strings.Repeat("x", size), "Cache-Control: max-age=600", "Vary: "+vary, `ETag: "a"`,
				"Content-Type: application/json", "Server: x", "X-Request-Id: y"))
			r.layer.watch = &watch{observer: new(Observer)}
			req := r.request("GET", cacheURL, "Authorization: Bearer abc", "Accept: application/json", "Accept-Language: en", "User-Agent: me")
			if got := r.do(req); got.outcome != "stored" {
				t.Fatal(got.outcome)
			}
			var outcome string
			counts = append(counts, testing.AllocsPerRun(200, func() {
				c := begin(req, 1)
				resp, err := r.layer.roundTrip(c, req)
				if err != nil {
					t.Fatal(err)
				}
				outcome = c.info.Cache
				resp.Body.Close()
			}))
			if outcome != "hit" {
				t.Fatal(outcome)
			}
		}
		t.Logf("Vary %q: %v allocations", vary, counts)
		for _, n := range counts {
			if n > 15 || n > counts[1] {
				t.Errorf("Vary %q: %v allocations", vary, counts)
			}
		}
	}
}

func TestCacheParsersAllocateNothingForWhatIsCommon(t *testing.T) {
	lines := []string{"public, max-age=3600, must-revalidate"}
	k := newKeyer()
	req, _ := http.NewRequest("GET", cacheURL, nil)
	req.Header.Set("Authorization", "Bearer abc")
	for name, f := range map[string]func(){
		"Cache-Control": func() { parseDirectives(lines) },
		"the key":       func() { k.key(req) },
	} {
		if n := testing.AllocsPerRun(200, f); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCacheHit(b *testing.B) {
	for _, size := range []int{2 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := newCacheRig(b, always(200, strings.Repeat("x", size), "Cache-Control: max-age=600", `ETag: "a"`, "Content-Type: application/json", "Vary: Accept-Encoding"))
			r.layer.watch = &watch{observer: new(Observer)}
			req := r.request("GET", cacheURL, "Authorization: Bearer abc", "Accept: application/json")
			r.do(req)
			b.ReportAllocs()
			buf := make([]byte, 32<<10)
			for b.Loop() {
				resp, err := r.layer.roundTrip(begin(req, 1), req)
				if err != nil {
					b.Fatal(err)
				}
				for {
					if _, err := resp.Body.Read(buf); err != nil {
						break
					}
				}
				resp.Body.Close()
			}
		})
	}
}
