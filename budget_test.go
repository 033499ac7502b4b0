package heed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// take asks a Budget that is expected to be able to decide.
func take(t *testing.T, b Budget, limits []Limit, c Cost) Grant {
	t.Helper()
	g, err := b.Take(t.Context(), "scope", limits, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestABudgetGrantsAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		limits := []Limit{{Name: "wide", Quota: 100, Window: time.Minute}, {Name: "narrow", Quota: 2, Window: time.Minute}}
		for range 2 {
			if g := take(t, b, limits, one); !g.OK || g.Wait != 0 || g.ID == 0 {
				t.Fatalf("%+v with units in both", g)
			}
		}
		for range 200 {
			if g := take(t, b, limits, one); g.OK || g.Wait != time.Minute || g.Binding != 1 || g.ID != 0 {
				t.Fatalf("%+v with the narrow one spent", g)
			}
		}
		// What was denied took nothing of the wide one.
		if g := take(t, b, limits[:1], Cost{Requests: 98}); !g.OK {
			t.Errorf("%+v; the denied takes were charged", g)
		}
	})
}

func TestACostBeyondALimitIsAnErrorThatSaysSo(t *testing.T) {
	limit := Limit{Name: "small", Quota: 5, Window: time.Second}
	_, err := NewBudget().Take(t.Context(), "scope", []Limit{limit}, Cost{Requests: 6})
	var limited *LimitError
	if !errors.As(err, &limited) || limited.Reason != ReasonImpossible || limited.Limit != limit || limited.Scope != "scope" {
		t.Errorf("error %v, want an impossible cost", err)
	}
}

func TestABudgetIsNotAskedForADeadContext(t *testing.T) {
	why := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if g, err := NewBudget().Take(ctx, "scope", nil, one); !errors.Is(err, why) || g.OK {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestSettleGivesBackWhatWasNotUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []Limit{{Quota: 100, Window: time.Hour, Unit: UnitTokens, Algorithm: AlgorithmTokenBucket}}
		for _, x := range []struct {
			used Cost
			left float64
		}{
			{Cost{Tokens: 80}, 20}, {Cost{Tokens: 30}, 70}, {Cost{}, 100}, {Cost{Requests: 1}, 100}, {Cost{Tokens: 95}, 5},
		} {
			b := NewBudget()
			g := take(t, b, limits, Cost{Requests: 1, Tokens: 80})
			for range 3 {
				if err := b.Settle(t.Context(), g, x.used); err != nil {
					t.Fatal(err)
				}
			}
			if g := take(t, b, limits, Cost{Tokens: x.left}); !g.OK {
				t.Errorf("used %+v: the %v that are left are not granted: %+v", x.used, x.left, g)
			}
			if g := take(t, b, limits, Cost{Tokens: 1}); g.OK {
				t.Errorf("used %+v: more than %v was left", x.used, x.left)
			}
		}
	})
}

func TestSettlingWhatWasNeverGrantedDoesNothing(t *testing.T) {
	b := NewBudget()
	for _, g := range []Grant{{}, {OK: true, ID: 99}} {
		if err := b.Settle(t.Context(), g, one); err != nil {
			t.Error(err)
		}
	}
	if l := b.(*memoryBudget).scopes["scope"]; l != nil {
		t.Errorf("a scope was made: %+v", l)
	}
}

func TestABudgetObeysTheServersWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		learn := func(fb Feedback) {
			g := take(t, b, nil, one)
			if !g.OK {
				t.Fatalf("%+v before there is anything to wait for", g)
			}
			fb.Sent = time.Now().Round(0)
			time.Sleep(10 * time.Millisecond)
			_ = b.Settle(t.Context(), g, one)
			_ = b.Learn(t.Context(), "scope", fb)
		}
		learn(Feedback{Readings: []Reading{{Limit: Limit{Quota: 60}, Has: HasQuota | HasRemaining, Remaining: 0, Reset: time.Now().Add(30 * time.Second)}}})
		if g := take(t, b, nil, one); g.OK || g.Wait < 29*time.Second || g.Wait > 30*time.Second || g.Binding != -1 {
			t.Errorf("a spent limit: %+v", g)
		}
		if g, _ := b.Take(t.Context(), "another scope", nil, one); !g.OK {
			t.Errorf("another scope: %+v", g)
		}
		time.Sleep(time.Minute)
		learn(Feedback{Limited: true, Kind: KindPrimary, RetryAt: time.Now().Add(time.Minute)})
		if g := take(t, b, nil, one); g.OK || g.Wait < 59*time.Second || g.Wait > 61*time.Second {
			t.Errorf("a hold: %+v", g)
		}
		time.Sleep(62 * time.Second)
		if g := take(t, b, nil, one); !g.OK {
			t.Errorf("after the hold: %+v", g)
		}
	})
}

func TestAStepOfTheClockDoesNotMakeOldWordsNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		// Sent before the wall clock was set back: by its face in the future.
		for _, sent := range []time.Time{time.Now().Add(10 * time.Minute), time.Now().Add(-10 * time.Minute), {}} {
			if err := b.Learn(t.Context(), "scope", Feedback{Sent: sent, Readings: []Reading{
				{Limit: Limit{Quota: 60}, Has: HasQuota | HasRemaining, Remaining: 5, Reset: time.Now().Add(30 * time.Second)}}}); err != nil {
				t.Fatal(err)
			}
			w := &b.(*memoryBudget).scopes["scope"].windows[0]
			if now := b.(*memoryBudget).line.now(); w.newest > now.mono {
				t.Errorf("sent %v: the newest answer is of the future", sent)
			}
		}
	})
}

func TestABudgetWithOnlyAnswersToWaitForIsAskedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget()
		g := take(t, b, nil, one)
		_ = b.Settle(t.Context(), g, one)
		_ = b.Learn(t.Context(), "scope", Feedback{Readings: []Reading{{Has: HasRemaining, Remaining: 1}}})
		if g := take(t, b, nil, one); !g.OK {
			t.Fatalf("one is left: %+v", g)
		}
		if g := take(t, b, nil, one); g.OK || g.Wait != again {
			t.Errorf("with the last one in flight: %+v, want to ask again in %v", g, again)
		}
	})
}

func TestABudgetForgetsOnlyWhoOwesNothingAndIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget().(*memoryBudget)
		hold := Feedback{Limited: true, Kind: KindPrimary, RetryAt: time.Now().Add(time.Hour)}
		if err := b.Learn(t.Context(), "held", hold); err != nil {
			t.Fatal(err)
		}
		for i := range maxScopes + 500 {
			g, err := b.Take(t.Context(), fmt.Sprint("scope ", i), nil, one)
			if err != nil || !g.OK {
				t.Fatal(g, err)
			}
			_ = b.Settle(t.Context(), g, one)
		}
		if len(b.scopes) > maxScopes || len(b.grants) != 0 {
			t.Errorf("%d scopes and %d grants are kept", len(b.scopes), len(b.grants))
		}
		if g, _ := b.Take(t.Context(), "held", nil, one); g.OK {
			t.Error("the hold was forgotten")
		}
	})
}

func TestManyAtOnceNeverGetMoreThanThereIs(t *testing.T) {
	b := NewBudget()
	limits := []Limit{{Quota: 100, Window: time.Hour}, {Quota: 1000, Window: 24 * time.Hour}}
	var granted atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 100 {
				g, err := b.Take(t.Context(), "scope", limits, one)
				if err != nil {
					t.Error(err)
					return
				}
				if !g.OK {
					continue
				}
				granted.Add(1)
				if n%2 == i%2 {
					_ = b.Settle(t.Context(), g, one)
					_ = b.Learn(t.Context(), "scope", Feedback{Sent: time.Now()})
				}
			}
		})
	}
	wg.Wait()
	if granted.Load() != 100 {
		t.Errorf("%d were granted of 100", granted.Load())
	}
}

func TestWhenAllOweSomethingABudgetForgetsWhoIsNotUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget().(*memoryBudget)
		for i := range maxScopes {
			l := &ledger{hold: b.line.now().mono + int64(time.Hour)}
			if i%2 == 0 {
				l.flights = 1
			}
			b.scopes[fmt.Sprint("scope ", i)] = l
		}
		if _, err := b.Take(t.Context(), "newcomer", nil, one); err != nil {
			t.Fatal(err)
		}
		under := 0
		for _, l := range b.scopes {
			under += l.flights
		}
		if len(b.scopes) != maxScopes || under != maxScopes/2+1 { // the newcomer is under way too
			t.Errorf("%d scopes with %d under way are kept", len(b.scopes), under)
		}
	})
}
