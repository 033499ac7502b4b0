package heed

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/heedhttp/heed/limiter"
)

// world is a ledger in front of a simulated server: one heap of instants, no
// goroutine, no clock. Times are nanoseconds of a true clock that begins at 0.
type world struct {
	rand   *rand.Rand
	ledger ledger
	known  []Limit

	core    limiter.Core
	quota   float64
	window  time.Duration
	say     saying
	skew    time.Duration // of the server's clock
	step    time.Duration // of the client's wall clock, at stepAt
	stepAt  int64
	latency func(*rand.Rand) time.Duration // one way

	now      int64
	events   events
	waiting  int   // calls that want to go
	wake     int64 // the wake-up that is pending
	heardAt  int64 // when the first answer came; 0: none yet
	sent     int
	accepted int
	refused  int // refusals of requests that were sent after the first answer came
	refusals []int64
	stuck    string
}

// saying is how the server words its limit.
type saying struct {
	epoch, floor, date, noReset, window, wait, silent bool
}

func (s saying) String() string {
	text := ""
	for _, x := range []struct {
		on   bool
		name string
	}{{s.epoch, "epoch"}, {!s.epoch, "delta"}, {s.floor, "floor"}, {s.date, "date"}, {s.noReset, "no reset"}, {s.window, "w="}, {s.wait, "Retry-After"}, {s.silent, "silent"}} {
		if x.on {
			text += x.name + " "
		}
	}
	return text
}

type event struct {
	at     int64
	order  int
	flight *flight // nil: somebody looks whether he may go
	lands  bool
}

type flight struct {
	sent   instant
	sentAt int64
	status int
	header http.Header
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

func (w *world) schedule(at int64, f *flight, lands bool) {
	heap.Push(&w.events, event{at, w.sent*4 + len(w.events), f, lands})
}

// true instants on the clocks of the two sides.
func (w *world) local(at int64) instant {
	wall := june.UnixNano() + at
	if w.stepAt != 0 && at >= w.stepAt {
		wall += int64(w.step)
	}
	return instant{wall: wall, mono: at + int64(time.Hour)}
}

func (w *world) server(at int64) time.Time { return june.Add(time.Duration(at) + w.skew) }

// run lets demand calls want to go every tick until the end, and then lets everything land.
func (w *world) run(demand int, tick, end time.Duration) {
	for at := int64(0); at < int64(end); at += int64(tick) {
		w.schedule(at, nil, false)
	}
	arrivals := int64(0)
	for len(w.events) > 0 && w.stuck == "" {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		switch {
		case e.flight == nil:
			if e.at == arrivals && e.at < int64(end) {
				w.waiting = min(w.waiting+demand, 10*demand)
				arrivals += int64(tick)
			}
		case e.lands:
			w.land(e.flight)
		default:
			w.arrive(e.flight)
		}
		if w.now < int64(end) {
			w.look()
		}
	}
}

// look sends whatever may go, as the first in line of a queue does.
func (w *world) look() {
	cost := Cost{Requests: 1}
	for w.waiting > 0 {
		now := w.local(w.now)
		v := w.ledger.decide(now, w.known, cost, 0)
		if v.wait == never && w.ledger.flights == 0 {
			w.stuck = fmt.Sprintf("at %v: waits for ever with nothing in flight: %v", time.Duration(w.now), v.reason)
			return
		}
		if v.wait < 0 || v.wait != never && v.wait > maxWait+2*time.Second {
			w.stuck = fmt.Sprintf("at %v: a wait of %v", time.Duration(w.now), v.wait)
			return
		}
		if v.wait > 0 {
			if v.wait != never {
				// One wake-up at a time, but for those that became too late.
				if at := w.now + int64(min(v.wait, maxNap)); w.wake <= w.now || at < w.wake {
					w.wake = at
					w.schedule(at, nil, false)
				}
			}
			return
		}
		w.waiting--
		w.ledger.spend(now, w.known, cost, false)
		f := &flight{sent: now, sentAt: w.now}
		w.sent++
		w.schedule(w.now+int64(w.latency(w.rand)), f, false)
	}
}

func (w *world) arrive(f *flight) {
	at := w.server(w.now)
	r := w.core.Take(at, 1)
	f.status, f.header = 200, make(http.Header)
	if r.Allowed {
		w.accepted++
	} else {
		f.status = 429
		if w.heardAt != 0 && f.sentAt > w.heardAt {
			w.refused++
			w.refusals = append(w.refusals, w.now)
		}
	}
	if w.say.date {
		f.header.Set("Date", at.Format(http.TimeFormat))
	}
	whole := func(d time.Duration) string {
		if w.say.floor {
			return strconv.Itoa(int(d / time.Second))
		}
		return strconv.Itoa(int((d + time.Second - 1) / time.Second))
	}
	if !r.Allowed && w.say.wait {
		f.header.Set("Retry-After", whole(r.RetryAfter))
	}
	if !w.say.silent {
		limit := fmt.Sprintf("%g", w.quota)
		if w.say.window {
			limit += fmt.Sprintf(", %g;w=%g", w.quota, w.window.Seconds())
		}
		f.header.Set("RateLimit-Limit", limit)
		f.header.Set("RateLimit-Remaining", fmt.Sprint(math.Floor(r.Remaining)))
		switch {
		case w.say.noReset:
		case w.say.epoch:
			f.header.Set("RateLimit-Reset", strconv.FormatInt(at.Add(r.Reset+time.Second-1).Unix(), 10))
		default:
			f.header.Set("RateLimit-Reset", whole(r.Reset))
		}
	}
	w.schedule(w.now+int64(w.latency(w.rand)), f, true)
}

func (w *world) land(f *flight) {
	now := w.local(w.now)
	if w.heardAt == 0 {
		w.heardAt = w.now
	}
	fb := ParseFeedback(&http.Response{StatusCode: f.status, Header: f.header}, now.time())
	w.ledger.land(now, w.known, Cost{Requests: 1}, true)
	w.ledger.learn(f.sent, now, &fb, w.rand.Float64())
}

// settled fails when something is still counted as under way.
func (w *world) settled(t *testing.T) {
	t.Helper()
	if w.stuck != "" {
		t.Error(w.stuck)
	}
	if w.stuck == "" && (w.ledger.flights != 0 || w.ledger.inflight != (Cost{})) {
		t.Errorf("%d flights and %+v are still under way when all have landed", w.ledger.flights, w.ledger.inflight)
	}
}

func steady(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

// between draws latencies, so that answers overtake each other.
func between(lo, hi time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return lo + time.Duration(r.Int64N(int64(hi-lo)+1)) }
}

// servers are the algorithms that a server may keep, all of the same quota.
func servers(quota float64, window time.Duration) map[string]limiter.Core {
	return map[string]limiter.Core{
		"fixed window":    &limiter.FixedWindow{Limit: quota, Window: window, Anchor: june.Add(333 * time.Millisecond)},
		"token bucket":    &limiter.TokenBucket{Rate: quota / window.Seconds(), Burst: quota},
		"sliding log":     &limiter.SlidingLog{Limit: quota, Window: window},
		"sliding counter": &limiter.SlidingCounter{Limit: quota, Window: window},
		"leaky bucket":    &limiter.LeakyBucket{Rate: quota / window.Seconds(), Queue: quota},
	}
}

func TestWithHonestHeadersAFixedWindowRefusesNothing(t *testing.T) {
	for _, window := range []time.Duration{10 * time.Second, time.Minute} {
		for _, quota := range []float64{1, 5, 60, 300} {
			for _, say := range []saying{{}, {window: true}, {epoch: true}, {epoch: true, date: true}, {epoch: true, date: true, wait: true}} {
				t.Run(fmt.Sprintf("%g per %v in %v", quota, window, say), func(t *testing.T) {
					const windows = 12
					w := &world{rand: dice(t), core: servers(quota, window)["fixed window"], quota: quota, window: window, say: say,
						latency: between(5*time.Millisecond, 80*time.Millisecond)}
					if say.date {
						w.skew = time.Duration(w.rand.Int64N(int64(14*time.Minute))) - 7*time.Minute
					}
					w.run(int(2*quota), window/2, windows*window)
					w.settled(t)
					if w.refused > 0 {
						t.Errorf("%d of %d were refused, first at %v", w.refused, w.sent, time.Duration(w.refusals[0]))
					}
					if float64(w.accepted) < 0.9*windows*quota {
						t.Errorf("%d accepted of the %g that the server lets through", w.accepted, windows*quota)
					}
				})
			}
		}
	}
}

func TestAServerThatRoundsDownIsLearnedByAFewRefusals(t *testing.T) {
	for _, say := range []saying{{floor: true}, {floor: true, wait: true}} {
		for _, quota := range []float64{1, 5, 60} {
			w := &world{rand: dice(t), core: servers(quota, time.Minute)["fixed window"], quota: quota, window: time.Minute, say: say,
				latency: between(5*time.Millisecond, 80*time.Millisecond)}
			w.run(int(2*quota), 30*time.Second, time.Hour)
			w.settled(t)
			if w.refused > 6 || float64(w.accepted) < 0.95*60*quota {
				t.Errorf("%g, %v: %d refused and %d accepted in 60 windows", quota, say, w.refused, w.accepted)
			}
			if n := len(w.refusals); n > 0 && time.Duration(w.refusals[n-1]) > 30*time.Minute {
				t.Errorf("%g, %v: still refused after %v", quota, say, time.Duration(w.refusals[n-1]))
			}
		}
	}
}

func TestWhateverTheServerCountsAndSaysNobodyIsStuck(t *testing.T) {
	r := dice(t)
	for range 40 {
		quota := float64(1 + r.IntN(80))
		window := []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, time.Minute}[r.IntN(4)]
		say := saying{r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(4) == 0, r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(5) == 0}
		lo := time.Duration(1+r.IntN(50)) * time.Millisecond
		for kind, core := range servers(quota, window) {
			w := &world{rand: r, core: core, quota: quota, window: window, say: say, latency: between(lo, lo*time.Duration(1+r.IntN(20)))}
			if say.date || !say.epoch {
				w.skew = time.Duration(r.Int64N(int64(14*time.Minute))) - 7*time.Minute
			}
			if r.IntN(3) == 0 {
				w.step, w.stepAt = time.Duration(r.Int64N(int64(2*time.Hour)))-time.Hour, int64(3*window)
			}
			const windows = 8
			w.run(int(2*quota), window/2, windows*window)
			w.settled(t)
			// One call in every other window, however bad the headers.
			if w.accepted < windows/2 && w.skew == 0 && w.step == 0 && lo < 10*time.Millisecond {
				t.Errorf("only %d accepted in %d windows", w.accepted, windows)
			}
			if t.Failed() {
				t.Fatalf("%s, %g per %v, said in %v, clock off by %v, step of %v: sent %d, accepted %d, refused %d",
					kind, quota, window, say, w.skew, w.step, w.sent, w.accepted, w.refused)
			}
		}
	}
}

func TestABucketIsToldFromAWindowOfASecond(t *testing.T) {
	for kind, want := range map[string]bool{"token bucket": true, "fixed window": false} {
		t.Run(kind, func(t *testing.T) {
			const quota, seconds = 20, 60
			w := &world{rand: dice(t), core: servers(quota, time.Second)[kind], quota: quota, window: time.Second, latency: steady(10 * time.Millisecond)}
			w.run(2, 50*time.Millisecond, seconds*time.Second) // demand of twice the rate, spread out
			w.settled(t)
			if got := w.ledger.windows[0].rate > 0; got != want {
				t.Errorf("taken for a bucket: %v (rate %g)", got, w.ledger.windows[0].rate)
			}
			if float64(w.accepted) < 0.85*quota*seconds || w.refused > seconds/3 {
				t.Errorf("%d accepted of %d, %d refused", w.accepted, quota*seconds, w.refused)
			}
		})
	}
}

func TestAStepOfTheWallClockNeitherStopsNorFloods(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -10 * time.Minute, -30 * time.Second, 30 * time.Second, 10 * time.Minute, time.Hour} {
		for _, say := range []saying{{epoch: true, date: true}, {}} {
			const quota, windows = 30, 10
			w := &world{rand: dice(t), core: servers(quota, time.Minute)["fixed window"], quota: quota, window: time.Minute, say: say,
				latency: between(5*time.Millisecond, 50*time.Millisecond), step: step, stepAt: int64(3*time.Minute + 10*time.Second)}
			w.run(2*quota, 30*time.Second, windows*time.Minute)
			w.settled(t)
			if w.accepted < (windows-2)*quota || w.refused > 3 {
				t.Errorf("step of %v, %v: %d accepted of %d, %d refused", step, say, w.accepted, windows*quota, w.refused)
			}
		}
	}
}

func TestARuleIsKeptWithoutAnyWordOfTheServer(t *testing.T) {
	for kind, core := range servers(20, 10*time.Second) {
		w := &world{rand: dice(t), core: core, quota: 20, window: 10 * time.Second, say: saying{silent: true}, latency: steady(20 * time.Millisecond)}
		w.known = []Limit{{Quota: 20, Window: 10 * time.Second}}
		if kind == "sliding counter" {
			continue // it counts more than was sent within its window, so no window of ours is safe against it
		}
		w.run(40, 5*time.Second, 2*time.Minute)
		w.settled(t)
		if w.refused > 0 || w.accepted < 200 {
			t.Errorf("%s: %d refused, %d accepted", kind, w.refused, w.accepted)
		}
	}
}
