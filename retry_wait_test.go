package heed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
)

func TestAWaitBeyondTheBoundGivesTheAnswerBackAtOnce(t *testing.T) {
	for _, x := range []struct {
		name string
		tr   *Transport
		call Call
		ask  string // Retry-After
		code int
	}{
		{"the default of 65 minutes", &Transport{}, Call{}, "3901", 429},
		{"more than an integer holds", &Transport{}, Call{}, "99999999999999999999", 429},
		{"an instant far away", &Transport{}, Call{}, "Fri, 01 Jan 2100 00:00:00 GMT", 503},
		{"an overload", &Transport{}, Call{}, "3901", 503},
		{"a failure", &Transport{}, Call{}, "3901", 500},
		{"Retry.MaxWait", &Transport{Retry: Retry{MaxWait: 10 * time.Second}}, Call{}, "11", 429},
		{"Throttle.MaxWait", &Transport{Throttle: Throttle{MaxWait: 10 * time.Second}}, Call{}, "11", 429},
		{"a queue for nobody", &Transport{Throttle: Throttle{MaxQueue: -1}}, Call{}, "11", 429},
		{"Call.MaxWait", &Transport{}, Call{MaxWait: 10 * time.Second}, "11", 429},
		{"Call.MaxWait below a wider one", &Transport{Retry: Retry{MaxWait: -1}, Throttle: Throttle{MaxWait: -1}}, Call{MaxWait: 10 * time.Second}, "11", 429},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := script(answer(x.code, "Retry-After: "+x.ask), answer(200))
				tr := x.tr.Clone()
				tr.Base = base
				start := time.Now()
				resp, err := fetch(t, WithCall(t.Context(), x.call), tr)
				if err != nil || time.Since(start) != 0 || base.count() != 1 {
					t.Fatalf("after %v and %d sends: error %v; want the answer at once", time.Since(start), base.count(), err)
				}
				i := InfoOf(resp)
				if i.Stopped != StopWait || i.Asked < 11*time.Second || i.Status != x.code {
					t.Errorf("info %+v, want a wait that was asked and was too long", i)
				}
				if got := content(t, resp); got != fmt.Sprintf("body of %d", x.code) {
					t.Errorf("it reads %q", got)
				}
			})
		})
	}
}

func TestAWaitWithinTheBoundIsWaitedForAndNeverCutShort(t *testing.T) {
	for _, x := range []struct {
		name string
		tr   *Transport
		call Call
		code int
		ask  string
		want time.Duration
	}{
		{"a wait of 64 minutes", &Transport{}, Call{}, 429, "3840", 64 * time.Minute},
		{"a cap on pauses is none on named waits", &Transport{Retry: Retry{MaxDelay: time.Second}}, Call{}, 429, "120", 2 * time.Minute},
		{"a wait as long as the bound", &Transport{Retry: Retry{MaxWait: 30 * time.Second}}, Call{}, 429, "30", 30 * time.Second},
		{"no bound", &Transport{Retry: Retry{MaxWait: -1}, Throttle: Throttle{MaxWait: -1}}, Call{}, 429, "7200", 2 * time.Hour},
		{"a Call without bound", &Transport{}, Call{MaxWait: -1}, 429, "7200", 2 * time.Hour},
		{"a Call with a wider bound", &Transport{}, Call{MaxWait: 3 * time.Hour}, 429, "7200", 2 * time.Hour},
		{"an overload", &Transport{}, Call{}, 503, "9", 9 * time.Second},
		{"a failure", &Transport{}, Call{}, 500, "9", 9 * time.Second},
		{"a bad gateway", &Transport{}, Call{}, 502, "9", 9 * time.Second},
		{"a wait shorter than the pause", &Transport{}, Call{}, 500, "0.1", 500 * time.Millisecond},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, random := range []func() float64{lowest, highest} {
				synctest.Test(t, func(t *testing.T) {
					base := script(answer(x.code, "Retry-After: "+x.ask), answer(200))
					tr := x.tr.Clone()
					tr.Base, tr.Rand = base, random
					if strings.Contains(x.name, "as long as") && random() > 0 {
						return // jitter on top makes it longer
					}
					resp, err := fetch(t, WithCall(t.Context(), x.call), tr)
					if err != nil || resp.StatusCode != 200 {
						t.Fatal(resp, err)
					}
					if at := base.times()[1]; at < x.want || at > x.want+max(time.Second, x.want/10) {
						t.Errorf("sent again after %v, want %v and at most a second more", at, x.want)
					}
					if i := InfoOf(resp); i.Waited() != base.times()[1] || i.Stopped != "" || i.Asked != 0 {
						t.Errorf("info %+v", i)
					}
				})
			}
		})
	}
}

func TestAHintOfNothingIsNoHintAndThePausesKeepGrowing(t *testing.T) {
	for name, field := range map[string]string{
		"zero": "0", "a past date": "Sat, 01 Jan 2000 00:00:00 GMT", "negative": "-5", "a word": "soon",
		"not a number": "NaN", "infinite": "Infinity", "nothing": "",
	} {
		for _, code := range []int{429, 503} {
			synctest.Test(t, func(t *testing.T) {
				base := script(append(repeated(5, answer(code, "Retry-After: "+field)), answer(200))...)
				resp, err := fetch(t, t.Context(), &Transport{Base: base, Rand: lowest})
				if err != nil || resp.StatusCode != 200 {
					t.Fatal(resp, err)
				}
				if got := fmt.Sprint(base.times()); got != "[0s 500ms 1.5s 3.5s 7.5s 15.5s]" {
					t.Errorf("%d with a hint that is %s: sent at %s", code, name, got)
				}
			})
		}
	}
}

func TestADeadlineBeforeTheEndOfTheWaitGivesTheAnswerBackAtOnce(t *testing.T) {
	for name, x := range map[string]struct {
		first reply
		code  int
	}{
		"a pause of its own":       {answer(503), 503},
		"a named wait":             {answer(429, "Retry-After: 5"), 429},
		"a refusal without a wait": {answer(429), 429},
		"an overload":              {answer(503, "Retry-After: 5"), 503},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := script(x.first, answer(200))
			ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
			defer cancel()
			start := time.Now()
			resp, err := fetch(t, ctx, &Transport{Base: base})
			if took := time.Since(start); err != nil || took != 0 {
				t.Fatalf("%s: error %v after %v; want the answer at once", name, err, took)
			}
			if i := InfoOf(resp); i.Stopped != StopDeadline || resp.StatusCode != x.code {
				t.Errorf("%s: status %d, info %+v", name, resp.StatusCode, i)
			}
			content(t, resp)
		})
	}
}

func TestADeadlineBeforeTheEndOfThePauseGivesTheErrorBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(late(100*time.Millisecond, breaks(errReset)))
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := fetch(t, ctx, &Transport{Base: base})
		if time.Since(start) != 100*time.Millisecond || !errors.Is(err, errReset) || InfoOfError(err).Stopped != StopDeadline {
			t.Errorf("after %v: %v, info %+v; want the reset at once", time.Since(start), err, InfoOfError(err))
		}
	})
}

func TestTheClientsTimeoutCoversAllSendsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503))
		client := &http.Client{Transport: &Transport{Base: base, Rand: lowest}, Timeout: 5 * time.Second}
		start := time.Now()
		resp, err := client.Get("http://api.test/")
		if err != nil || time.Since(start) != 3500*time.Millisecond || base.count() != 4 {
			t.Fatalf("%v after %v and %d sends, want the answer after 3.5s and 4", err, time.Since(start), base.count())
		}
		if i := InfoOf(resp); i.Stopped != StopDeadline {
			t.Errorf("info %+v, want a deadline", i)
		}
		content(t, resp)
	})
}

func TestAllWaitsOfOneCallTogetherStayWithinTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(429, "Retry-After: 1500"))
		start := time.Now()
		resp, err := fetch(t, t.Context(), &Transport{Base: base, Rand: lowest})
		if err != nil || time.Since(start) != 50*time.Minute || base.count() != 3 {
			t.Fatalf("%v after %v and %d sends, want 3 within 50m", err, time.Since(start), base.count())
		}
		if i := InfoOf(resp); i.Stopped != StopWait || i.Waited() != 50*time.Minute || i.Asked != 25*time.Minute {
			t.Errorf("info %+v", i)
		}
		content(t, resp)
	})
}

func TestANewcomerDuringALongHoldIsRefusedAtOnceAndKnowsWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(429, "Retry-After: 7200"), answer(200))
		tr := &Transport{Base: base, Rand: lowest}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		start := time.Now()
		_, err = fetch(t, t.Context(), tr)
		var limited *LimitError
		if !errors.As(err, &limited) || time.Since(start) != 0 || base.count() != 1 {
			t.Fatalf("%v after %v and %d sends, want a LimitError at once", err, time.Since(start), base.count())
		}
		if limited.Reason != ReasonHold || limited.Info.Stopped != StopRefused || time.Until(limited.RetryAt) != 2*time.Hour {
			t.Errorf("reason %q, stop %q, retry in %v", limited.Reason, limited.Info.Stopped, time.Until(limited.RetryAt))
		}
	})
}

func TestAnOverloadOfAWriteHoldsThoseWhoComeAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503, "Retry-After: 10"), answer(200))
		tr := &Transport{Base: base, Rand: lowest}
		resp, err := roundTrip(t, tr, newRequest(t, t.Context(), "POST", "x"))
		if err != nil || InfoOf(resp).Stopped != StopMethod || InfoOf(resp).Asked != 10*time.Second {
			t.Fatalf("%v, info %+v", err, InfoOf(resp))
		}
		content(t, resp)
		resp, err = fetch(t, t.Context(), tr)
		if err != nil || fmt.Sprint(base.times()) != "[0s 10s]" {
			t.Errorf("error %v, sent at %v, want [0s 10s]", err, base.times())
		}
		content(t, resp)
	})
}

func TestCallersWhoWereToldTheSameWaitDoNotComeBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began := time.Now()
		var arrivals []time.Duration
		base := baseFunc(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			arrivals = append(arrivals, time.Since(began))
			mu.Unlock()
			if time.Since(began) < 200*time.Second {
				return late(30*time.Millisecond, answer(429, "Retry-After: 10"))(r)
			}
			return late(30*time.Millisecond, answer(200))(r)
		})
		tr := &Transport{Base: base, Throttle: Throttle{}}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Second)
		defer cancel()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				resp, err := tr.RoundTrip(newRequest(t, ctx, "GET", ""))
				if err != nil || resp.StatusCode != 200 {
					t.Error(resp, err)
					return
				}
				resp.Body.Close()
			})
		}
		wg.Wait()
		if time.Since(began) > 240*time.Second {
			t.Errorf("it took %v, 40s after the server was well", time.Since(began))
		}
		// A refusal closes the door for everybody: one more knock per told wait.
		early := 0
		for _, at := range arrivals {
			if at < 200*time.Second {
				early++
			}
		}
		if early > 24 {
			t.Errorf("%d requests came while the server refused, want about one for each of 20 waits", early)
		}
	})
}

// baseFunc is a base that is a function.
type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestABackoffOfOnesOwnMakesThePausesOfEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		policy := Retry{Backoff: func() backoff.BackOff {
			made++
			return backoff.WithMaxRetries(backoff.NewConstantBackOff(3*time.Second), 2)
		}}
		for range 2 {
			base := script(answer(503))
			resp, err := fetch(t, t.Context(), &Transport{Base: base, Retry: policy})
			if err != nil || fmt.Sprint(base.times()) != "[0s 3s 6s]" {
				t.Errorf("error %v, sent at %v, want [0s 3s 6s]", err, base.times())
			}
			if i := InfoOf(resp); i.Stopped != StopBackoff {
				t.Errorf("info %+v, want stopped by the BackOff", i)
			}
			content(t, resp)
		}
		if made != 2 {
			t.Errorf("two calls made %d BackOffs", made)
		}
	})
}

func TestABackoffThatIsNilIsTheDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503), answer(200))
		resp, err := fetch(t, t.Context(), &Transport{Base: base, Rand: lowest, Retry: Retry{Backoff: func() backoff.BackOff { return nil }}})
		if err != nil || fmt.Sprint(base.times()) != "[0s 500ms]" {
			t.Fatalf("error %v, sent at %v", err, base.times())
		}
		content(t, resp)
	})
}

func TestAnExponentialBackoffOfTheLibraryWorksAsAFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(append(repeated(3, answer(500)), answer(200))...)
		tr := &Transport{Base: base, Retry: Retry{Backoff: func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(3), backoff.WithRandomizationFactor(0))
		}}}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil || fmt.Sprint(base.times()) != "[0s 1s 4s 13s]" {
			t.Fatalf("error %v, sent at %v", err, base.times())
		}
		content(t, resp)
	})
}

func TestTheRetryOfACallReplacesThatOfTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503))
		tr := &Transport{Base: base, Rand: lowest}
		resp, err := fetch(t, WithCall(t.Context(), Call{Retry: &Retry{MaxAttempts: 3, BaseDelay: 10 * time.Second}}), tr)
		if err != nil || fmt.Sprint(base.times()) != "[0s 5s 15s]" {
			t.Errorf("error %v, sent at %v", err, base.times())
		}
		content(t, resp)
		// Nobody validates it: nonsense is as good as nothing.
		base = script(answer(503))
		resp, err = fetch(t, WithCall(t.Context(), Call{Retry: &Retry{BaseDelay: -1, MaxDelay: -1}}), &Transport{Base: base, Rand: lowest})
		if err != nil || base.times()[6] != 30500*time.Millisecond {
			t.Errorf("error %v, sent at %v", err, base.times())
		}
		content(t, resp)
	})
}

func TestAWaitAsLongAsTheBoundOfTheThrottleIsNotInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &Transport{Base: script(answer(429, "Retry-After: 30"), answer(200)), Rand: lowest, Throttle: Throttle{MaxWait: 30 * time.Second}}
		resp, err := fetch(t, WithCall(t.Context(), Call{Retry: &Retry{MaxAttempts: -1}}), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		resp, err = fetch(t, t.Context(), tr)
		if err != nil || InfoOf(resp).Waited() != 30*time.Second {
			t.Fatalf("%v, info %+v; want it sent after 30s", err, accountOf(resp, err))
		}
		content(t, resp)
		// The other side: a slot that does not come free by then.
		held := &Transport{Base: script(answer(200)), Throttle: Throttle{MaxWait: 30 * time.Second, Rules: []Rule{{Match: "/", Concurrency: 1}}}}
		open, err := fetch(t, t.Context(), held)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = fetch(t, t.Context(), held)
		var limited *LimitError
		if !errors.As(err, &limited) || limited.Reason != ReasonConcurrency || time.Since(start) != 30*time.Second {
			t.Errorf("%v after %v, want a refusal after 30s", err, time.Since(start))
		}
		open.Body.Close()
		conserved(t, held)
	})
}

func TestASendThatNeverReachedTheServerCostsNoUnit(t *testing.T) {
	for name, x := range map[string]struct {
		err    error
		waited time.Duration // of the last of three calls
	}{
		"never sent": {errRefused, 0},
		"cut off":    {errReset, 30*time.Second - 500*time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := &Transport{Base: script(breaks(x.err), answer(200)), Rand: lowest}
			tr.Throttle.Rules = []Rule{{Match: "/", Limits: []Limit{{Quota: 2, Window: time.Minute, Algorithm: AlgorithmTokenBucket}}}}
			first, err := fetch(t, t.Context(), tr)
			if err != nil {
				t.Fatal(err)
			}
			content(t, first)
			second, err := fetch(t, t.Context(), tr)
			if err != nil || InfoOf(second).Waited().Round(time.Microsecond) != x.waited {
				t.Errorf("%s: %v, waited %v, want %v", name, err, InfoOf(second).Waited(), x.waited)
			}
			content(t, second)
		})
	}
}
