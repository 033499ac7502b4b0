package heed

import (
	"testing"
	"time"
)

const second = int64(time.Second)

// moment is an instant whose two clocks agree: so long after june, and an hour more on the monotonic clock.
func moment(d time.Duration) instant {
	return instant{wall: june.UnixNano() + int64(d), mono: int64(time.Hour + d)}
}

func TestATimelineHasNoZeroAndNoNegativeInstant(t *testing.T) {
	now := newTimeline().now()
	if now.mono < int64(59*time.Minute) || now.wall == 0 {
		t.Errorf("the first instant is %+v", now)
	}
	if got := moment(time.Minute).time(); !got.Equal(june.Add(time.Minute)) {
		t.Errorf("an instant is %v on the wall", got)
	}
}

func TestAnEdgeHasPassedWhenEitherClockSaysSo(t *testing.T) {
	told := moment(0)
	wall := edge{lo: told.wall, hi: told.wall + 60*second, wall: true, mono: told.mono + 60*second}
	delta := edge{lo: told.mono, hi: told.mono + 60*second}
	for _, x := range []struct {
		name      string
		at        instant
		wall      time.Duration
		delta     time.Duration
		doubtful_ bool
	}{
		{"at once", told, time.Minute, time.Minute, false},
		{"half a minute later", moment(30 * time.Second), 30 * time.Second, 30 * time.Second, false},
		{"at the edge", moment(time.Minute), 0, 0, false},
		{"past it", moment(61 * time.Second), -time.Second, -time.Second, false},
		{"the wall clock was set back an hour", instant{told.wall - 3600*second, told.mono + 30*second}, 30 * time.Second, 30 * time.Second, true},
		{"the wall clock was set forward an hour", instant{told.wall + 3600*second, told.mono + 30*second}, -59 * time.Minute, 30 * time.Second, true},
		{"the machine slept for 50 s", instant{told.wall + 55*second, told.mono + 5*second}, 5 * time.Second, 55 * time.Second, true},
		{"a slew of half a second", instant{told.wall + 30*second + second/2, told.mono + 30*second}, 29*time.Second + time.Second/2, 30 * time.Second, false},
	} {
		if got := wall.left(x.at); got != x.wall {
			t.Errorf("%s: %v are left to an instant, want %v", x.name, got, x.wall)
		}
		if got := delta.left(x.at); got != x.delta {
			t.Errorf("%s: %v are left of a delta, want %v", x.name, got, x.delta)
		}
		if wall.doubtful(x.at) != x.doubtful_ || delta.doubtful(x.at) {
			t.Errorf("%s: doubtful %v, want %v; a delta never is", x.name, wall.doubtful(x.at), x.doubtful_)
		}
	}
}

func TestEdgesOfOneWindowNarrowEachOther(t *testing.T) {
	for _, x := range []struct {
		name string
		a, b edge
		want edge
		ok   bool
	}{
		{"overlapping", edge{lo: 10, hi: 20}, edge{lo: 15, hi: 25}, edge{lo: 15, hi: 20}, true},
		{"one within the other", edge{lo: 10, hi: 20}, edge{lo: 12, hi: 13}, edge{lo: 12, hi: 13}, true},
		{"the same", edge{lo: 10, hi: 20}, edge{lo: 10, hi: 20}, edge{lo: 10, hi: 20}, true},
		{"adjoining, as of two windows in a row", edge{lo: 10, hi: 20}, edge{lo: 20, hi: 30}, edge{}, false},
		{"apart", edge{lo: 10, hi: 20}, edge{lo: 21, hi: 30}, edge{}, false},
		{"on two clocks", edge{lo: 10, hi: 20}, edge{lo: 10, hi: 20, wall: true}, edge{}, false},
		{"an unknown one", edge{lo: 10, hi: 20}, edge{}, edge{}, false},
		{"the earlier monotonic end counts", edge{lo: 10, hi: 20, wall: true, mono: 7}, edge{lo: 10, hi: 20, wall: true, mono: 5}, edge{lo: 10, hi: 20, wall: true, mono: 5}, true},
	} {
		for _, flip := range []bool{false, true} {
			a, b := x.a, x.b
			if flip {
				a, b = b, a
			}
			got, ok := a.meet(b)
			if ok != x.ok || ok && got != x.want || !ok && got != a {
				t.Errorf("%s: %+v meets %+v as %+v, %v", x.name, a, b, got, ok)
			}
		}
	}
	if got := (edge{lo: 1, hi: 2, wall: true, mono: 3}).later(10); got != (edge{lo: 1, hi: 12, wall: true, mono: 13}) {
		t.Errorf("10 later it is %+v", got)
	}
	if got := (edge{lo: 1, hi: 2}).later(10); got != (edge{lo: 1, hi: 12}) || (edge{}).known() {
		t.Errorf("10 later it is %+v", got)
	}
}

func TestDatesNarrowTheServersClockToARoundTrip(t *testing.T) {
	r := dice(t)
	for _, skew := range []time.Duration{0, 7 * time.Minute, -7 * time.Minute, 90 * 24 * time.Hour} {
		var o offset
		for i := range 400 {
			at := time.Duration(i)*777*time.Millisecond + time.Duration(r.Int64N(1e6))
			up, down := time.Duration(1+r.Int64N(20e6)), time.Duration(1+r.Int64N(20e6))
			date := june.Add(at + up + skew).Truncate(time.Second)
			o.narrow(date, moment(at), moment(at+up+down))
			if !o.known || o.lo > int64(skew) || o.hi < int64(skew) {
				t.Fatalf("answer %d: [%v, %v] does not hold %v", i, time.Duration(o.lo), time.Duration(o.hi), skew)
			}
		}
		if width := time.Duration(o.hi - o.lo); width > 60*time.Millisecond {
			t.Errorf("clock off by %v: still %v wide after 400 answers", skew, width)
		}
	}
}

func TestAClockThatContradictsWhatWasKnownIsLearnedAnew(t *testing.T) {
	var o offset
	o.narrow(june, moment(0), moment(time.Millisecond))
	o.narrow(june.Add(5*time.Minute), moment(time.Second), moment(time.Second+time.Millisecond))
	if o.lo > int64(299*time.Second) || o.hi < int64(299*time.Second) || o.hi-o.lo > 2*second {
		t.Errorf("after a step of the server's clock the offset is [%v, %v]", time.Duration(o.lo), time.Duration(o.hi))
	}
}

func TestAResetIsAnIntervalOnItsOwnClock(t *testing.T) {
	sent, received := moment(0), moment(100*time.Millisecond)
	now := received.time()
	for _, x := range []struct {
		name   string
		r      Reading
		date   time.Time
		skew   *offset
		lo, hi time.Duration // from june
		wall   bool
	}{
		{"a delta may have been rounded up", Reading{Reset: now.Add(10 * time.Second)}, time.Time{}, nil, 9 * time.Second, 10100 * time.Millisecond, false},
		{"an instant without a Date", Reading{Reset: now.Add(10 * time.Second), absolute: true}, time.Time{}, nil, 9100 * time.Millisecond, 10100 * time.Millisecond, true},
		{"an instant whose clock is not known", Reading{Reset: now.Add(10 * time.Second), absolute: true}, june, nil, 9100 * time.Millisecond, 10100 * time.Millisecond, true},
		{"an instant on a clock that is known to be 5 minutes ahead", Reading{Reset: now.Add(10 * time.Second), absolute: true}, june.Add(5 * time.Minute),
			&offset{int64(5*time.Minute - 10*time.Millisecond), int64(5*time.Minute + 10*time.Millisecond), true}, 8990 * time.Millisecond, 10010 * time.Millisecond, true},
	} {
		o := x.skew
		if o == nil {
			o = new(offset)
		}
		e := o.edgeOf(&x.r, &Feedback{Date: x.date}, sent, received)
		zero := moment(0).mono
		if x.wall {
			zero = moment(0).wall
		}
		if time.Duration(e.lo-zero) != x.lo || time.Duration(e.hi-zero) != x.hi || e.wall != x.wall {
			t.Errorf("%s: (%v, %v], wall %v; want (%v, %v], %v", x.name, time.Duration(e.lo-zero), time.Duration(e.hi-zero), e.wall, x.lo, x.hi, x.wall)
		}
		if x.wall && e.mono-moment(0).mono != e.hi-moment(0).wall {
			t.Errorf("%s: the two clocks are told different ends", x.name)
		}
	}
	if e := new(offset).edgeOf(&Reading{}, &Feedback{}, sent, received); e.known() {
		t.Errorf("a reading without a reset has the edge %+v", e)
	}
}
