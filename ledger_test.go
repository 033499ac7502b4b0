package heed

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

var one = Cost{Requests: 1}

// sendAt spends one request and gives the instant.
func sendAt(l *ledger, at time.Duration) instant {
	now := moment(at)
	l.decide(now, nil, one, 0)
	l.spend(now, nil, one, false)
	return now
}

// landAt ends a flight with an answer.
func landAt(l *ledger, sent instant, at time.Duration, fb Feedback) time.Duration {
	now := moment(at)
	l.land(now, nil, one, true)
	return l.learn(sent, now, &fb, 0)
}

func refusal(until time.Duration) Feedback {
	fb := Feedback{Limited: true, Kind: KindPrimary}
	if until > 0 {
		fb.RetryAt = june.Add(until)
	}
	return fb
}

func reading(quota, remaining float64, reset time.Duration) Reading {
	r := Reading{Limit: Limit{Quota: quota}, Remaining: remaining, Has: HasQuota | HasRemaining, From: "Ratelimit-Remaining"}
	if reset > 0 {
		r.Reset = june.Add(reset)
	}
	return r
}

func TestAnUnknownScopeBeginsWithOneThenTwoThenFour(t *testing.T) {
	var l ledger
	gone := map[time.Duration]int{}
	for at := time.Duration(0); at <= 1500*time.Millisecond; at += 10 * time.Millisecond {
		for range 10 {
			if l.decide(moment(at), nil, one, 0).wait == 0 {
				sendAt(&l, at)
				gone[at]++
			}
		}
	}
	want := map[time.Duration]int{0: 1, 500 * time.Millisecond: 1, time.Second: 2, 1500 * time.Millisecond: 10}
	if fmt.Sprint(gone) != fmt.Sprint(want) {
		t.Errorf("sent %v, want %v", gone, want)
	}
}

func TestANewcomerIsToldHowLongTheStepLasts(t *testing.T) {
	var l ledger
	sendAt(&l, 0)
	if v := l.decide(moment(200*time.Millisecond), nil, one, 0); v.wait != 300*time.Millisecond || v.reason != ReasonProbe {
		t.Errorf("%+v, want 300ms for the probe", v)
	}
}

func TestAnAnswerWithoutLimitsLetsTwiceAsManyGo(t *testing.T) {
	var l ledger
	steps := []int{}
	at := time.Duration(0)
	for range 4 {
		var sent []instant
		for len(sent) < 20 && l.decide(moment(at), nil, one, 0).wait == 0 {
			sent = append(sent, sendAt(&l, at))
		}
		steps = append(steps, len(sent))
		for _, s := range sent {
			landAt(&l, s, at+50*time.Millisecond, Feedback{})
		}
		at += 100 * time.Millisecond
	}
	if !slices.Equal(steps, []int{1, 2, 4, 20}) {
		t.Errorf("steps of %v, want 1, 2, 4 and all", steps)
	}
}

func TestAnAnswerThatNamesALimitLetsAllGoThatItAllows(t *testing.T) {
	var l ledger
	s := sendAt(&l, 0)
	landAt(&l, s, 50*time.Millisecond, Feedback{Readings: []Reading{reading(60, 7, time.Minute)}})
	n := 0
	l.last = 0
	for n < 50 && l.decide(moment(60*time.Millisecond), nil, one, 0).wait == 0 {
		l.spend(moment(60*time.Millisecond), nil, one, false)
		l.last = 0 // pacing is another story
		n++
	}
	if n != 7 {
		t.Errorf("%d went, want the 7 that remain", n)
	}
	if v := l.decide(moment(60*time.Millisecond), nil, one, 0); v.reason != ReasonLimit || v.limit.Quota != 60 {
		t.Errorf("the next waits for %+v, want the limit of 60", v)
	}
}

func TestNobodyWaitsBehindAQuietFirstSend(t *testing.T) {
	var l ledger
	l.spend(moment(0), nil, one, true)
	if v := l.decide(moment(0), nil, one, 0); v.wait != 0 {
		t.Errorf("%+v behind a stream", v)
	}
}

func TestWithRulesThereIsNoSlowStart(t *testing.T) {
	var l ledger
	known := []Limit{{Quota: 10, Window: time.Second}}
	for range 10 {
		if v := l.decide(moment(0), known, one, 0); v.wait != 0 {
			t.Fatalf("%+v with units left", v)
		}
		l.spend(moment(0), known, one, false)
	}
	if v := l.decide(moment(0), known, one, 0); v.wait != time.Second || v.reason != ReasonRule || v.limit != known[0] {
		t.Errorf("the eleventh: %+v, want a second for the rule", v)
	}
	if v := l.decide(moment(0), known, Cost{Requests: 11}, 0); !v.impossible || v.reason != ReasonImpossible || v.limit != known[0] {
		t.Errorf("eleven at once: %+v, want impossible", v)
	}
}

func TestANamedWaitHoldsTheScopeAndJitterOnlyAdds(t *testing.T) {
	for _, random := range []float64{0, 0.5, 1} {
		var l ledger
		s := sendAt(&l, 0)
		l.land(moment(time.Second), nil, one, true)
		fb := refusal(11 * time.Second)
		held := l.learn(s, moment(time.Second), &fb, random)
		if held < 10*time.Second || held > 11*time.Second {
			t.Errorf("dice %v: held for %v, want 10s and up to 1s more", random, held)
		}
		if v := l.decide(moment(time.Second), nil, one, 0); v.wait != held || v.reason != ReasonHold {
			t.Errorf("dice %v: %+v, want a hold of %v", random, v, held)
		}
	}
}

func TestAShorterHoldDoesNotShortenALongerOne(t *testing.T) {
	var l ledger
	a, b := sendAt(&l, 0), sendAt(&l, 0)
	landAt(&l, a, time.Second, refusal(time.Minute))
	if held := landAt(&l, b, time.Second, refusal(5*time.Second)); held != 0 {
		t.Errorf("the shorter hold was reported as %v", held)
	}
	if v := l.decide(moment(time.Second), nil, one, 0); v.wait != 59*time.Second {
		t.Errorf("%+v, want the longer hold", v)
	}
}

func TestAfterAHoldOneGoesFirst(t *testing.T) {
	var l ledger
	s := sendAt(&l, 0)
	landAt(&l, s, time.Second, Feedback{Readings: []Reading{reading(60, 50, time.Minute)}})
	s = sendAt(&l, time.Second)
	landAt(&l, s, 2*time.Second, refusal(10*time.Second))
	if v := l.decide(moment(10*time.Second), nil, one, 0); v.wait != 0 {
		t.Fatalf("%+v after the hold", v)
	}
	sendAt(&l, 10*time.Second)
	if v := l.decide(moment(10*time.Second), nil, one, 0); v.wait != rampStep || v.reason != ReasonProbe {
		t.Errorf("%+v, want the second to wait for the first", v)
	}
}

func TestRefusalsWithoutAWaitBackOffLongerEachTime(t *testing.T) {
	var l ledger
	at := time.Duration(0)
	var holds []time.Duration
	for range 8 {
		s := sendAt(&l, at)
		at += 10 * time.Millisecond
		held := landAt(&l, s, at, refusal(0))
		holds = append(holds, held)
		at += held
	}
	want := []time.Duration{500, 1000, 2000, 4000, 8000, 15000, 15000, 15000} // the lower end of the upper half of 1, 2, 4, ... 30 s
	for i := range want {
		if holds[i] != want[i]*time.Millisecond {
			t.Fatalf("pauses are %v", holds)
		}
	}
	s := sendAt(&l, at)
	landAt(&l, s, at+time.Millisecond, Feedback{})
	s = sendAt(&l, at+time.Second)
	if held := landAt(&l, s, at+2*time.Second, refusal(0)); held != 500*time.Millisecond {
		t.Errorf("after a success the pause is %v, want the first again", held)
	}
}

func TestTheBackoffOfAScopeNeverOverflows(t *testing.T) {
	for _, n := range []int{0, 1, 5, 62, 63, 64, 1 << 20, 1<<62 - 1} {
		for _, random := range []float64{0, 1} {
			if got := penalty(n, random); got < penaltyBase/2 || got > penaltyCap {
				t.Errorf("after %d refusals the pause is %v", n, got)
			}
		}
	}
}

func TestRefusalsThatWereInFlightTogetherCountOnce(t *testing.T) {
	var l ledger
	var sent []instant
	for range 10 {
		sent = append(sent, sendAt(&l, 0))
	}
	for i, s := range sent {
		held := landAt(&l, s, 100*time.Millisecond+time.Duration(i), refusal(0))
		if (held > 0) != (i == 0) {
			t.Errorf("refusal %d held for %v", i, held)
		}
	}
	if l.refusals != 1 {
		t.Errorf("%d refusals are counted, want 1", l.refusals)
	}
}

func TestASuccessThatWasUnderWayDoesNotEndTheBackoff(t *testing.T) {
	var l ledger
	a, b := sendAt(&l, 0), sendAt(&l, 0)
	landAt(&l, a, 100*time.Millisecond, refusal(0))
	landAt(&l, b, 200*time.Millisecond, Feedback{})
	s := sendAt(&l, time.Second)
	if held := landAt(&l, s, 1100*time.Millisecond, refusal(0)); held != time.Second {
		t.Errorf("the second pause is %v, want twice the first", held)
	}
}

func TestAHintOfNothingIsNoHint(t *testing.T) {
	for name, at := range map[string]time.Time{"now": june.Add(100 * time.Millisecond), "past": june} {
		var l ledger
		s := sendAt(&l, 0)
		fb := Feedback{Limited: true, Kind: KindPrimary, RetryAt: at}
		if held := landAt(&l, s, 100*time.Millisecond, fb); held != penaltyBase/2 {
			t.Errorf("%s: held for %v, want the backoff", name, held)
		}
	}
}

func TestOverloadHoldsOnlyWithANamedWait(t *testing.T) {
	var l ledger
	s := sendAt(&l, 0)
	if held := landAt(&l, s, 0, Feedback{Kind: KindOverload}); held != 0 {
		t.Errorf("a bare overload holds for %v", held)
	}
	s = sendAt(&l, 0)
	if held := landAt(&l, s, 0, Feedback{Kind: KindOverload, RetryAt: june.Add(7 * time.Second)}); held != 7*time.Second {
		t.Errorf("an overload with a wait of 7s holds for %v", held)
	}
	s = sendAt(&l, 8*time.Second)
	if held := landAt(&l, s, 8*time.Second, Feedback{RetryAt: june.Add(time.Hour)}); held != 0 {
		t.Errorf("an answer that is no refusal holds for %v", held)
	}
}

func TestALongWindowBeginsWithOneRequest(t *testing.T) {
	for _, x := range []struct {
		reset time.Duration
		told  time.Duration
		want  int
	}{{time.Minute, time.Minute, 1}, {2 * time.Second, 2 * time.Second, 20}, {2 * time.Second, 0, 1}} {
		var l ledger
		s := sendAt(&l, 0)
		r := reading(20, 0, x.reset)
		r.Limit.Window = x.told
		landAt(&l, s, 50*time.Millisecond, Feedback{Readings: []Reading{r}})
		n := 0
		at := x.reset + 100*time.Millisecond
		for n < 50 && l.decide(moment(at), nil, one, 0).wait == 0 {
			l.spend(moment(at), nil, one, false)
			n++
		}
		if n != x.want {
			t.Errorf("a window of %v (said: %v): %d went at once, want %d", x.reset, x.told, n, x.want)
		}
	}
}

func TestAWindowWhoseBeginningIsInDoubtBeginsWithOneRequest(t *testing.T) {
	for _, step := range []time.Duration{0, time.Hour} {
		var l ledger
		s := sendAt(&l, 0)
		r := reading(20, 0, 3*time.Second)
		r.Limit.Window, r.absolute = 3*time.Second, true
		landAt(&l, s, 50*time.Millisecond, Feedback{Readings: []Reading{r}})
		now := moment(3100 * time.Millisecond)
		if step != 0 {
			now = moment(time.Second)
			now.wall += int64(step)
		}
		n := 0
		for n < 50 && l.decide(now, nil, one, 0).wait == 0 {
			l.spend(now, nil, one, false)
			n++
		}
		if want := map[bool]int{true: 20, false: 1}[step == 0]; n != want {
			t.Errorf("step of %v: %d went at once, want %d", step, n, want)
		}
	}
}

func TestOnlySoManyLimitsOfOneScopeAreKept(t *testing.T) {
	var l ledger
	for i := range 10 * maxWindows {
		s := sendAt(&l, time.Duration(i)*time.Second)
		r := reading(60, 50, time.Hour)
		r.Limit.Name = fmt.Sprint("name ", i)
		landAt(&l, s, time.Duration(i)*time.Second+time.Millisecond, Feedback{Readings: []Reading{r}})
	}
	if len(l.windows) != maxWindows {
		t.Errorf("%d are kept, want %d", len(l.windows), maxWindows)
	}
	for i := range l.windows {
		if l.windows[i].heard < moment(time.Duration(9*maxWindows)*time.Second).mono-second {
			t.Errorf("an old one was kept: %s", l.windows[i].id.name)
		}
	}
}

func TestTheTightestOfSeveralLimitsBinds(t *testing.T) {
	var l ledger
	s := sendAt(&l, 0)
	minute, day := reading(60, 0, 20*time.Second), reading(900, 0, time.Hour)
	minute.Limit.Name, day.Limit.Name = "minute", "day"
	landAt(&l, s, 0, Feedback{Readings: []Reading{minute, day}})
	if v := l.decide(moment(0), nil, one, 0); v.limit.Name != "day" || v.wait != time.Hour {
		t.Errorf("%+v, want the day's hour", v)
	}
	s = moment(time.Millisecond)
	day.Remaining, day.Reset = 500, june.Add(2*time.Hour)
	l.flights, l.inflight = 1, one
	landAt(&l, s, time.Millisecond, Feedback{Readings: []Reading{day}})
	if v := l.decide(moment(time.Millisecond), nil, one, 0); v.limit.Name != "minute" || v.wait > 20*time.Second {
		t.Errorf("%+v, want the minute's 20s", v)
	}
}

func TestALimitOfAnotherUnitIsSpentByItsOwnCost(t *testing.T) {
	var l ledger
	s := sendAt(&l, 0)
	r := reading(1000, 300, time.Minute)
	r.Limit.Unit = UnitTokens
	landAt(&l, s, 0, Feedback{Readings: []Reading{r}})
	if v := l.decide(moment(0), nil, one, 0); v.wait != 0 {
		t.Errorf("a request of no tokens waits: %+v", v)
	}
	if v := l.decide(moment(0), nil, Cost{Requests: 1, Tokens: 400}, 0); v.wait != time.Minute {
		t.Errorf("400 of 300 tokens wait %v, want for the reset", v.wait)
	}
	l.spend(moment(0), nil, Cost{Tokens: 250}, false)
	if v := l.decide(moment(0), nil, Cost{Tokens: 100}, 0); v.wait == 0 {
		t.Error("tokens in flight are not taken off")
	}
	l.land(moment(0), nil, Cost{Tokens: 250}, false)
	if v := l.decide(moment(0), nil, Cost{Tokens: 300}, 0); v.wait != 0 {
		t.Errorf("what was never sent is not given back: %+v", v)
	}
}

func TestWhatWasUsedIsChargedAndTheRestGivenBack(t *testing.T) {
	known := []Limit{{Quota: 100, Window: time.Minute, Unit: UnitTokens, Algorithm: AlgorithmTokenBucket}}
	for _, x := range []struct{ taken, used, left float64 }{{50, 50, 50}, {50, 20, 80}, {50, 0, 100}, {50, 80, 20}, {50, 180, -80}} {
		var l ledger
		l.spend(moment(0), known, Cost{Tokens: x.taken}, false)
		l.settle(moment(0), known, Cost{Tokens: x.taken}, Cost{Tokens: x.used})
		if got := l.meter(known[0]).bucket.TokensAt(l.pace(moment(0))); got != max(x.left, 50-100) {
			t.Errorf("taken %v and used %v: %v are left, want %v", x.taken, x.used, got, x.left)
		}
		if l.inflight != (Cost{}) || l.flights != 0 {
			t.Errorf("%+v is still under way", l.inflight)
		}
	}
}

func TestRulesAreCountedOnAClockThatNeverGoesBack(t *testing.T) {
	for _, a := range []Algorithm{AlgorithmUnknown, AlgorithmFixedWindow, AlgorithmSlidingLog, AlgorithmSlidingCounter, AlgorithmTokenBucket, AlgorithmLeakyBucket} {
		known := []Limit{{Quota: 1, Window: time.Minute, Burst: 1, Algorithm: a}}
		var l ledger
		l.spend(moment(0), known, one, false)
		before := l.decide(moment(time.Second), known, one, 0).wait
		back := moment(time.Second)
		back.wall -= int64(time.Hour)
		if got := l.decide(back, known, one, 0).wait; got != before || got <= 0 || got > 2*time.Minute {
			t.Errorf("algorithm %d: the wait is %v after a step back of an hour, %v before", a, got, before)
		}
		// Two callers whose instants differ by a step: nothing is gained by going to and fro.
		admitted := 0
		for i := range 1000 {
			now := moment(time.Second + time.Duration(i)*time.Millisecond/2)
			if i%2 == 0 {
				now.wall -= int64(10 * time.Second)
			}
			if l.decide(now, known, one, 0).wait == 0 {
				l.spend(now, known, one, false)
				admitted++
			}
		}
		if admitted > 1 {
			t.Errorf("algorithm %d: %d admitted within half a second by a clock that goes to and fro", a, admitted)
		}
	}
}

func TestAnIdleLedgerOwesNothing(t *testing.T) {
	known := []Limit{{Quota: 2, Window: time.Minute}}
	var l ledger
	if !l.idle(moment(0)) || l.debt(moment(0)) != 0 {
		t.Error("a new ledger owes something")
	}
	l.spend(moment(0), known, one, false)
	if l.idle(moment(0)) {
		t.Error("a ledger with a flight is idle")
	}
	l.land(moment(0), known, one, true)
	if l.idle(moment(0)) || l.debt(moment(0)) != 0 {
		t.Errorf("with one of two units spent it is idle %v and owes until %d", l.idle(moment(0)), l.debt(moment(0)))
	}
	l.spend(moment(time.Second), known, one, false)
	l.land(moment(time.Second), known, one, true)
	if got := time.Duration(l.debt(moment(time.Second)) - moment(0).mono); got != time.Minute {
		t.Errorf("with all spent it owes until %v, want a minute", got)
	}
	if !l.idle(moment(2 * time.Minute)) {
		t.Error("after two minutes it is not idle")
	}
	s := sendAt(&l, 2*time.Minute)
	landAt(&l, s, 2*time.Minute, refusal(3*time.Minute))
	if got := time.Duration(l.debt(moment(2*time.Minute)) - moment(0).mono); got != 3*time.Minute {
		t.Errorf("under a hold it owes until %v, want 3m", got)
	}
	s = sendAt(&l, 4*time.Minute)
	landAt(&l, s, 4*time.Minute, Feedback{Readings: []Reading{reading(60, 0, 9*time.Minute)}})
	if got := time.Duration(l.debt(moment(4*time.Minute)) - moment(0).mono); got != 9*time.Minute {
		t.Errorf("with a spent limit it owes until %v, want 9m", got)
	}
	if l.debt(moment(10*time.Minute)) != 0 {
		t.Error("after the reset it still owes")
	}
}
