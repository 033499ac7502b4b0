package heed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// caller is a caller of one host, whose calls are judged by how long they take.
type caller struct {
	t  *testing.T
	tr *Transport
}

// get closes the answer at once, and tells how long the call took.
func (b caller) get(ctx context.Context, url string) (time.Duration, error) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	resp, err := roundTrip(b.t, b.tr, req)
	if err == nil {
		resp.Body.Close()
	}
	return time.Since(began), err
}

// polled is a server one of whose paths answers after an hour, the others at once.
type polled struct{ others reply }

func (p polled) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/poll" {
		return late(time.Hour, answer(200))(r)
	}
	return late(10*time.Millisecond, p.others)(r)
}

func TestSendsThatNobodyAnswersDoNotStopAllOthers(t *testing.T) {
	for name, c := range map[string]struct {
		fields []string
		polls  int
		pause  time.Duration
	}{
		"a limit without a reset": {[]string{"X-RateLimit-Remaining: 1"}, 1, time.Second},
		"a window that is over":   {[]string{"X-RateLimit-Limit: 4", "X-RateLimit-Remaining: 3", "X-RateLimit-Reset: 10"}, 4, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				b := caller{t, &Transport{Base: polled{answer(200, c.fields...)}}}
				if _, err := b.get(ctx, "http://api.test/"); err != nil {
					t.Fatal(err)
				}
				for range c.polls {
					go b.get(ctx, "http://api.test/poll")
				}
				time.Sleep(c.pause)
				if took, err := b.get(ctx, "http://api.test/"); err != nil || took > 2*time.Duration(overdue) {
					t.Errorf("a call behind sends without an answer took %v, %v", took, err)
				}
				cancel()
			})
		})
	}
}

func TestABucketIsNotHeldUpBySendsThatNobodyAnswers(t *testing.T) {
	at := func(s int) instant { return instant{mono: int64(s) * int64(time.Second)} }
	w := window{metered: true, quota: 5, told: 5, rate: 1, toldAt: at(1).mono}
	if d := w.wait(at(20), 1, 0, 5, at(19).mono); d <= 0 {
		t.Errorf("behind as many sends as the bucket holds, the last a second ago: %v", d)
	}
	if d := w.wait(at(30), 1, 0, 5, at(19).mono); d != 0 {
		t.Errorf("behind as many sends as the bucket holds, long unanswered: %v", d)
	}
	w.told, w.toldAt, w.rate = 0, at(30).mono, 1e-12
	if d := w.wait(at(30), 1, 0, 0, at(29).mono); d != maxWait {
		t.Errorf("a bucket that hardly drips makes it wait %v", d)
	}
}

func TestABudgetGrantsWhereNobodyMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := caller{t, &Transport{
			Base: polled{answer(200)}, Budget: NewBudget(),
			Throttle: Throttle{MaxQueue: -1, Rules: []Rule{{Match: "/", Limits: []Limit{{Quota: 1, Window: time.Minute}}}}},
		}}
		if _, err := b.get(t.Context(), "http://api.test/"); err != nil {
			t.Fatalf("a call that had to wait for nothing: %v", err)
		}
		took, err := b.get(t.Context(), "http://api.test/")
		var limited *LimitError
		if !errors.As(err, &limited) || limited.Reason != ReasonQueue || took != 0 {
			t.Fatalf("a call that would have to wait took %v, %v", took, err)
		}
		time.Sleep(time.Minute)
		if _, err := b.get(t.Context(), "http://api.test/"); err != nil {
			t.Fatalf("a minute later: %v", err)
		}
	})
}

func TestABoundBeyondTheClockIsNone(t *testing.T) {
	for _, bound := range []time.Duration{math.MaxInt64, -1} {
		t.Run(fmt.Sprint(bound), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), math.MaxInt64)
				defer cancel()
				b := caller{t, &Transport{
					Base:     polled{answer(200, "X-RateLimit-Limit: 1", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 10")},
					Throttle: Throttle{MaxWait: bound},
				}}
				for range 2 {
					if _, err := b.get(ctx, "http://api.test/"); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// moody panics at its first question.
type moody struct {
	Budget
	asked int
}

func (m *moody) Take(ctx context.Context, scope string, limits []Limit, c Cost) (Grant, error) {
	if m.asked++; m.asked == 1 {
		panic("moody")
	}
	return m.Budget.Take(ctx, scope, limits, c)
}

func (m *moody) Settle(ctx context.Context, g Grant, used Cost) error {
	if m.asked == 2 {
		m.asked++
		panic("moody")
	}
	return m.Budget.Settle(ctx, g, used)
}

func TestWhoPanicsLeavesNobodyStandingInTheWay(t *testing.T) {
	one := []Rule{{Match: "/", Concurrency: 1}}
	waited := 0
	for name, c := range map[string]struct {
		tr     *Transport
		panics int // how many of the first calls do
	}{
		"a Budget": {&Transport{Budget: &moody{Budget: NewBudget()}, Throttle: Throttle{Rules: one}}, 2},
		"a hook": {&Transport{Throttle: Throttle{Rules: one}, Observer: &Observer{Waiting: func(Event) {
			if waited++; waited == 1 {
				panic("a hook")
			}
		}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.tr.Base = polled{answer(200, "X-RateLimit-Limit: 1", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2")}
				b := caller{t, c.tr}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				panicked := 0
				for range 5 {
					func() {
						defer func() {
							if recover() != nil {
								panicked++
							}
						}()
						if took, err := b.get(ctx, "http://api.test/"); err != nil || took > 10*time.Second {
							t.Errorf("a call took %v, %v", took, err)
						}
					}()
				}
				if panicked != c.panics {
					t.Errorf("%d calls panicked, want %d", panicked, c.panics)
				}
			})
		})
	}
}

func TestAScopeWhoseSlotsAreTakenIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := caller{t, &Transport{Base: polled{answer(200)}, Throttle: Throttle{Rules: []Rule{{Match: "/", Concurrency: 1}}}}}
		resp, err := fetch(t, t.Context(), b.tr)
		if err != nil {
			t.Fatal(err)
		}
		for i := range maxScopes + 100 {
			if _, err := b.get(t.Context(), fmt.Sprintf("http://host%d.test/", i)); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.get(ctx, "http://api.test/items"); err == nil {
			t.Error("two were under way where one may")
		}
		resp.Body.Close()
		if _, err := b.get(t.Context(), "http://api.test/items"); err != nil {
			t.Error(err)
		}
	})
}

func TestRequestCancelEndsEveryWaitAtOnce(t *testing.T) {
	for name, base := range map[string]*scripted{
		"of the throttle": script(answer(200, "X-RateLimit-Limit: 1", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 100")),
		"before a retry":  script(answer(200), answer(500)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := caller{t, &Transport{Base: base, Retry: Retry{BaseDelay: time.Minute, MaxDelay: time.Minute}}}
				if _, err := b.get(t.Context(), "http://api.test/items"); err != nil {
					t.Fatal(err)
				}
				cancel := make(chan struct{})
				req := newRequest(t, t.Context(), http.MethodGet, "")
				//lint:ignore SA1019 some callers still cancel by it
				req.Cancel = cancel
				time.AfterFunc(time.Second, func() { close(cancel) })
				began := time.Now()
				_, err := roundTrip(t, b.tr, req)
				if !errors.Is(err, context.Canceled) || time.Since(began) != time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if got := InfoOfError(err).Stopped; got != StopCancelled {
					t.Errorf("stopped because of %q", got)
				}
				sent := base.count()
				if _, err := roundTrip(t, b.tr, req); !errors.Is(err, context.Canceled) || base.count() != sent {
					t.Errorf("a call that was cancelled before: %v", err)
				}
			})
		})
	}
}

func TestARetryIsNotGivenUpToSpreadTheLastUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := caller{t, &Transport{Base: script(
			answer(200, "X-RateLimit-Limit: 100", "X-RateLimit-Remaining: 10", "X-RateLimit-Reset: 3600"), breaks(errReset), answer(200),
		)}}
		if _, err := b.get(t.Context(), "http://api.test/items"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if took, err := b.get(ctx, "http://api.test/items"); err != nil || took > 5*time.Second {
			t.Errorf("with units left and time for a retry: after %v, %v", took, err)
		}
	})
}

func TestACostThatIsNoneFailsItsCallAlone(t *testing.T) {
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		synctest.Test(t, func(t *testing.T) {
			base := script(answer(200, "X-RateLimit-Limit: 10", "X-RateLimit-Remaining: 9", "X-RateLimit-Reset: 60"))
			b := caller{t, &Transport{Base: base}}
			var failed *CallError
			if _, err := b.get(WithCall(t.Context(), Call{Cost: Cost{Requests: 1, Tokens: bad}}), "http://api.test/items"); !errors.As(err, &failed) || base.count() != 0 {
				t.Fatalf("a cost of %v tokens: %v after %d sends", bad, err, base.count())
			}
			for range 3 {
				if took, err := b.get(t.Context(), "http://api.test/items"); err != nil || took != 0 {
					t.Errorf("a call after it took %v, %v", took, err)
				}
			}
		})
	}
}

func TestWhoWaitedInVainBehindOthersIsNotToldOfAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := caller{t, &Transport{Base: polled{answer(200)}, Throttle: Throttle{Rules: []Rule{{Match: "/", Concurrency: 1}}}}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			go b.get(ctx, "http://api.test/poll")
		}
		synctest.Wait()
		_, err := b.get(WithCall(ctx, Call{MaxWait: time.Second}), "http://api.test/items")
		if !errors.Is(err, ErrLimited) || !strings.Contains(err.Error(), "must wait for others of the scope") {
			t.Error(err)
		}
	})
}

func TestCheapCallsDoNotStarveADearOneOfTheSameLimit(t *testing.T) {
	for name, budget := range map[string]func() Budget{"alone": func() Budget { return nil }, "with a Budget": NewBudget} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				b := caller{t, &Transport{Base: polled{answer(200)}, Budget: budget(), Throttle: Throttle{Rules: []Rule{
					{Match: "/", Limits: []Limit{{Quota: 10, Window: time.Second, Burst: 10}}},
					{Match: "/dear", Cost: Cost{Requests: 5}},
					{Match: "/free", Concurrency: 1},
				}}}}
				for i := range 20 {
					go func() {
						for ctx.Err() == nil {
							b.get(ctx, []string{"http://api.test/cheap", "http://api.test/free"}[i%2])
						}
					}()
				}
				time.Sleep(5 * time.Second)
				for range 10 {
					if took, err := b.get(ctx, "http://api.test/dear"); err != nil || took > 5*time.Second {
						t.Errorf("a dear call among cheap ones took %v, %v", took, err)
					}
				}
				cancel()
			})
		})
	}
}
