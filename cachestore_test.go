package heed

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// check holds a shelf's accounts against what is on it.
func (s *shelf) check(tb testing.TB) {
	tb.Helper()
	var used int64
	rows, entries := 0, 0
	for uri, head := range s.heads {
		var prev *row
		for r := head; r != nil; r = r.next {
			if r.prev != prev || r.key.uri != uri || s.rows[r.key] != r || len(r.entries) == 0 || len(r.entries) > maxVariants {
				tb.Fatalf("a row is out of place: %+v", r)
			}
			for _, e := range r.entries {
				if on, ok := s.recent.Peek(e.id); !ok || on != e || e.id.key != r.key {
					tb.Fatalf("an entry is not among the recent ones: %+v", e.id)
				}
				used += e.size()
				entries++
			}
			prev = r
			rows++
		}
	}
	if used != s.used || rows != len(s.rows) || entries != s.recent.Len() {
		tb.Fatalf("%d bytes in %d entries of %d rows; the books say %d, %d, %d", used, entries, rows, s.used, s.recent.Len(), len(s.rows))
	}
	if s.used+s.reserved > s.most || s.reserved < 0 {
		tb.Fatalf("%d + %d bytes, at most %d are allowed", s.used, s.reserved, s.most)
	}
}

func TestCacheStaysWithinItsBytes(t *testing.T) {
	const most = 200_000
	rnd := rand.New(rand.NewPCG(7, 8))
	r := newCacheRig(t, func(req *http.Request) (*http.Response, error) {
		fields := []string{"Cache-Control: max-age=600", "Vary: X-A", "X-Fill: " + strings.Repeat("h", rnd.IntN(500))}
		resp := cacheReply(200, strings.Repeat("b", rnd.IntN(40_000)), fields...)
		if rnd.IntN(2) == 0 {
			resp.ContentLength = -1
		}
		return resp, nil
	})
	r.layer.cache = NewCache(most)
	c := r.layer.cache
	var open []*http.Response
	for i := range 3000 {
		req := r.request("GET", fmt.Sprintf("http://h.test/%d", rnd.IntN(500)), fmt.Sprint("X-A: ", rnd.IntN(3)), fmt.Sprint("Authorization: ", rnd.IntN(2)))
		if rnd.IntN(20) == 0 {
			req.Method = "DELETE"
		}
		resp, err := r.layer.roundTrip(begin(req, 1), req)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp) // several bodies come at once, piece by piece
		for range 3 {
			b := open[rnd.IntN(len(open))].Body
			_, _ = io.CopyN(io.Discard, b, int64(rnd.IntN(20_000)))
		}
		if len(open) > 8 {
			j := rnd.IntN(len(open))
			open[j].Body.Close()
			open[j] = open[len(open)-1]
			open = open[:len(open)-1]
		}
		c.mu.Lock()
		c.shelf.check(t)
		c.mu.Unlock()
		if got := c.Bytes(); got > most {
			t.Fatalf("after %d requests %d bytes", i, got)
		}
	}
	for _, resp := range open {
		resp.Body.Close()
	}
	if c.Bytes() < most/2 || c.Len() < 5 || c.shelf.reserved != 0 {
		t.Errorf("%d bytes in %d entries, %d reserved: hardly used", c.Bytes(), c.Len(), c.shelf.reserved)
	}
	c.Clear()
	c.shelf.check(t)
	if c.Bytes() != 0 || len(c.shelf.rows)+len(c.shelf.heads) != 0 {
		t.Error("something is left after Clear")
	}
}

// What is accounted is what is taken, about: small entries are mostly overhead.
func TestCacheCountsAboutWhatTheHeapHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the heap")
	}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for name, size := range map[string]int{"tiny": 10, "page": 4000} {
		r := newCacheRig(t, nil)
		r.layer.watch = &watch{observer: new(Observer)}
		body := bytes.Repeat([]byte("x"), size)
		r.origin = func(*http.Request) (*http.Response, error) {
			r.sent = nil
			return cacheReply(200, string(body), "Cache-Control: max-age=600", `ETag: "aaaaaaaaaaaa"`, "Content-Type: text/plain", "Server: x", "Vary: Accept"), nil
		}
		r.layer.cache = NewCache(1 << 40)
		before := heap()
		for i := range 5000 {
			r.get(fmt.Sprintf("http://h.test/%d", i))
		}
		after := heap()
		took, said := int64(after)-int64(before), r.layer.cache.Bytes()
		if r.layer.cache.Len() != 5000 {
			t.Fatalf("%d entries", r.layer.cache.Len())
		}
		t.Logf("%s: %d bytes an entry on the heap, %d accounted", name, took/5000, said/5000)
		if took > said*5/4 || took < said/3 {
			t.Errorf("%s: %d bytes on the heap, %d accounted", name, took, said)
		}
		runtime.KeepAlive(r)
	}
}

func TestCacheEvictsWhatWasUsedLongestAgo(t *testing.T) {
	r := newCacheRig(t, always(200, strings.Repeat("x", 1000), "Cache-Control: max-age=600"))
	r.layer.cache = NewCache(30_000)
	url := func(i int) string { return fmt.Sprintf("http://h.test/%d", i) }
	r.get(url(0))
	for i := 1; i < 100; i++ {
		r.get(url(i))
		if got := r.get(url(0)); got.outcome != "hit" {
			t.Fatalf("what is used all the time was evicted after %d", i)
		}
	}
	if r.get(url(1)).outcome == "hit" || r.get(url(99)).outcome != "hit" {
		t.Error("not the oldest went")
	}
}

func TestCacheBounds(t *testing.T) {
	for _, tt := range []struct{ most, entry, whole, wantEntry int64 }{
		{0, 0, 64 << 20, 8 << 20},
		{-5, 0, 64 << 20, 8 << 20},
		{1 << 20, 0, 1 << 20, 128 << 10},
		{1 << 40, 0, 1 << 40, 8 << 20},
		{1 << 20, 1000, 1 << 20, 1000},
		{1 << 20, 1 << 30, 1 << 20, 512 << 10},
		{1 << 20, -1, 1 << 20, 512 << 10},
		{1, 0, 1, 0},
	} {
		c := NewCache(tt.most)
		c.MaxEntry = tt.entry
		c.ready()
		if c.most != tt.whole || c.maxEntry() != tt.wantEntry {
			t.Errorf("NewCache(%d), MaxEntry %d: %d in all, %d an entry", tt.most, tt.entry, c.most, c.maxEntry())
		}
	}
	r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=60"))
	r.layer.cache = NewCache(1)
	r.want(r.get(cacheURL), "miss", "v", 1)
}

func TestCacheBodiesThatAreComingTakeAtMostHalf(t *testing.T) {
	c := NewCache(100_000)
	c.put(bare(1, 1, 10_000), 0)
	if !c.reserve(30_000) || !c.reserve(20_000) || c.reserve(1) {
		t.Errorf("%d bytes are reserved of 100000", c.shelf.reserved)
	}
	if c.Len() != 1 || c.Bytes() < 60_000 {
		t.Errorf("%d entries, %d bytes", c.Len(), c.Bytes())
	}
	if c.release(30_000); !c.reserve(1) {
		t.Error("what was given back cannot be had again")
	}
}

// bare is an entry for tests of the shelf alone.
func bare(uri byte, received int64, size int) *entry {
	e := &entry{id: entryID{key: resourceKey{uri: digest{uri}}}, received: instant{mono: received}, body: make([]byte, size)}
	e.bytes = e.size()
	return e
}

func TestCacheShelfRemembersWhatChangedWhileAnswersWereUnderWay(t *testing.T) {
	s := newShelf(1 << 20)
	before := s.epoch
	s.purge(digest{1})
	if s.put(bare(1, 1, 1), before) {
		t.Error("an answer from before the change was stored")
	}
	if !s.put(bare(2, 1, 1), before) || !s.put(bare(1, 1, 1), s.epoch) {
		t.Error("an answer that the change does not concern was not stored")
	}
	old := s.epoch
	for i := range 3 * maxPurged { // more changes than are remembered
		s.purge(digest{3, byte(i), byte(i >> 8)})
	}
	if s.purged.Len() > maxPurged {
		t.Errorf("%d changes are remembered", s.purged.Len())
	}
	if s.put(bare(4, 1, 1), old) {
		t.Error("an answer was stored though its change may be forgotten")
	}
	if !s.put(bare(4, 1, 1), s.epoch) {
		t.Error("a new answer was not stored")
	}
	s.check(t)
}

func TestCacheShelfEmptiesItselfForNothingThatDoesNotFit(t *testing.T) {
	s := newShelf(10_000)
	if !s.put(bare(1, 1, 1000), 0) || s.put(bare(2, 1, 10_000), 0) || s.recent.Len() != 1 {
		t.Errorf("%d entries", s.recent.Len())
	}
	s.reserved = 8000
	if s.put(bare(3, 1, 1000), 0) || s.recent.Len() != 1 {
		t.Errorf("%d entries beside bodies that are coming", s.recent.Len())
	}
}

func TestCacheShelfKeepsTheLaterOfTwoAnswers(t *testing.T) {
	s := newShelf(1 << 20)
	later, earlier := bare(1, 20, 1), bare(1, 10, 1)
	if !s.put(later, 0) || s.put(earlier, 0) {
		t.Error("an answer that was overtaken replaced the later one")
	}
	s.drop(earlier) // not there
	if e, _ := s.recent.Peek(later.id); e != later {
		t.Error("the later one is gone")
	}
	head := bare(1, 30, 0)
	head.id.head = true
	if !s.put(head, 0) || s.recent.Len() != 2 {
		t.Error("an answer to HEAD took the place of one to GET")
	}
	if !s.put(bare(1, 40, 1), 0) || s.recent.Len() != 1 {
		t.Error("the answer to HEAD outlived a later GET")
	}
	s.check(t)
}

func TestCacheSharedByManyAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var n atomic.Int64
	c := NewCache(300_000)
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		i := n.Add(1)
		if i%7 == 0 && req.Header.Get("If-None-Match") != "" {
			return cacheReply(304, ""), nil
		}
		who := req.Header.Get("Authorization")
		return cacheReply(200, strings.Repeat(who+req.URL.Path+" ", 100), fmt.Sprintf("Cache-Control: max-age=%d", i%2*60), `ETag: "a"`), nil
	})
	transports := []*Transport{{Cache: c, Base: base}, {Cache: c, Base: base}}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 9))
			client := transports[g%2].Client()
			for range 400 {
				who, path := fmt.Sprint("u", rnd.IntN(4)), fmt.Sprint("/", rnd.IntN(40))
				req, _ := http.NewRequest("GET", "http://h.test"+path, nil)
				req.Header.Set("Authorization", who)
				if rnd.IntN(20) == 0 {
					req.Method = "PUT"
				}
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				if rnd.IntN(5) > 0 {
					b, _ := io.ReadAll(resp.Body)
					if req.Method == "GET" && !strings.HasPrefix(string(b), who+path+" ") {
						t.Errorf("%s at %s got %.20q", who, path, b)
					}
				}
				resp.Header.Set("X-Mine", "1")
				for name := range resp.Header {
					resp.Header[name][0] += "!"
				}
				resp.Body.Close()
				if rnd.IntN(200) == 0 {
					c.Clear()
				}
			}
		})
	}
	wg.Wait()
	c.shelf.check(t)
	if c.shelf.reserved != 0 {
		t.Errorf("%d bytes stay reserved", c.shelf.reserved)
	}
}
