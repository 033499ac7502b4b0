package heed

import (
	"fmt"
	"hash/maphash"
	"testing"
	"time"
)

// crowd is a set of scopes with a clock that is set by hand.
type crowd struct {
	*scopes
	at time.Duration
}

func newCrowd(most int) *crowd { return &crowd{scopes: newScopes(maphash.MakeSeed(), most)} }

func (s *crowd) host(i int) *scope {
	return s.get(scopeKey{scheme: "https", host: fmt.Sprint("host-", i)}, func() instant { return moment(s.at) })
}

func (s *crowd) has(i int) bool {
	return s.live.Contains(scopeKey{scheme: "https", host: fmt.Sprint("host-", i)})
}

func TestAScopeIsMadeOnce(t *testing.T) {
	s := newCrowd(10)
	a := s.host(1)
	if s.host(2) == a || s.host(1) != a || a.name != "https://host-1" {
		t.Errorf("scope %q is not what it was", a.name)
	}
}

func TestACrawlOfManyHostsKeepsTheBound(t *testing.T) {
	const n = 200_000
	s := newCrowd(maxScopes)
	now := func() instant { return moment(s.at) }
	for i := range n {
		s.get(scopeKey{scheme: "https", host: "h", credential: uint64(i) + 1}, now)
	}
	if s.live.Len() != maxScopes || len(s.debts) != 0 {
		t.Errorf("%d scopes and %d debts are kept, want %d and none", s.live.Len(), len(s.debts), maxScopes)
	}
}

func TestTheScopeUsedLongestAgoGoesFirst(t *testing.T) {
	s := newCrowd(3)
	s.host(1)
	s.host(2)
	s.host(3)
	s.host(1)
	s.host(4)
	if s.has(2) || !s.has(1) || !s.has(3) || !s.has(4) {
		t.Errorf("kept 1: %v, 2: %v, 3: %v, 4: %v; want all but 2", s.has(1), s.has(2), s.has(3), s.has(4))
	}
}

func TestWhoOwesNothingGoesBeforeWhoOwes(t *testing.T) {
	s := newCrowd(3)
	s.host(1).ledger.hold = moment(time.Hour).mono
	s.host(2)
	s.host(3)
	s.host(4)
	if !s.has(1) || s.has(2) || len(s.debts) != 0 {
		t.Errorf("1 is kept: %v, 2 is kept: %v, %d debts", s.has(1), s.has(2), len(s.debts))
	}
}

func TestAScopeWithSomebodyInItStaysAndTheCrowdIsWornDownLater(t *testing.T) {
	s := newCrowd(10)
	var all []*scope
	for i := range 50 {
		busy := s.host(i)
		busy.ledger.spend(moment(0), nil, one, false)
		all = append(all, busy)
	}
	if s.live.Len() != 50 {
		t.Errorf("%d of 50 busy scopes are kept", s.live.Len())
	}
	for _, c := range all {
		c.ledger.land(moment(0), nil, one, true)
	}
	for i := range 100 {
		s.host(1000 + i)
	}
	if s.live.Len() > 10 {
		t.Errorf("%d scopes are kept, want 10 again", s.live.Len())
	}
}

func TestADebtOutlivesItsScope(t *testing.T) {
	s := newCrowd(2)
	for i := range 5 {
		s.host(i).ledger.hold = moment(time.Hour).mono
	}
	if s.live.Len() > 2 || len(s.debts) != 3 {
		t.Fatalf("%d scopes and %d debts, want 2 and 3", s.live.Len(), len(s.debts))
	}
	s.at = time.Minute
	if v := s.host(0).ledger.decide(moment(s.at), nil, one, 0); v.wait != 59*time.Minute || v.reason != ReasonHold {
		t.Errorf("who comes back is told %+v, want the hold that it had", v)
	}
	s.at = 2 * time.Hour
	if v := s.host(1).ledger.decide(moment(s.at), nil, one, 0); v.wait != 0 {
		t.Errorf("after the hold it still waits %v", v.wait)
	}
}

func TestASpentLimitIsADebtToo(t *testing.T) {
	s := newCrowd(1)
	l := &s.host(0).ledger
	sent := sendAt(l, 0)
	landAt(l, sent, 0, Feedback{Readings: []Reading{reading(60, 0, time.Minute)}})
	s.host(1)
	if v := s.host(0).ledger.decide(moment(0), nil, one, 0); v.wait != time.Minute {
		t.Errorf("forgotten and back again it waits %v, want a minute", v.wait)
	}
}

func TestDebtsAreSweptWhenTheyAreOverAndAtMostOnceAMinute(t *testing.T) {
	s := newCrowd(1)
	s.debts = map[uint64]int64{1: moment(time.Minute).mono, 2: moment(time.Hour).mono, 3: moment(2 * time.Hour).mono}
	s.purge(moment(2 * time.Minute))
	if len(s.debts) != 2 {
		t.Errorf("%d debts after the sweep, want 2", len(s.debts))
	}
	s.purge(moment(2*time.Minute + 30*time.Second))
	if _, ok := s.debts[3]; len(s.debts) != 1 || !ok {
		t.Errorf("debts are %v; with no sweep due the one that ends soonest goes", s.debts)
	}
	s.purge(moment(10 * time.Minute))
	if len(s.debts) != 0 {
		t.Errorf("debts are %v; a sweep that finds nothing still makes room", s.debts)
	}
}

func TestDebtsAreBounded(t *testing.T) {
	s := newCrowd(1)
	s.debts = make(map[uint64]int64, maxDebts)
	for i := range uint64(maxDebts) {
		s.debts[i] = moment(time.Hour).mono + int64(i)
	}
	for i := range 100 {
		s.remember(scopeKey{name: fmt.Sprint(i)}, moment(2*time.Hour).mono, moment(0))
	}
	if len(s.debts) > maxDebts {
		t.Errorf("%d debts are kept", len(s.debts))
	}
	s.remember(scopeKey{name: "over"}, moment(-time.Minute).mono, moment(0))
	if _, ok := s.debts[maphash.Comparable(s.seed, scopeKey{name: "over"})]; ok {
		t.Error("a debt that is over is remembered")
	}
}
