package limiter

import (
	"encoding/binary"
	"math"
	"testing"
	"time"
)

// FuzzScript reads its input as a script of (time step, cost) and holds every core against its definition while it runs. Each line of
// the script is five bytes: what kind of step, its size, what kind of cost, its size.
func FuzzScript(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x02\x00\x01\x01\x00"))
	f.Fuzz(func(t *testing.T, script []byte) {
		script = script[:min(len(script), 5*500)]
		for i, s := range subjects() {
			at := noon.UnixNano()
			for line := script; len(line) >= 5; line = line[5:] {
				step, size := line[0], int64(binary.LittleEndian.Uint16(line[1:]))
				w := int64(s.window)
				switch step % 7 {
				case 0: // at the same instant
				case 1:
					at += int64(s.pace) * size >> 12
				case 2: // around the next edge
					at = floorTo(at, w, 0) + w - 1 + size%3
				case 3: // a window later, to the nanosecond
					at += w - 1 + size%3
				case 4:
					at += w * size >> 14
				case 5:
					at -= w * size >> 15
				case 6:
					at += size
				}
				used, limit := s.define.used(at), s.define.capacity()
				cost := map[byte]int64{
					0: nano, 1: size, 2: limit - used, 3: limit - used + 1, 4: limit * size >> 15, 5: limit + 1 + size, 6: 0, 7: -1,
				}[line[3]%8] + int64(line[4])
				if line[3]%8 == 7 {
					cost = -1
				}
				if compare(t, &s, at, cost, used, i+int(line[4])); t.Failed() {
					t.Fatalf("%s, %d bytes before the end", s.name, len(line))
				}
			}
		}
	})
}

// FuzzConfiguration gives the cores any numbers at all: whatever they are, an answer is within its range, a refusal changes nothing,
// and a wait that is promised is kept.
func FuzzConfiguration(f *testing.F) {
	f.Add(1.0, 1.0, int64(time.Second), int64(0), 1.0)
	f.Add(0.0, math.Inf(1), int64(-1), int64(1), math.NaN())
	f.Add(1e-15, 4e18, int64(math.MaxInt64), int64(math.MinInt64), 1e-300)
	f.Add(1/3e7, 5e9, int64(13), int64(1e18), 0.1)
	f.Add(math.Pi, math.E, int64(1e10), int64(1e9), math.Sqrt2)
	f.Fuzz(func(t *testing.T, rate, limit float64, window, step int64, cost float64) {
		for _, c := range []Core{
			&FixedWindow{Limit: limit, Window: time.Duration(window), Anchor: time.Unix(0, step)},
			&SlidingLog{Limit: limit, Window: time.Duration(window)},
			&SlidingCounter{Limit: limit, Window: time.Duration(window)},
			&TokenBucket{Rate: rate, Burst: limit},
			&LeakyBucket{Rate: rate, Queue: limit},
		} {
			for i := range int64(5) {
				now := time.Unix(0, noon.UnixNano()/2+i*(step>>3))
				peek := c.Peek(now, cost)
				r := c.Take(now, cost)
				if r.Allowed != peek.Allowed || r.RetryAfter != peek.RetryAfter || r.Remaining != peek.Remaining {
					t.Fatalf("%T: Peek gave %+v, Take %+v", c, peek, r)
				}
				if !(r.Remaining >= 0 && r.Remaining <= r.Limit) || r.RetryAfter < Never || r.Reset < Never {
					t.Fatalf("%T: %+v is out of range", c, r)
				}
				if r.Allowed != (r.RetryAfter == 0) || r.Allowed && !(cost >= 0) {
					t.Fatalf("%T: a cost of %v gave %+v", c, cost, r)
				}
				if r.RetryAfter > 0 {
					// Time itself ends in 2262; waits beyond it cannot be tried.
					if then := now.Add(r.RetryAfter); then.Before(time.Unix(lastSec, 0)) && now.Year() > 1700 {
						if !c.Peek(then, cost).Allowed || c.Peek(then.Add(-1), cost).Allowed {
							t.Fatalf("%T: a cost of %v is to be tried again after %v, which is not the first instant that it fits", c, cost, r.RetryAfter)
						}
					}
				}
			}
		}
	})
}
