package limiter

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// definition restates an algorithm so naively that it is seen to be right. Instants are nanoseconds since 1970, costs and what
// remains are in nano-units.
type definition interface {
	// used is what counts against the capacity just before a decision at an instant, rounded up to a nano-unit.
	used(at int64) int64
	capacity() int64
	// now is the instant that counts when the clock says at.
	now(at int64) int64
	accept(at, cost int64)
}

type arrival struct{ at, cost int64 }

// history is everything that was ever accepted, oldest first.
type history []arrival

func (h *history) accept(at, cost int64) { *h = append(*h, arrival{at, cost}) }

// now is the instant that counts: a clock never goes back behind the last accepted arrival.
func (h history) now(at int64) int64 {
	if len(h) > 0 {
		return max(at, h[len(h)-1].at)
	}
	return at
}

// sum recounts what was accepted from an instant on, up to before another.
func (h history) sum(from, before int64) (total int64) {
	for _, a := range slices.Backward(h) {
		if a.at < from {
			break // the history is in order
		}
		if a.at < before {
			total += a.cost
		}
	}
	return total
}

type fixedDefinition struct {
	history
	limit, window, anchor int64
}

func (d *fixedDefinition) capacity() int64 { return d.limit }
func (d *fixedDefinition) used(at int64) int64 {
	start := floorTo(d.now(at), d.window, d.anchor)
	return d.sum(start, start+d.window)
}

// floorTo is the latest multiple of the window, counted from the anchor, that is not after at.
func floorTo(at, window, anchor int64) int64 {
	start := anchor + (at-anchor)/window*window
	if start > at {
		start -= window
	}
	return start
}

type logDefinition struct {
	history
	limit, window int64
}

func (d *logDefinition) capacity() int64 { return d.limit }
func (d *logDefinition) used(at int64) int64 {
	now := d.now(at)
	return d.sum(now-d.window+1, math.MaxInt64)
}

type counterDefinition struct {
	history
	limit, window int64
}

func (d *counterDefinition) capacity() int64 { return d.limit }
func (d *counterDefinition) used(at int64) int64 {
	now := d.now(at)
	start := floorTo(now, d.window, 0)
	previous, current := d.sum(start-d.window, start), d.sum(start, start+d.window)
	overlap := d.window - (now - start)
	if previous == 0 {
		return current
	}
	weighted, rest := new(big.Int), new(big.Int)
	weighted.DivMod(weighted.Mul(big.NewInt(previous), big.NewInt(overlap)), big.NewInt(d.window), rest)
	return current + weighted.Int64() + int64(rest.Sign()) // rounded up
}

// curveDefinition is the token bucket by what it promises and not by how it works: from every accepted arrival on, what is accepted
// is at most burst + rate * time. The rate is num/den.
type curveDefinition struct {
	history
	burst, num, den int64
}

func (d *curveDefinition) capacity() int64 { return d.burst }
func (d *curveDefinition) used(at int64) int64 {
	now := d.now(at)
	var most, since int64
	for _, a := range slices.Backward(d.history) {
		since += a.cost
		if now-a.at <= math.MaxInt64/2/d.num {
			most = max(most, since*d.den-(now-a.at)*d.num)
		}
	}
	return (most + d.den - 1) / d.den
}
func (d *curveDefinition) accept(at, cost int64) {
	if n := len(d.history); n > 0 && at-d.history[n-1].at > d.burst*d.den/d.num {
		d.history = nil // long enough alone to fill the bucket: what came before says nothing any more
	}
	d.history.accept(at, cost)
}

// levelDefinition is the leaky bucket: a level that runs off evenly. The rate is num/den, and the level is kept in nano-units/den, so
// that everything is a whole number.
type levelDefinition struct {
	size, num, den int64
	level, last    int64
}

func (d *levelDefinition) capacity() int64 { return d.size }
func (d *levelDefinition) used(at int64) int64 {
	return (d.at(d.now(at)) + d.den - 1) / d.den
}
func (d *levelDefinition) at(now int64) int64 {
	if now-d.last > d.level/d.num {
		return 0 // empty by then
	}
	return d.level - (now-d.last)*d.num
}
func (d *levelDefinition) accept(at, cost int64) {
	d.level = d.at(at) + cost*d.den
	d.last = at
}
func (d *levelDefinition) now(at int64) int64 { return max(at, d.last) }

// subject is a core beside its definition.
type subject struct {
	name   string
	core   Core
	define definition
	pace   time.Duration // about the time that one unit takes to come back
	window time.Duration // the time scale of the whole
}

func windowSubjects() []subject {
	var all []subject
	for _, c := range []struct {
		limit  float64
		window time.Duration
		anchor time.Time
	}{
		{100, time.Minute, time.Time{}},
		{5, time.Second, noon.Add(123456789 * time.Nanosecond)},
		{2.5, 7*time.Second + 3, noon.Add(-100 * time.Hour)},
		{1, time.Hour, noon.Add(77 * time.Hour)},
		{200, 13, time.Time{}},
	} {
		limit, anchor := int64(c.limit*nano), int64(0)
		if !c.anchor.IsZero() {
			anchor = c.anchor.UnixNano()
		}
		name := fmt.Sprintf("%g per %v", c.limit, c.window)
		pace := max(1, time.Duration(float64(c.window)/c.limit))
		w := int64(c.window)
		all = append(all,
			subject{"FixedWindow " + name, &FixedWindow{Limit: c.limit, Window: c.window, Anchor: c.anchor},
				&fixedDefinition{nil, limit, w, anchor}, pace, c.window},
			subject{"SlidingLog " + name, &SlidingLog{Limit: c.limit, Window: c.window},
				&logDefinition{nil, limit, w}, pace, c.window},
			subject{"SlidingCounter " + name, &SlidingCounter{Limit: c.limit, Window: c.window},
				&counterDefinition{nil, limit, w}, pace, c.window})
	}
	return all
}

func bucketSubjects() []subject {
	var all []subject
	for _, c := range []struct {
		num, den int64 // units per second
		size     float64
	}{
		{100, 60, 100},
		{1, 24 * 3600, 5},
		{1_000_000, 1, 1000},
		{1, 10, 1},
		{5, 1, 2.5},
	} {
		rate, size := float64(c.num)/float64(c.den), int64(c.size*nano)
		name := fmt.Sprintf("%d/%d a second, %g", c.num, c.den, c.size)
		pace := time.Duration(nano * c.den / c.num)
		window := time.Duration(float64(pace) * c.size)
		all = append(all,
			subject{"TokenBucket " + name, &TokenBucket{Rate: rate, Burst: c.size},
				&curveDefinition{nil, size, c.num, c.den}, pace, window},
			subject{"LeakyBucket " + name, &LeakyBucket{Rate: rate, Queue: c.size}, &levelDefinition{size: size, num: c.num, den: c.den}, pace, window})
	}
	return all
}

func subjects() []subject { return append(windowSubjects(), bucketSubjects()...) }

// traffic is random in the ways that matter: bursts at one instant, steady flow, idle gaps, steps to just before, onto and just after
// an edge, steps back; single units, fractions, gulps, exactly what remains, a quantum more, too much, nothing, and nonsense.
type traffic struct {
	rng *rand.Rand
	s   *subject
	at  int64
}

func (t *traffic) step() int64 {
	w := int64(t.s.window)
	switch p := t.rng.IntN(1000); {
	case p < 350:
	case p < 900:
		t.at += t.rng.Int64N(int64(t.s.pace) + 1)
	case p < 930:
		t.at = floorTo(t.at, w, 0) + w - 1 + t.rng.Int64N(3)
	case p < 960:
		t.at += w - 1 + t.rng.Int64N(3)
	case p < 985:
		t.at += t.rng.Int64N(3*w + 1)
	default:
		t.at -= t.rng.Int64N(w + 1)
	}
	return t.at
}

func (t *traffic) cost(remaining int64) int64 {
	size := t.s.define.capacity()
	switch p := t.rng.IntN(100); {
	case p < 60:
		return nano
	case p < 80:
		return 1 + t.rng.Int64N(2*nano)
	case p < 88:
		return 1 + t.rng.Int64N(size)
	case p < 92:
		return remaining
	case p < 95:
		return remaining + 1
	case p < 97:
		return size + 1 + t.rng.Int64N(size)
	case p < 99:
		return 0
	}
	return -1
}

// TestEveryCoreDecidesAsItsDefinitionSays also holds Peek against Take, and RetryAfter and Reset against what happens at these instants
// and a nanosecond earlier.
func TestEveryCoreDecidesAsItsDefinitionSays(t *testing.T) {
	for i, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			tr := traffic{rand.New(rand.NewPCG(uint64(i), 41)), &s, noon.UnixNano()}
			refusals := 0
			for n := range max(*arrivals/5, 1) { // five configurations each
				at := tr.step()
				used := s.define.used(at)
				if !compare(t, &s, at, tr.cost(s.define.capacity()-used), used, i+n) {
					refusals++
				}
				if t.Failed() {
					t.Fatalf("at arrival %d", n)
				}
			}
			if share := float64(refusals) / float64(*arrivals/5); *arrivals >= 1000 && (share < 0.05 || share > 0.95) {
				t.Errorf("%.0f%% of the arrivals were refused; such traffic tests little", 100*share)
			}
		})
	}
}

// compare puts one arrival to a core and its definition, by which used is spent before it. A negative cost stands for nonsense of several kinds, chosen by n.
func compare(t *testing.T, s *subject, at, cost, used int64, n int) (allowed bool) {
	now, units := time.Unix(0, at), float64(cost)/nano
	if cost < 0 {
		units = []float64{-1, math.NaN(), math.Inf(-1), -1e-300, math.Inf(1)}[n%5]
	}
	size := s.define.capacity()
	want := cost >= 0 && used+cost <= size
	left := size - used
	if want {
		left -= cost
	}

	peek := s.core.Peek(now, units)
	if cost > 0 && !want {
		checkRetryAfter(t, s, now, units, peek)
	}
	got := s.core.Take(now, units)
	if got.Allowed != want || got.Remaining != float64(left)/nano || got.Limit != float64(size)/nano {
		t.Errorf("Take(%v, %v) = %+v; the definition says allowed %v, remaining %v of %v", at, units, got, want, float64(left)/nano, float64(size)/nano)
	}
	if peek.Allowed != got.Allowed || peek.Remaining != got.Remaining || peek.RetryAfter != got.RetryAfter {
		t.Errorf("Peek(%v, %v) = %+v, but Take then gave %+v", at, units, peek, got)
	}
	if cost > size || cost < 0 {
		if got.RetryAfter != Never {
			t.Errorf("Take(%v, %v) = %+v; a cost that can never fit must be told so", at, units, got)
		}
	}
	if got.Allowed && cost > 0 {
		s.define.accept(s.define.now(at), cost)
	}
	checkReset(t, s, now, got)
	return want
}

func checkRetryAfter(t *testing.T, s *subject, now time.Time, units float64, r Result) {
	if r.RetryAfter == Never {
		if units <= r.Limit {
			t.Errorf("RetryAfter of %v is Never, under a limit of %v", units, r.Limit)
		}
		return
	}
	if r.RetryAfter <= 0 {
		t.Errorf("RetryAfter of a refusal is %d", r.RetryAfter)
	}
	if later := s.core.Peek(now.Add(r.RetryAfter), units); !later.Allowed {
		t.Errorf("%v units at %d were told to wait %d, and then refused: %+v", units, now.UnixNano(), r.RetryAfter, later)
	}
	if early := s.core.Peek(now.Add(r.RetryAfter-1), units); early.Allowed {
		t.Errorf("%v units at %d were told to wait %d, but one nanosecond less is enough", units, now.UnixNano(), r.RetryAfter)
	}
}

func checkReset(t *testing.T, s *subject, now time.Time, r Result) {
	if whole := s.core.Peek(now.Add(r.Reset), 0); whole.Remaining != whole.Limit {
		t.Errorf("Reset at %d is %d, but then only %v of %v are there", now.UnixNano(), r.Reset, whole.Remaining, whole.Limit)
	}
	if _, fixed := s.core.(*FixedWindow); fixed && r.Remaining == r.Limit {
		return // Reset is the end of the window even when nothing was spent
	}
	if early := s.core.Peek(now.Add(r.Reset-1), 0); r.Reset > 0 && early.Remaining == early.Limit {
		t.Errorf("Reset at %d is %d, but one nanosecond less is enough", now.UnixNano(), r.Reset)
	}
}
