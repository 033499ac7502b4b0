package benchmarks

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"time"
)

// Added is what one client adds to a request, beyond what the bare base costs.
type Added struct {
	Client string
	// Time is the median over all rounds, Best the least of them.
	Time, Best time.Duration
	// Bytes and Allocs are what is allocated; they do not vary with the load of the machine.
	Bytes, Allocs float64
}

// Plan says how much is measured.
type Plan struct {
	// Rounds is how many turns each client has.
	Rounds int
	// Sends is how many requests one turn sends. For a connection one is best:
	// the turns of all clients then lie close together.
	Sends int
}

// Measure sends req through every client over base, in turns, and takes off
// what the bare base costs in the same round.
func Measure(clients []Client, base http.RoundTripper, req *http.Request, plan Plan) ([]Added, error) {
	ways := []way{{"the base alone", base, nil}}
	for _, c := range clients {
		ways = append(ways, way{c.Name, c.Over(base), nil})
	}
	out := make([]Added, len(clients))
	var bare spent
	for i, w := range ways {
		// Warm, past a slow start, and the count of allocations.
		s, err := w.turn(req, max(plan.Sends, 200), true)
		if err != nil {
			return nil, err
		}
		if s, err = w.turn(req, max(plan.Sends, 200), true); err != nil {
			return nil, err
		}
		if i == 0 {
			bare = s
			continue
		}
		out[i-1] = Added{Client: w.name, Bytes: s.bytes - bare.bytes, Allocs: s.allocs - bare.allocs}
	}
	for range plan.Rounds {
		for i := range ways {
			s, err := ways[i].turn(req, plan.Sends, false)
			if err != nil {
				return nil, err
			}
			ways[i].nanos = append(ways[i].nanos, s.nanos)
		}
	}
	for i := range out {
		out[i].Time, out[i].Best = added(ways[0].nanos, ways[i+1].nanos)
	}
	return out, nil
}

// added compares rounds: the median of all differences, and the difference of the best.
func added(bare, with []float64) (typical, best time.Duration) {
	if len(bare) == 0 {
		return 0, 0
	}
	differences := make([]float64, len(bare))
	for i := range bare {
		differences[i] = with[i] - bare[i]
	}
	return time.Duration(median(differences)), time.Duration(slices.Min(with) - slices.Min(bare))
}

// way is one way to send, and the time per request of each of its turns.
type way struct {
	name  string
	rt    http.RoundTripper
	nanos []float64
}

// spent is what one request of a turn cost.
type spent struct{ nanos, bytes, allocs float64 }

// turn sends a number of requests, one after the other.
func (w *way) turn(req *http.Request, sends int, memory bool) (s spent, err error) {
	var before, after runtime.MemStats
	if memory {
		runtime.GC()
		runtime.ReadMemStats(&before)
	}
	began := time.Now()
	for range sends {
		resp, err := w.rt.RoundTrip(req)
		if err != nil {
			return s, fmt.Errorf("%s: %w", w.name, err)
		}
		if resp.Body == http.NoBody {
			continue
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if closed := resp.Body.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", w.name, err)
		}
	}
	n := float64(sends)
	s.nanos = float64(time.Since(began)) / n
	if memory {
		runtime.ReadMemStats(&after)
		s.bytes = float64(after.TotalAlloc-before.TotalAlloc) / n
		s.allocs = float64(after.Mallocs-before.Mallocs) / n
	}
	return s, nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	switch half := len(v) / 2; {
	case len(v) == 0:
		return 0
	case len(v)%2 == 0:
		return (v[half-1] + v[half]) / 2
	default:
		return v[half]
	}
}
