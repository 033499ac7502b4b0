package heed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answers is a base that answers by a function and keeps who was sent when.
type answers struct {
	mu    sync.Mutex
	reply func(n int, r *http.Request) *http.Response
	sent  []string
	start time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	n := len(a.sent)
	a.sent = append(a.sent, fmt.Sprintf("%s %v", r.URL.Path, time.Since(a.start)))
	a.mu.Unlock()
	closeBody(r)
	resp := &http.Response{StatusCode: 200, Header: make(http.Header), Body: http.NoBody, Request: r}
	if a.reply != nil {
		if custom := a.reply(n, r); custom != nil {
			custom.Request, custom.Body = r, http.NoBody
			if custom.Header == nil {
				custom.Header = make(http.Header)
			}
			return custom, nil
		}
	}
	return resp, nil
}

func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.sent)
}

// limitedBy answers the nth request with a 429 that names a wait, all others with 200.
func limitedBy(nth int, wait string) func(int, *http.Request) *http.Response {
	return func(n int, _ *http.Request) *http.Response {
		if n == nth {
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {wait}}}
		}
		return nil
	}
}

func still() float64 { return 0 }

// inBubble runs f with a transport over base in virtual time.
func inBubble(t *testing.T, tr *Transport, base *answers, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		base.start = time.Now()
		tr.Base, tr.Rand = base, still
		f(t)
	})
}

func visit(ctx context.Context, tr *Transport, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://api.test"+path, nil)
	if err != nil {
		return nil, err
	}
	return tr.RoundTrip(req)
}

func TestAFullQueueRefusesAtOnceAndSaysSo(t *testing.T) {
	tr, base := &Transport{Throttle: Throttle{MaxQueue: 2}}, &answers{reply: limitedBy(0, "10")}
	inBubble(t, tr, base, func(t *testing.T) {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = visit(t.Context(), tr, "/") })
			synctest.Wait()
		}
		_, err := visit(t.Context(), tr, "/third")
		var limited *LimitError
		if !errors.As(err, &limited) || limited.Reason != ReasonQueue || !strings.Contains(err.Error(), "MaxQueue") {
			t.Errorf("error is %v, want a full queue", err)
		}
		wg.Wait()
		if base.count() != 3 {
			t.Errorf("%d sends, want 3: %v", base.count(), base.sent)
		}
	})
}

func TestANegativeMaxQueueLetsNobodyWait(t *testing.T) {
	tr, base := &Transport{Throttle: Throttle{MaxQueue: -1}, Retry: Retry{MaxAttempts: -1}}, &answers{reply: limitedBy(0, "10")}
	inBubble(t, tr, base, func(t *testing.T) {
		if resp, err := visit(t.Context(), tr, "/"); err != nil || resp.StatusCode != 429 {
			t.Fatalf("%v, %v; want the 429 itself", resp, err)
		}
		start := time.Now()
		if _, err := visit(t.Context(), tr, "/"); !errors.Is(err, ErrLimited) || time.Since(start) != 0 {
			t.Errorf("error %v after %v, want ErrLimited at once", err, time.Since(start))
		}
	})
}

func TestANewcomerThatMeetsALongHoldIsRefusedAtOnce(t *testing.T) {
	for _, x := range []struct {
		name      string
		call      Call
		tr        Throttle
		wait      string
		refused   bool
		goesAfter time.Duration
	}{
		{name: "65 minutes are waited for", wait: "3899", goesAfter: 3899 * time.Second},
		{name: "more than 65 minutes are not", wait: "3900.5", refused: true},
		{name: "a Transport's own bound", tr: Throttle{MaxWait: time.Minute}, wait: "61", refused: true},
		{name: "a call's own bound", call: Call{MaxWait: 5 * time.Second}, wait: "6", refused: true},
		{name: "a call may be more patient than its Transport", tr: Throttle{MaxWait: time.Second},
			call: Call{MaxWait: time.Minute}, wait: "30", goesAfter: 30 * time.Second},
		{name: "a negative bound waits as long as it takes", tr: Throttle{MaxWait: -1},
			wait: "200000", goesAfter: 200000 * time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			tr, base := &Transport{Throttle: x.tr}, &answers{reply: limitedBy(0, x.wait)}
			inBubble(t, tr, base, func(t *testing.T) {
				never := Call{Retry: &Retry{MaxAttempts: -1}}
				if resp, err := visit(WithCall(t.Context(), never), tr, "/first"); err != nil || resp.StatusCode != 429 {
					t.Fatalf("%v, %v", resp, err)
				}
				start := time.Now()
				resp, err := visit(WithCall(t.Context(), x.call), tr, "/newcomer")
				took := time.Since(start)
				if x.refused {
					var limited *LimitError
					if !errors.As(err, &limited) || limited.Reason != ReasonHold || took != 0 || base.count() != 1 {
						t.Errorf("error %v after %v and %d sends, want a hold told at once", err, took, base.count())
					}
					return
				}
				// Up to a second of the spread on top of a named wait is no jitter here: Rand is 0.
				if err != nil || resp.StatusCode != 200 || took != x.goesAfter {
					t.Errorf("%v, %v after %v, want to go after %v", resp, err, took, x.goesAfter)
				}
			})
		})
	}
}

func TestAHoldThatComesLaterDismissesThoseWhoCannotWaitForItsEnd(t *testing.T) {
	reply := func(n int, r *http.Request) *http.Response {
		h := http.Header{"Ratelimit-Limit": {"1"}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"10"}}
		if n == 1 {
			return &http.Response{StatusCode: 429, Header: http.Header{"Retry-After": {"100"}}}
		}
		return &http.Response{StatusCode: 200, Header: h}
	}
	tr, base := new(Transport), &answers{reply: reply}
	inBubble(t, tr, base, func(t *testing.T) {
		if _, err := visit(t.Context(), tr, "/first"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var wg sync.WaitGroup
		var log []string
		var mu sync.Mutex
		wait := func(name string, bound time.Duration) {
			wg.Go(func() {
				_, err := visit(WithCall(t.Context(), Call{MaxWait: bound}), tr, "/"+name)
				mu.Lock()
				defer mu.Unlock()
				log = append(log, fmt.Sprintf("%s: %v after %v", name, err == nil, time.Since(start)))
			})
			synctest.Wait()
		}
		wait("patient", time.Hour)
		wait("impatient", 30*time.Second)
		wg.Wait()
		want := []string{"impatient: false after 10s", "patient: true after 1m50s"}
		if !slices.Equal(log, want) {
			t.Errorf("got %v, want %v", log, want)
		}
	})
}

func TestSpreadingGivesWayToADeadline(t *testing.T) {
	reply := func(n int, r *http.Request) *http.Response {
		return &http.Response{StatusCode: 200, Header: http.Header{
			"Ratelimit-Limit": {"10"}, "Ratelimit-Remaining": {fmt.Sprint(max(0, 2-n))}, "Ratelimit-Reset": {"60"}}}
	}
	tr, base := new(Transport), &answers{reply: reply}
	inBubble(t, tr, base, func(t *testing.T) {
		if _, err := visit(t.Context(), tr, "/"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := visit(ctx, tr, "/"); err != nil || time.Since(start) != 0 {
			t.Errorf("error %v after %v; a unit was left, and the deadline is near", err, time.Since(start))
		}
		start = time.Now()
		if _, err := visit(t.Context(), tr, "/"); err != nil || time.Since(start) != 30*time.Second {
			t.Errorf("error %v after %v, want the last unit in the middle of what is left", err, time.Since(start))
		}
	})
}

func TestCredentialsAreScopesOfTheirOwnAndIdentityJoinsThem(t *testing.T) {
	hold := func(n int, r *http.Request) *http.Response { return limitedBy(0, "60")(n, r) }
	requests := map[string]func(r *http.Request){
		"another bearer":      func(r *http.Request) { r.Header.Set("Authorization", "Bearer b") },
		"another header key":  func(r *http.Request) { r.Header.Set("X-Api-Key", "k") },
		"another query key":   func(r *http.Request) { r.URL.RawQuery = "api_key=k" },
		"no credential":       func(r *http.Request) { r.Header.Del("Authorization") },
		"another scheme":      func(r *http.Request) { r.URL.Scheme = "https" },
		"another port":        func(r *http.Request) { r.URL.Host = "api.test:8080" },
		"a scope of its name": func(r *http.Request) { *r = *r.WithContext(WithCall(r.Context(), Call{Scope: "mine"})) },
	}
	same := map[string]func(r *http.Request){
		"another path":      func(r *http.Request) { r.URL.Path = "/elsewhere" },
		"another cookie":    func(r *http.Request) { r.Header.Set("Cookie", "a=b") },
		"host in capitals":  func(r *http.Request) { r.URL.Host = "API.test" },
		"the default port":  func(r *http.Request) { r.URL.Host = "api.test:80" },
		"an ordinary query": func(r *http.Request) { r.URL.RawQuery = "page=2" },
	}
	run := func(t *testing.T, identity func(*http.Request) string, change func(*http.Request)) time.Duration {
		tr, base := &Transport{Throttle: Throttle{Identity: identity}}, &answers{reply: hold}
		var took time.Duration
		inBubble(t, tr, base, func(t *testing.T) {
			first, _ := http.NewRequestWithContext(WithCall(t.Context(), Call{Retry: &Retry{MaxAttempts: -1}}), "GET", "http://api.test/", nil)
			first.Header.Set("Authorization", "Bearer a")
			if _, err := tr.RoundTrip(first); err != nil {
				t.Fatal(err)
			}
			second, _ := http.NewRequestWithContext(t.Context(), "GET", "http://api.test/", nil)
			second.Header.Set("Authorization", "Bearer a")
			change(second)
			start := time.Now()
			if _, err := tr.RoundTrip(second); err != nil {
				t.Fatal(err)
			}
			took = time.Since(start)
		})
		return took
	}
	for name, change := range requests {
		t.Run(name+" is not held", func(t *testing.T) {
			if took := run(t, nil, change); took != 0 {
				t.Errorf("it waited %v", took)
			}
		})
	}
	for name, change := range same {
		t.Run(name+" is held too", func(t *testing.T) {
			if took := run(t, nil, change); took != time.Minute {
				t.Errorf("it waited %v, want 1m", took)
			}
		})
	}
	t.Run("Identity joins rotating tokens", func(t *testing.T) {
		user := func(*http.Request) string { return "user 1" }
		if took := run(t, user, requests["another bearer"]); took != time.Minute {
			t.Errorf("it waited %v, want 1m", took)
		}
	})
}

func TestAStreamDoesNotHoldUpThoseBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		tr := &Transport{Base: roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Accept") != "" {
				<-block
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		})}
		var wg sync.WaitGroup
		wg.Go(func() {
			req, _ := http.NewRequest("GET", "http://api.test/events", nil)
			req.Header.Set("Accept", "text/event-stream")
			_, _ = tr.RoundTrip(req)
		})
		synctest.Wait()
		start := time.Now()
		if _, err := visit(t.Context(), tr, "/"); err != nil || time.Since(start) != 0 {
			t.Errorf("error %v after %v behind a stream", err, time.Since(start))
		}
		close(block)
		wg.Wait()
	})
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAPanicBelowLeavesNothingTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{Base: roundTripFunc(func(*http.Request) (*http.Response, error) { panic("below") })}
		tr.Throttle.Rules = []Rule{{Match: "api.test/", Concurrency: 1}}
		for range 3 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic did not reach the caller")
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, _ = visit(ctx, tr, "/")
			}()
		}
		throttle := tr.chain.layers[1].(*throttleLayer)
		for _, s := range throttle.scopes.live.Values() {
			if s.ledger.flights != 0 || s.busy() || s.slots[0] != 0 {
				t.Errorf("%d in flight and %d slots in use after a panic", s.ledger.flights, s.slots[0])
			}
		}
	})
}

// failingBudget fails or denies as told.
type failingBudget struct {
	Budget
	err    error
	denied int
	asked  int
}

func (b *failingBudget) Take(ctx context.Context, scope string, limits []Limit, c Cost) (Grant, error) {
	b.asked++
	if b.err != nil {
		return Grant{}, b.err
	}
	if b.asked <= b.denied {
		return Grant{Wait: 3 * time.Second}, nil
	}
	return b.Budget.Take(ctx, scope, limits, c)
}

func TestABudgetThatCannotDecideLetsNothingThrough(t *testing.T) {
	broken := errors.New("store gone")
	tr, base := &Transport{Budget: &failingBudget{Budget: NewBudget(), err: broken}}, new(answers)
	inBubble(t, tr, base, func(t *testing.T) {
		_, err := visit(t.Context(), tr, "/")
		if !errors.Is(err, broken) || base.count() != 0 {
			t.Errorf("error %v and %d sends, want the store's error and none", err, base.count())
		}
	})
}

func TestABudgetIsAskedAgainWhenItsWaitIsOver(t *testing.T) {
	budget := &failingBudget{Budget: NewBudget(), denied: 2}
	tr, base := &Transport{Budget: budget}, new(answers)
	inBubble(t, tr, base, func(t *testing.T) {
		start := time.Now()
		resp, err := visit(t.Context(), tr, "/")
		if err != nil || time.Since(start) != 6*time.Second || budget.asked != 3 {
			t.Fatalf("error %v after %v and %d questions, want 6s and 3", err, time.Since(start), budget.asked)
		}
		if got := fmt.Sprint(InfoOf(resp).Waits); got != "[{budget 6s}]" {
			t.Errorf("waits are %s", got)
		}
	})
}

func TestAShortBoundIsEnoughToMeetAnUnknownServerThatAnswersSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{Base: roundTripFunc(func(*http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		})}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := visit(WithCall(t.Context(), Call{MaxWait: 200 * time.Millisecond}), tr, "/"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestARefusalByABudgetNamesTheScopeAsPeopleKnowIt(t *testing.T) {
	tr := &Transport{Base: new(answers), Budget: NewBudget()}
	tr.Throttle.Rules = []Rule{{Match: "api.test/", Limits: []Limit{{Quota: 5, Window: time.Minute}}}}
	req, _ := http.NewRequestWithContext(WithCall(t.Context(), Call{Cost: Cost{Requests: 6}}), "GET", "http://api.test/", nil)
	req.Header.Set("Authorization", "Bearer secret")
	_, err := tr.RoundTrip(req)
	var limited *LimitError
	if !errors.As(err, &limited) || limited.Reason != ReasonImpossible {
		t.Fatalf("error is %v, want an impossible cost", err)
	}
	var s *scope
	for _, s = range tr.chain.layers[1].(*throttleLayer).scopes.live.Values() {
		if limited.Scope != s.name || strings.Contains(err.Error(), s.wire) {
			t.Errorf("the error names %q and reads %q; the scope is %q, on the wire %q", limited.Scope, err, s.name, s.wire)
		}
	}
}

func TestAnIdentityThatPanicsOnceLeavesNoScopeWithoutACredential(t *testing.T) {
	panics := true
	identity := func(*http.Request) string {
		if panics {
			panic("identity")
		}
		return "user"
	}
	s := &scope{key: scopeKey{scheme: "http", host: "api.test"}}
	req, _ := http.NewRequest("GET", "http://api.test/", nil)
	func() {
		defer func() { _ = recover() }()
		s.onWire(req, identity)
	}()
	panics = false
	if got := s.onWire(req, identity); !strings.HasPrefix(got, "http://api.test#") {
		t.Errorf("the scope's name is %q", got)
	}
}
