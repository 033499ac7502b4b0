package heedtest

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestWhatBreaksAWait(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * float64(time.Second))) }
	hold := func(s float64) notice { return notice{hold: time.Duration(s * float64(time.Second))} }
	drain := func(s float64) notice { return notice{shows: true, reset: time.Duration(s * float64(time.Second))} }
	left := notice{shows: true}
	type telling struct {
		seq                uint64
		decided, delivered float64
		n                  notice
	}
	for _, c := range []struct {
		name  string
		told  []telling
		sent  time.Time
		grace time.Duration
		conn  string
		want  bool
	}{
		{"nothing told", nil, at(1), 0, "", false},
		{"inside", []telling{{1, 0, 1, hold(10)}}, at(5), 0, "", true},
		{"a nanosecond before the end", []telling{{1, 0, 1, hold(10)}}, at(10).Add(-1), 0, "", true},
		{"at the end", []telling{{1, 0, 1, hold(10)}}, at(10), 0, "", false},
		{"in the instant of the delivery", []telling{{1, 0, 1, hold(10)}}, at(1), 0, "", false},
		{"a nanosecond after the delivery", []telling{{1, 0, 1, hold(10)}}, at(1).Add(1), 0, "", true},
		{"before the delivery", []telling{{1, 0, 1, hold(10)}}, at(0.5), 0, "", false},
		{"a wait that was over before it came", []telling{{1, 0, 11, hold(10)}}, at(11).Add(1), 0, "", false},
		{"a shorter hold does not cut a longer one", []telling{{1, 0, 1, hold(10)}, {2, 1, 2, hold(2)}}, at(9), 0, "", true},
		{"a longer one goes on", []telling{{1, 0, 1, hold(10)}, {2, 8, 9, hold(10)}}, at(17), 0, "", true},
		{"it goes on without a gap", []telling{{1, 0, 1, hold(10)}, {2, 8, 9, hold(10)}}, at(9), 0, "", true},
		{"units left do not take back a hold", []telling{{1, 0, 1, hold(10)}, {2, 2, 3, left}}, at(5), 0, "", true},
		{"nothing remaining", []telling{{1, 0, 1, drain(10)}}, at(5), 0, "", true},
		{"units left take back a reset", []telling{{1, 0, 1, drain(10)}, {2, 2, 3, left}}, at(5), 0, "", false},
		{"but not when they are older news", []telling{{2, 0, 1, drain(10)}, {1, 0, 3, left}}, at(5), 0, "", true},
		{"a newer reset replaces", []telling{{1, 0, 1, drain(10)}, {2, 1, 2, drain(2)}}, at(5), 0, "", false},
		{"and goes on without a gap", []telling{{1, 0, 1, drain(10)}, {2, 1, 2, drain(2)}}, at(2), 0, "", true},
		{"a hold that replaces a reset goes on without a gap", []telling{{1, 0, 1, drain(10)}, {2, 1, 2, notice{shows: true, hold: time.Second * 20}}}, at(2), 0, "", true},
		{"a reset that came after its end", []telling{{1, 0, 20, drain(10)}}, at(21), 0, "", false},
		{"within the grace", []telling{{1, 0, 1, hold(10)}}, at(1.05), 50 * time.Millisecond, "", false},
		{"after the grace", []telling{{1, 0, 1, hold(10)}}, at(1.05).Add(1), 50 * time.Millisecond, "", true},
		{"the grace does not stretch the end", []telling{{1, 0, 1, hold(10)}}, at(10.01), 50 * time.Millisecond, "", false},
		{"no grace on the connection of the telling", []telling{{1, 0, 1, hold(10)}}, at(1.01), 50 * time.Millisecond, "told", true},
		{"grace on another connection", []telling{{1, 0, 1, hold(10)}}, at(1.01), 50 * time.Millisecond, "other", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w waits
			for _, told := range c.told {
				w.tell(told.seq, at(told.decided), at(told.delivered), told.n, "told")
			}
			if got := w.broken(c.sent, c.grace, c.conn); got != c.want {
				t.Errorf("got %v from %+v", got, w)
			}
		})
	}
}

// The interval that waits keeps stands for the union of all holds.
func TestHoldsAreTheirUnion(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	base := time.Unix(1000, 0)
	for range 2000 {
		var w waits
		var all []span
		now := base
		for i := range 20 {
			now = now.Add(time.Duration(rnd.IntN(4)))
			if rnd.IntN(2) == 0 {
				hold := time.Duration(1 + rnd.IntN(12))
				decided := now.Add(-time.Duration(rnd.IntN(3)))
				w.tell(uint64(i), decided, now, notice{hold: hold}, "")
				all = append(all, span{now, decided.Add(hold)})
			}
			want := false
			for _, s := range all {
				want = want || s.broken(now, 0)
			}
			if got := w.broken(now, 0, ""); got != want {
				t.Fatalf("at %v after %v: %v, want %v", now.Sub(base), all, got, want)
			}
		}
	}
}
