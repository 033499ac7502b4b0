package heed

import (
	"testing"
	"time"
)

// tale is a window that is told by hand-made answers.
type tale struct {
	w    window
	l    load
	last int64 // monotonic instant of the last send
}

// answer is one reading of a delta reset: sent and received in ms from june, reset in seconds (negative: not said).
func (s *tale) answer(sent, received int, quota, remaining float64, reset int, refused ...bool) {
	from, to := moment(time.Duration(sent)*time.Millisecond), moment(time.Duration(received)*time.Millisecond)
	s.last = max(s.last, from.mono)
	r := Reading{Limit: Limit{Quota: quota}, Remaining: remaining, Has: HasRemaining}
	if quota > 0 {
		r.Has |= HasQuota
	}
	if reset >= 0 {
		r.Reset = to.time().Add(time.Duration(reset) * time.Second)
	}
	e := new(offset).edgeOf(&r, &Feedback{}, from, to)
	s.w.learn(&r, e, from, to, s.l, len(refused) > 0)
}

// wait is the wait of one unit at an instant in ms.
func (s *tale) wait(at int) time.Duration {
	return s.w.wait(moment(time.Duration(at)*time.Millisecond), 1, 0, s.l.inflight, s.last)
}

func (s *tale) free(at int) float64 {
	return s.w.available(moment(time.Duration(at)*time.Millisecond), s.l.inflight)
}

func TestWithinOneWindowRemainingOnlyFalls(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 30, 40)
	s.answer(10, 100, 60, 28, 40)
	s.answer(5, 120, 60, 29, 40) // older, and late
	if got := s.free(130); got != 28 {
		t.Errorf("%v are left, want 28", got)
	}
	s.answer(200, 250, 60, 27, 40)
	if got := s.free(260); got != 27 {
		t.Errorf("%v are left, want 27", got)
	}
}

func TestInWhateverOrderAnswersComeTheLeastOfAWindowCounts(t *testing.T) {
	r := dice(t)
	for range 200 {
		var s tale
		order := r.Perm(20)
		for n, i := range order {
			s.answer(i, 100+n, 60, float64(50-i), 40)
		}
		if got := s.free(200); got != 31 {
			t.Fatalf("in the order %v %v are left, want 31", order, got)
		}
	}
}

func TestALaterResetStartsANewWindow(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 0, 10)
	if got := s.wait(100); got < 9*time.Second || got > 10*time.Second {
		t.Errorf("the wait is %v", got)
	}
	s.answer(10_100, 10_150, 60, 59, 60)
	if got := s.free(10_200); got != 59 {
		t.Errorf("%v are left of the new window, want 59", got)
	}
	s.answer(100, 10_300, 60, 1, 1) // an answer of the old window, overtaken by 10 s
	if got := s.free(10_400); got != 59 {
		t.Errorf("%v are left after an answer of the old window, want 59", got)
	}
	if got := time.Duration(s.w.length); got < 59*time.Second || got > 61*time.Second {
		t.Errorf("the window is taken to be %v long", got)
	}
}

func TestAnOvertakenAnswerOfTheOldWindowSentWithOneOfTheNewEndsNothing(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 1, 3)
	s.answer(2_900, 3_010, 60, 59, 60)
	s.answer(2_900, 3_020, 60, 0, 1) // sent in the same instant, answered before the reset
	if got := s.free(3_030); got != 59 {
		t.Errorf("%v are left, want the 59 of the new window", got)
	}
}

func TestWhenTheResetMovesEarlyTheLeastOfOverlappingFlightsCounts(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 50, 10)
	s.answer(100, 150, 60, 40, 20)
	s.answer(120, 160, 60, 45, 30) // sent later, counted earlier, by a server whose reset moves with each request
	if got := s.free(170); got != 40 {
		t.Errorf("%v are left, want the 40 of an overlapping flight", got)
	}
	s.answer(200, 250, 60, 45, 40)
	if got := s.free(260); got != 45 {
		t.Errorf("%v are left, want the 45 that were told to one sent since", got)
	}
}

func TestWhatIsInFlightIsTakenOff(t *testing.T) {
	s := tale{l: load{spent: 5, inflight: 4}}
	s.answer(0, 50, 60, 6, 40)
	if got := s.free(60); got != 2 {
		t.Errorf("%v may be sent with 4 of 6 in flight, want 2", got)
	}
	s.l.inflight = 7
	if got := s.wait(60); got < 39*time.Second {
		t.Errorf("a wait of %v with more in flight than is left", got)
	}
}

func TestOthersUseIsSeenInTheNextAnswer(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 50, 40)
	s.answer(100, 150, 60, 20, 40)
	if got := s.free(200); got != 20 {
		t.Errorf("%v are left beside others, want 20", got)
	}
}

func TestAnAnswerThatSaysNothingIsStillCharged(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 3, 40)
	for range 3 {
		s.w.charge(1, moment(time.Second))
	}
	if got := s.free(1100); got != 0 {
		t.Errorf("%v are left after three answers without figures, want 0", got)
	}
}

func TestAReadingWithoutAResetIsOfTheKnownWindow(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 10, 40)
	s.answer(100, 150, 60, 0, -1)
	if got := s.wait(200); got < 39*time.Second || got > 40*time.Second {
		t.Errorf("the wait is %v, want that of the known reset", got)
	}
	s.answer(300, 350, 60, 30, -1)
	if got := s.free(400); got != 0 {
		t.Errorf("%v are left, but the window has not ended", got)
	}
	s.answer(41_000, 41_050, 60, 30, -1)
	if got := s.free(41_060); got != 30 {
		t.Errorf("%v are left after the reset, want 30", got)
	}
}

func TestWithoutAnyResetASpentLimitIsProbedASecondLater(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 0, -1)
	if got := s.wait(50); got != time.Second {
		t.Errorf("the wait is %v, want 1s", got)
	}
	if got := s.wait(1050); got != 0 {
		t.Errorf("a second later the wait is %v", got)
	}
	s.l.inflight, s.last = 1, moment(1050*time.Millisecond).mono
	if got := s.wait(1060); got != never {
		t.Errorf("with the probe under way the wait is %v, want none but its answer", got)
	}
}

func TestWithoutAnyResetOfOverlappingFlightsTheLeastCounts(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 40, -1)
	s.answer(102, 150, 60, 30, -1) // sent last, counted first
	s.answer(100, 160, 60, 25, -1)
	s.answer(101, 170, 60, 28, -1)
	if got := s.free(200); got != 25 {
		t.Errorf("%v are left, want 25", got)
	}
	s.answer(300, 350, 60, 59, -1) // a new window, for all that is known
	if got := s.free(400); got != 59 {
		t.Errorf("%v are left, want 59", got)
	}
}

func TestWithoutAQuotaOneProbeOpensTheNextWindow(t *testing.T) {
	var s tale
	s.answer(0, 50, 0, 0, 10)
	if got := s.wait(10_051); got != 0 || s.free(10_051) != 1 {
		t.Errorf("after the reset the wait is %v and %v are left, want one probe", got, s.free(10_051))
	}
}

func TestARolledWindowCountsWhatMayHaveFallenIntoIt(t *testing.T) {
	var s tale
	s.answer(0, 50, 10, 5, 2) // ends within (1s, 2.05s]
	s.w.charge(1, moment(900*time.Millisecond))
	s.w.charge(1, moment(1500*time.Millisecond))
	s.w.charge(1, moment(1900*time.Millisecond))
	s.wait(2060)
	if got := s.free(2060); got != 8 {
		t.Errorf("%v are left of the new window, want 10 less the 2 that may have been counted in it", got)
	}
}

func TestAServerWhoseResetsComeLateIsWaitedForABitMoreEachTime(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 0, 10)
	at := 10_051
	var lates []time.Duration
	for range 5 {
		if got := s.wait(at); got != 0 {
			t.Fatalf("at %d ms the wait is %v", at, got)
		}
		s.answer(at, at+20, 60, 0, 0, true) // still of the old window
		lates = append(lates, time.Duration(s.w.late))
		at += 20 + int(s.w.late/int64(time.Millisecond)) + 1
	}
	for i, want := range []time.Duration{50, 200, 800, 1000, 1000} {
		if lates[i] != want*time.Millisecond {
			t.Errorf("lateness is %v, want 50ms, 200ms, 800ms and then 1s", lates)
			break
		}
	}
	s.answer(at, at+20, 60, 59, 60)
	if e := s.w.ends.left(moment(time.Duration(at+20) * time.Millisecond)); e < 60*time.Second || e > 61*time.Second+50*time.Millisecond {
		t.Errorf("%v are left of the next window, want a second more than it says", e)
	}
}

func TestTheLastFifthIsSpreadOverWhatIsLeft(t *testing.T) {
	var s tale
	s.answer(0, 50, 100, 100, 60)
	s.w.ends = edge{lo: moment(59 * time.Second).mono, hi: moment(60 * time.Second).mono}
	last := moment(10 * time.Second)
	at := moment(11 * time.Second)
	for _, x := range []struct {
		told float64
		want time.Duration
	}{
		{100, 0}, {21, 0},
		{20, 10*time.Second + 50*time.Second/21 - 11*time.Second},
		{9, 5*time.Second - time.Second},
		{1, 25*time.Second - time.Second},
	} {
		s.w.told = x.told
		if got := s.w.wait(at, 1, 0, 0, last.mono); (got - x.want).Abs() > time.Microsecond {
			t.Errorf("with %v of 100 left the wait is %v, want %v", x.told, got, x.want)
		}
	}
	s.w.told = 5
	if got := s.w.wait(at, 1, 0, 0, 0); got != 0 {
		t.Errorf("with nobody sent before the wait is %v", got)
	}
	s.w.quota = 0
	if got := s.w.wait(at, 1, 0, 0, last.mono); got != 0 {
		t.Errorf("without a quota there is no fifth, yet the wait is %v", got)
	}
}

func TestThoseWithManyAheadCountWholeWindows(t *testing.T) {
	var s tale
	s.answer(0, 50, 10, 0, 60)
	s.w.length = 60 * second
	base := s.wait(100)
	for _, x := range []struct {
		ahead   float64
		windows int
	}{{0, 0}, {9, 0}, {10, 1}, {19, 1}, {20, 2}, {1e6, 100_000}} {
		got := s.w.wait(moment(100*time.Millisecond), 1, x.ahead, 0, 0)
		if want := base + time.Duration(x.windows)*time.Minute; got != want {
			t.Errorf("with %v ahead the wait is %v, want %v", x.ahead, got, want)
		}
	}
}

func TestACostOfNothingWaitsForNothing(t *testing.T) {
	var s tale
	s.answer(0, 50, 10, 0, 60)
	if got := s.w.wait(moment(time.Second), 0, 0, 0, 0); got != 0 {
		t.Errorf("the wait is %v", got)
	}
	var fresh window
	if got := fresh.wait(moment(time.Second), 1, 0, 0, 0); got != 0 {
		t.Errorf("a window of which nothing was said makes wait %v", got)
	}
}

func TestWhatCostsMoreThanAWholeWindowGoesWhenAWindowIsWhole(t *testing.T) {
	var s tale
	s.answer(0, 50, 10, 5, 60)
	if got := s.w.wait(moment(time.Second), 25, 0, 0, 0); got < 59*time.Second || got > 60*time.Second {
		t.Errorf("with half a window left the wait is %v, want that for the reset", got)
	}
	s.answer(61_000, 61_050, 10, 10, 60)
	if got := s.w.wait(moment(61_060*time.Millisecond), 25, 0, 0, s.last); got != 0 {
		t.Errorf("with a whole window left the wait is %v", got)
	}
}

func TestABucketIsPacedAtTheRateThatItShows(t *testing.T) {
	w := window{metered: true, quota: 20, rate: 10, told: 0.5, toldAt: moment(0).mono}
	for _, x := range []struct {
		at   time.Duration
		cost float64
		want time.Duration
	}{{0, 1, 50 * time.Millisecond}, {50 * time.Millisecond, 1, 0}, {0, 10, 950 * time.Millisecond}, {time.Second, 10, 0}, {time.Hour, 20, 0}} {
		if got := w.wait(moment(x.at), x.cost, 0, 0, 0); (got - x.want).Abs() > time.Microsecond {
			t.Errorf("after %v a cost of %v waits %v, want %v", x.at, x.cost, got, x.want)
		}
	}
	if got := w.available(moment(time.Hour), 0); got != 20 {
		t.Errorf("an hour later %v are there, want no more than the bucket holds", got)
	}
}

func TestARefusalSlowsABucketOnceForAllThatWasUnderWay(t *testing.T) {
	s := tale{w: window{metered: true, quota: 20, rate: 10, rises: bucketRises, ends: edge{lo: 1, hi: 2}}}
	for i := range 5 {
		s.answer(i, 100+i, 20, 0, 1, true)
	}
	if s.w.rate != 10*slower {
		t.Errorf("the rate is %v after five refusals of one flight, want %v", s.w.rate, 10*slower)
	}
	s.answer(200, 250, 20, 0, 1, true)
	if got := s.w.rate; got < 10*slower*slower-1e-9 || got > 10*slower*slower+1e-9 {
		t.Errorf("the rate is %v after a refusal of the next flight", got)
	}
}

func TestOneRiseIsARefundAndTwoAreABucket(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 10, 40)
	s.answer(100, 150, 60, 12, 40)
	if s.w.rate != 0 || s.free(160) != 10 {
		t.Errorf("after one rise: rate %v, %v left", s.w.rate, s.free(160))
	}
	s.answer(200, 250, 60, 14, 40)
	if want := under * 46.0 / 40; s.w.rate < want*0.95 || s.w.rate > want*1.05 {
		t.Errorf("after two rises the rate is %v, want %v", s.w.rate, want)
	}
	if got := s.free(250); got != 14 {
		t.Errorf("%v are left of the bucket, want 14", got)
	}
}

func TestAWindowOfNoSecondIsNoLength(t *testing.T) {
	var w window
	w.measure(edge{hi: 5 * second}, edge{hi: 5*second + second/2})
	w.measure(edge{hi: 5 * second, wall: true}, edge{hi: 50 * second})
	if w.length != 0 {
		t.Errorf("length is %v", time.Duration(w.length))
	}
	w.measure(edge{hi: 5 * second}, edge{hi: 65 * second})
	w.measure(edge{hi: 65 * second}, edge{hi: 185 * second}) // a window in between went unseen
	if w.length != 60*second || !w.seen {
		t.Errorf("length is %v", time.Duration(w.length))
	}
	w.length, w.seen = 30*second, false
	w.measure(edge{hi: 5 * second}, edge{hi: 15 * second})
	if w.length != 30*second {
		t.Errorf("what was told gave way to what was seen: %v", time.Duration(w.length))
	}
}

func TestWhatIsAnsweredBeforeTheEndIsSureToComeIsNotOfTheNextWindow(t *testing.T) {
	var s tale
	s.answer(0, 50, 10, 5, 2) // ends within (1s, 2.05s]
	s.w.charge(1, moment(1020*time.Millisecond))
	s.answer(1030, 1040, 10, 4, 2) // not before 2.03s
	s.wait(2060)
	if got := s.free(2060); got != 10 {
		t.Errorf("%v are left of the new window, want all 10", got)
	}
}

func TestTwoResetsInARowTellTheLength(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 0, 10)
	s.wait(10_060)
	s.answer(10_070, 10_100, 60, 59, 60)
	if got := time.Duration(s.w.length); got < 60*time.Second || got > 60*time.Second+100*time.Millisecond {
		t.Errorf("the window is taken to be %v long, want a minute", got)
	}
}

func TestAfterTheResetAFigureCountsAlsoWhenItsOwnResetIsOver(t *testing.T) {
	var s tale
	s.answer(0, 50, 0, 0, 10)
	s.wait(10_060) // one probe: no quota is known
	s.answer(10_070, 10_100, 0, 7, 0)
	if got := s.free(10_110); got != 7 {
		t.Errorf("%v are left, want the 7 that were told", got)
	}
	s.answer(10_060, 10_120, 0, 3, 0)
	if got := s.free(10_130); got != 3 {
		t.Errorf("%v are left, want the 3 of an overlapping flight", got)
	}
}

func TestALastWordOfTheOldWindowDoesNotCloseTheNewOne(t *testing.T) {
	var s tale
	s.answer(0, 50, 60, 0, 10)
	s.wait(10_060)
	sent, received := moment(9_990*time.Millisecond), moment(10_070*time.Millisecond)
	r := Reading{Limit: Limit{Quota: 60}, Has: HasQuota | HasRemaining, Reset: received.time().Add(300 * time.Millisecond)}
	s.w.learn(&r, new(offset).edgeOf(&r, &Feedback{}, sent, received), sent, received, s.l, false)
	if got := s.free(10_080); got != 60 {
		t.Errorf("%v are left, want the 60 of the new window", got)
	}
}
