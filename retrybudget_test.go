package heed

import (
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAThousandCallsToADeadServerSendTenMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503))
		tr := &Transport{Base: base}
		stops := make(map[Stop]int)
		for range 1000 {
			resp, err := fetch(t, t.Context(), tr)
			if err != nil {
				t.Fatal(err)
			}
			stops[InfoOf(resp).Stopped]++
			content(t, resp)
		}
		if base.count() != 1010 {
			t.Errorf("%d sends for 1000 calls, want 1010", base.count())
		}
		if stops[StopBudget] != 999 || stops[StopAttempts] != 1 {
			t.Errorf("stopped by %v", stops)
		}
	})
}

func TestAThousandCallsAtOnceToADeadServerSendTenMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503))
		tr := &Transport{Base: base}
		for range 1000 {
			go func() {
				if resp, err := tr.RoundTrip(newRequest(t, t.Context(), "GET", "")); err == nil {
					resp.Body.Close()
				}
			}()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if base.count() != 1010 {
			t.Errorf("%d sends for 1000 calls, want 1010", base.count())
		}
	})
}

func TestTheRetryBudgetIsAskedBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503))
		tr := &Transport{Base: base, Retry: Retry{Reserve: 1}}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		start := time.Now()
		resp, err = fetch(t, t.Context(), tr)
		if err != nil || time.Since(start) != 0 || InfoOf(resp).Stopped != StopBudget {
			t.Fatalf("%v after %v, info %+v; want the answer at once", err, time.Since(start), InfoOf(resp))
		}
		if got := content(t, resp); got != "body of 503" {
			t.Errorf("it reads %q", got)
		}
	})
}

func TestSuccessesRefillTheRetryBudgetATenthEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		code := http.StatusServiceUnavailable
		base := baseFunc(func(r *http.Request) (*http.Response, error) { return answer(code)(r) })
		tr := &Transport{Base: base, Retry: Retry{Reserve: 2}}
		retries := func() (n int) {
			for range 20 {
				resp, err := fetch(t, t.Context(), tr)
				if err != nil {
					t.Fatal(err)
				}
				n += InfoOf(resp).Attempts - 1
				content(t, resp)
			}
			return n
		}
		if n := retries(); n != 2 {
			t.Errorf("%d retries out of a reserve of 2", n)
		}
		code = http.StatusOK
		if n := retries(); n != 0 {
			t.Errorf("%d retries of successes", n)
		}
		code = http.StatusServiceUnavailable
		if n := retries(); n != 2 {
			t.Errorf("%d retries after 20 successes, want 2", n)
		}
	})
}

func TestTheRetryBudgetGrowsWithSuccessesUpToACeiling(t *testing.T) {
	for _, x := range []struct {
		name      string
		reserve   float64
		successes int
		want      float64
	}{
		{"none yet", 0, 0, 10},
		{"a hundred", 0, 100, 20},
		{"very many", 0, 5000, reserveCeiling},
		{"a large reserve is kept", 500, 10, 500},
	} {
		l := new(throttleLayer)
		c := &call{scope: new(scope)}
		r := &Retry{Reserve: x.reserve}
		for range x.successes {
			l.succeeded(c, r)
		}
		n := 0
		for l.afford(c, r, false) {
			n++
		}
		if math.Abs(float64(n)-x.want) > 0.5 {
			t.Errorf("%s: %d retries, want %v", x.name, n, x.want)
		}
	}
}

func TestARetryAfterARefusalCostsATenth(t *testing.T) {
	l := new(throttleLayer)
	c := &call{scope: new(scope)}
	n := 0
	for l.afford(c, new(Retry), true) {
		n++
	}
	if n != 100 {
		t.Errorf("%d retries after refusals, want 100", n)
	}
	if l.afford(c, new(Retry), false) {
		t.Error("an empty budget affords a whole retry")
	}
}

func TestANegativeReserveIsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503))
		tr := &Transport{Base: base, Retry: Retry{Reserve: -1, MaxAttempts: 4}}
		for range 20 {
			resp, err := fetch(t, t.Context(), tr)
			if err != nil {
				t.Fatal(err)
			}
			content(t, resp)
		}
		if base.count() != 80 {
			t.Errorf("%d sends for 20 calls of 4", base.count())
		}
	})
}

func TestASickHostDoesNotSpendTheBudgetOfAWellOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hiccup atomic.Bool
		base := baseFunc(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "sick.test" || hiccup.Swap(false) {
				return answer(503)(r)
			}
			return answer(200)(r)
		})
		tr := &Transport{Base: base}
		ask := func(host string) *http.Response {
			req := newRequest(t, t.Context(), "GET", "")
			req.URL.Host = host
			resp, err := roundTrip(t, tr, req)
			if err != nil {
				t.Fatal(err)
			}
			content(t, resp)
			return resp
		}
		for range 50 {
			ask("sick.test")
		}
		hiccup.Store(true)
		if resp := ask("well.test"); resp.StatusCode != 200 || InfoOf(resp).Attempts != 2 {
			t.Errorf("status %d, info %+v; want the second send to succeed", resp.StatusCode, InfoOf(resp))
		}
	})
}

func TestAfterAnOutageTheRetriesComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var sends atomic.Int64
		base := baseFunc(func(r *http.Request) (*http.Response, error) {
			if time.Since(begin) < time.Minute {
				sends.Add(1)
				return late(10*time.Millisecond, answer(503))(r)
			}
			return late(10*time.Millisecond, answer(200))(r)
		})
		tr := &Transport{Base: base}
		var calls, good atomic.Int64
		for range 50 {
			go func() {
				for time.Since(begin) < 90*time.Second {
					early := time.Since(begin) < time.Minute
					resp, err := tr.RoundTrip(newRequest(t, t.Context(), "GET", ""))
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
					if early {
						calls.Add(1)
					}
					if resp.StatusCode == 200 && time.Since(begin) > 62*time.Second {
						good.Add(1)
					}
					time.Sleep(time.Second)
				}
			}()
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if more := sends.Load() - calls.Load(); more > 12 {
			t.Errorf("%d sends for %d calls during the outage", sends.Load(), calls.Load())
		}
		if good.Load() < 50*26 {
			t.Errorf("%d answers in the 28 s after recovery, want about one per caller and second", good.Load())
		}
	})
}

func TestNestedTransportsDoNotMultiplyTheirRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503))
		var tr http.RoundTripper = base
		for range 3 {
			tr = &Transport{Base: tr, Rand: lowest}
		}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil || base.count() != 7 {
			t.Fatalf("%d sends through three layers, want 7 (error %v)", base.count(), err)
		}
		if i := InfoOf(resp); i.Stopped != StopAttempts || i.Attempts != 7 {
			t.Errorf("info %+v, want that of the outermost", i)
		}
		content(t, resp)
		// The innermost goes by its own rules once the outer ones are done.
		base = script(answer(429, "Retry-After: 5"), answer(200))
		tr = &Transport{Base: &Transport{Base: &Transport{Base: base, Rand: lowest}, Rand: lowest}, Rand: lowest}
		resp, err = fetch(t, t.Context(), tr)
		if err != nil || fmt.Sprint(base.times()) != "[0s 5s]" {
			t.Errorf("sent at %v, error %v, want [0s 5s]", base.times(), err)
		}
		content(t, resp)
	})
}

func TestBelowATransportThatDoesNotRetryTheNextOneMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503), answer(200))
		off := Retry{MaxAttempts: -1}
		resp, err := fetch(t, t.Context(), &Transport{Retry: off, Base: &Transport{Base: base}})
		if err != nil || resp.StatusCode != 200 || base.count() != 2 {
			t.Errorf("%v, %v after %d sends", resp, err, base.count())
		}
		content(t, resp)
		base = script(answer(503))
		resp, err = fetch(t, t.Context(), &Transport{Base: &Transport{Retry: off, Base: &Transport{Base: base}}})
		if err != nil || base.count() != 7 {
			t.Errorf("with one that is off between: %d sends, want 7", base.count())
		}
		content(t, resp)
	})
}

func TestAFollowUpMadeWithTheContextOfAnAnswerIsNotTakenForNested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(200), answer(503), answer(200))
		tr := &Transport{Base: base}
		first, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, first)
		next, err := fetch(t, first.Request.Context(), tr)
		if err != nil || next.StatusCode != 200 || InfoOf(next).Attempts != 2 {
			t.Errorf("%v, info %+v; want a retry", err, InfoOf(next))
		}
		content(t, next)
		if i := InfoOf(first); i.Attempts != 1 {
			t.Errorf("the first account became %+v", i)
		}
	})
}
