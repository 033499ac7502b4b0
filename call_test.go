package heed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWithCallMergesFieldByField(t *testing.T) {
	inner, outer := &Retry{MaxAttempts: 1}, &Retry{MaxAttempts: 2}
	for _, x := range []struct {
		name      string
		old, next Call
		want      Call
	}{
		{"nothing over nothing", Call{}, Call{}, Call{}},
		{"nothing over all", Call{Cost{Requests: 2}, time.Second, "s", true, true, outer}, Call{}, Call{Cost{Requests: 2}, time.Second, "s", true, true, outer}},
		{"all over nothing", Call{}, Call{Cost{Requests: 2}, time.Second, "s", true, true, outer}, Call{Cost{Requests: 2}, time.Second, "s", true, true, outer}},
		{"all over all", Call{Cost{Requests: 2}, time.Second, "s", true, true, outer}, Call{Cost{Tokens: 3}, -1, "z", true, true, inner}, Call{Cost{Tokens: 3}, -1, "z", true, true, inner}},
		{"one over others", Call{Cost: Cost{Requests: 2}, Scope: "s"}, Call{MaxWait: time.Hour}, Call{Cost: Cost{Requests: 2}, Scope: "s", MaxWait: time.Hour}},
	} {
		first := WithCall(t.Context(), x.old)
		second := WithCall(first, x.next)
		if got := *second.Value(wishKey{}).(*Call); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
		if got := *first.Value(wishKey{}).(*Call); !reflect.DeepEqual(got, x.old) {
			t.Errorf("%s: the outer context changed to %+v", x.name, got)
		}
	}
	if n := reflect.TypeFor[Call]().NumField(); n != 6 {
		t.Errorf("Call has %d fields; merge the new ones, and test it", n)
	}
}

func TestInfoOfWhatDidNotComeThroughHeedIsZero(t *testing.T) {
	plain := newRequest(t, t.Context(), "GET", "")
	for _, resp := range []*http.Response{nil, {}, {Request: plain}} {
		if i := InfoOf(resp); !reflect.DeepEqual(i, Info{}) {
			t.Errorf("%+v", i)
		}
	}
	for _, err := range []error{nil, errors.New("x"), context.Canceled} {
		if i := InfoOfError(err); !reflect.DeepEqual(i, Info{}) {
			t.Errorf("%v: %+v", err, i)
		}
	}
}

func TestInfoIsFoundThroughAnyWrapping(t *testing.T) {
	want := Info{Attempts: 3, Stopped: StopWait}
	for _, err := range []error{&CallError{Info: want, Err: errReset}, &LimitError{Info: want}} {
		wrapped := fmt.Errorf("load: %w", errors.Join(errors.New("x"), &url.Error{Op: "Get", Err: err}))
		if i := InfoOfError(wrapped); !reflect.DeepEqual(i, want) {
			t.Errorf("%T: %+v", err, i)
		}
	}
}

func TestInfoCountsWhatHappenedToEachKindOfEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct {
			name    string
			answers []reply
			want    string
		}{
			{"a success", []reply{answer(200)}, "1 sends, stop \"\", status 200, asked 0s, waited 0s"},
			{"a plain refusal of rights", []reply{answer(403)}, "1 sends, stop \"\", status 403, asked 0s, waited 0s"},
			{"a missing page that names a wait", []reply{answer(404, "Retry-After: 7")}, "1 sends, stop \"\", status 404, asked 7s, waited 0s"},
			{"a success after a failure", []reply{answer(500), answer(200)}, "2 sends, stop \"\", status 200, asked 0s, waited 500ms"},
			{"a failure for good", []reply{answer(501)}, "1 sends, stop \"final\", status 501, asked 0s, waited 0s"},
			{"an error after an answer", []reply{answer(502), breaks(errNoHost)}, "2 sends, stop \"final\", status 502, asked 0s, waited 500ms"},
			{"a long wait after an error", []reply{breaks(errReset), answer(429, "Retry-After: 7200")}, "2 sends, stop \"wait\", status 429, asked 2h0m0s, waited 500ms"},
		} {
			resp, err := fetch(t, t.Context(), &Transport{Base: script(x.answers...), Rand: lowest})
			i := accountOf(resp, err)
			got := fmt.Sprintf("%d sends, stop %q, status %d, asked %v, waited %v", i.Attempts, i.Stopped, i.Status, i.Asked, i.Waited())
			if got != x.want {
				t.Errorf("%s: %s\nwant %s", x.name, got, x.want)
			}
			if i.Scope != "http://api.test" {
				t.Errorf("%s: scope %q", x.name, i.Scope)
			}
			if resp != nil {
				content(t, resp)
			}
		}
	})
}

func TestTheContextOfASendIsThatOfTheCaller(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "v"), time.Hour)
		defer cancel()
		base := script(answer(200))
		resp, err := fetch(t, ctx, &Transport{Base: base})
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		at, ok := base.sends[0].req.Context().Deadline()
		if want, _ := ctx.Deadline(); !ok || at != want || resp.Request.Context().Value(key{}) != "v" {
			t.Errorf("deadline %v, %v, value %v", at, ok, resp.Request.Context().Value(key{}))
		}
	})
}

func TestARedirectToAnotherOriginDropsScopeCostAndIdempotence(t *testing.T) {
	for _, x := range []struct {
		name, location string
		scope          string
		sends          int // of the second hop, a POST that fails once
	}{
		{"to the same origin", "http://api.test/next", "team", 2},
		{"to another host", "http://other.test/next", "http://other.test", 1},
		{"to another scheme", "https://api.test/next", "https://api.test", 1},
		{"to another port", "http://api.test:8080/next", "http://api.test:8080", 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hops := 0
				base := baseFunc(func(r *http.Request) (*http.Response, error) {
					if r.URL.Path != "/next" {
						return answer(307, "Location: "+x.location)(r)
					}
					if hops++; hops == 1 {
						return answer(503)(r)
					}
					return answer(200)(r)
				})
				tr := &Transport{Base: base}
				// A rule that the cost of 5 could never pass shows whether the cost was dropped.
				tr.Throttle.Rules = []Rule{{Match: "/next", Limits: []Limit{{Quota: 10, Window: time.Minute}}}}
				ctx := WithCall(t.Context(), Call{Scope: "team", Cost: Cost{Requests: 5}, Idempotent: true, MaxWait: time.Hour})
				req := newRequest(t, ctx, "POST", "payload")
				resp, err := tr.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				content(t, resp)
				i := InfoOf(resp)
				if i.Scope != x.scope || i.Attempts != x.sends {
					t.Errorf("second hop in scope %q after %d sends, want %q after %d", i.Scope, i.Attempts, x.scope, x.sends)
				}
				left := 0
				for range 12 {
					next := newRequest(t, WithCall(t.Context(), Call{Scope: x.scope, MaxWait: time.Nanosecond}), "GET", "")
					if x.scope != "team" {
						next = newRequest(t, WithCall(t.Context(), Call{MaxWait: time.Nanosecond}), "GET", "")
					}
					next.URL, _ = url.Parse(x.location)
					again, err := tr.RoundTrip(next)
					if err != nil {
						break
					}
					content(t, again)
					left++
				}
				if want := map[int]int{2: 0, 1: 9}[x.sends]; left != want {
					t.Errorf("%d units of 10 are left, want %d", left, want)
				}
			})
		})
	}
}

func TestARedirectFromNowhereIsAnotherOrigin(t *testing.T) {
	req := newRequest(t, t.Context(), "GET", "")
	req.Response = &http.Response{Request: &http.Request{}}
	if !crossed(req) {
		t.Error("a hop whose origin is unknown counts as the same")
	}
	chain := newRequest(t, t.Context(), "GET", "")
	for range 1000 {
		next := newRequest(t, t.Context(), "GET", "")
		next.Response = &http.Response{Request: chain}
		chain = next
	}
	if crossed(chain) {
		t.Error("a long chain within one origin counts as crossed")
	}
}

func TestAMaxWaitOfACallBoundsTheQueueToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(200))
		tr := &Transport{Base: base}
		tr.Throttle.Rules = []Rule{{Match: "api.test/", Limits: []Limit{{Quota: 1, Window: time.Minute}}}}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		_, err = fetch(t, WithCall(t.Context(), Call{MaxWait: 59 * time.Second}), tr)
		var limited *LimitError
		if !errors.As(err, &limited) || limited.Timeout() || !strings.Contains(err.Error(), "Call.MaxWait") {
			t.Errorf("%v, want a refusal that names the bound and is no timeout", err)
		}
		resp, err = fetch(t, WithCall(t.Context(), Call{MaxWait: 61 * time.Second}), tr)
		if err != nil || InfoOf(resp).Waited() != time.Minute {
			t.Errorf("%v, waited %v", err, InfoOf(resp).Waited())
		}
	})
}

// strictBudget says yes once an instant has come, and counts how often it is asked.
type strictBudget struct {
	from time.Time
	asks int
}

func (b *strictBudget) Take(context.Context, string, []Limit, Cost) (Grant, error) {
	b.asks++
	if d := time.Until(b.from); d > 0 {
		return Grant{Wait: d, Binding: -1}, nil
	}
	return Grant{OK: true, Binding: -1}, nil
}
func (b *strictBudget) Settle(context.Context, Grant, Cost) error     { return nil }
func (b *strictBudget) Learn(context.Context, string, Feedback) error { return nil }

func TestABudgetIsNotAskedBeforeTheTimeThatItNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &strictBudget{from: time.Now()}
		tr := &Transport{Base: script(answer(200, "RateLimit-Limit: 100", "RateLimit-Remaining: 3", "RateLimit-Reset: 300")), Budget: b}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		// The last units are paced over minutes, which gives way to the deadline; the Budget's word does not.
		b.asks, b.from = 0, time.Now().Add(400*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		resp, err = fetch(t, ctx, tr)
		if err != nil || time.Since(start) != 400*time.Millisecond || b.asks != 2 {
			t.Fatalf("%v after %v; the Budget was asked %d times, want 2", err, time.Since(start), b.asks)
		}
		content(t, resp)
	})
}
