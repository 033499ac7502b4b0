package heed

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// secrets are the random parts of one request, none of which may come out.
type secrets []string

func (s *secrets) make() string {
	x := "S3cret" + rand.Text()
	*s = append(*s, x)
	return x
}

// request makes a request with a secret in every part that may hold one.
func (s *secrets) request(t *testing.T, ctx context.Context, method, body string) *http.Request {
	t.Helper()
	req := newRequest(t, ctx, method, body)
	req.URL.User = url.UserPassword(s.make(), s.make())
	req.URL.RawQuery = "access_token=" + s.make() + "&q=" + s.make()
	req.URL.Fragment = s.make()
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Idempotency-Key", "X-Custom"} {
		req.Header.Set(name, s.make())
	}
	return req
}

// leaks gives the places where a secret shows, in any of its spellings.
func (s secrets) leaks(where, text string) (found []string) {
	for _, x := range s {
		for _, form := range []string{x, url.QueryEscape(x), strings.ToLower(x)} {
			if strings.Contains(text, form) {
				found = append(found, fmt.Sprintf("%s shows a secret: %.300s", where, text))
				return found
			}
		}
	}
	return nil
}

// errorLevels are all errors that an error wraps, itself included, but for net/http's own *url.Error.
func errorLevels(err error) (all []error) {
	if err == nil {
		return nil
	}
	if _, ok := err.(*url.Error); !ok {
		all = append(all, err)
	}
	switch x := err.(type) {
	case interface{ Unwrap() error }:
		all = append(all, errorLevels(x.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			all = append(all, errorLevels(e)...)
		}
	}
	return all
}

// brokenBudget is a Budget that cannot decide.
type brokenBudget struct{ scopes []string }

func (b *brokenBudget) Take(_ context.Context, scope string, _ []Limit, _ Cost) (Grant, error) {
	b.scopes = append(b.scopes, scope)
	return Grant{}, errors.New("the store is away")
}
func (b *brokenBudget) Settle(context.Context, Grant, Cost) error     { return nil }
func (b *brokenBudget) Learn(context.Context, string, Feedback) error { return nil }

func TestNoSecretComesOutOnAnyFailurePath(t *testing.T) {
	store := new(brokenBudget)
	type path struct {
		name    string
		tr      *Transport
		answers []reply
		method  string
		body    string
		wishes  Call
		end     time.Duration // deadline; below zero: cancelled after that time
		change  func(*http.Request)
		second  bool // the second call is the one that fails
	}
	rule := func(r Rule) Throttle { return Throttle{Rules: []Rule{r}} }
	for _, x := range []path{
		{name: "success", tr: &Transport{}, answers: []reply{answer(200)}},
		{name: "failures without end", tr: &Transport{}, answers: []reply{answer(503)}},
		{name: "errors without end", tr: &Transport{}, answers: []reply{breaks(errReset)}},
		{name: "a dial error", tr: &Transport{}, answers: []reply{breaks(errRefused)}, method: "POST", body: "x"},
		{name: "a name that does not exist", tr: &Transport{}, answers: []reply{breaks(errNoHost)}},
		{name: "a write that failed", tr: &Transport{}, answers: []reply{answer(502)}, method: "PATCH", change: func(r *http.Request) { r.Header.Del("Idempotency-Key") }},
		{name: "a wait that is too long", tr: &Transport{}, answers: []reply{answer(429, "Retry-After: 9999")}},
		{name: "a newcomer in a hold", tr: &Transport{}, answers: []reply{answer(429, "Retry-After: 9999")}, second: true},
		{name: "a limit that is used up", tr: &Transport{}, answers: []reply{answer(200, "RateLimit-Limit: 1", "RateLimit-Remaining: 0", "RateLimit-Reset: 3000")}, second: true, end: time.Minute},
		{name: "a rule that is used up", tr: &Transport{Throttle: rule(Rule{Match: "/", Limits: []Limit{{Name: "hourly", Quota: 1, Window: time.Hour}}})}, answers: []reply{answer(200)}, second: true, end: time.Minute},
		{name: "a cost beyond the quota", tr: &Transport{Throttle: rule(Rule{Match: "/", Limits: []Limit{{Quota: 1, Window: time.Hour}}})}, answers: []reply{answer(200)}, wishes: Call{Cost: Cost{Requests: 5}}},
		{name: "no queue", tr: &Transport{Throttle: Throttle{MaxQueue: -1}}, answers: []reply{answer(429, "Retry-After: 5")}, second: true},
		{name: "a deadline before the pause", tr: &Transport{}, answers: []reply{answer(503)}, end: 100 * time.Millisecond},
		{name: "a cancel in a pause", tr: &Transport{}, answers: []reply{answer(503)}, end: -100 * time.Millisecond},
		{name: "a cancel in a hold", tr: &Transport{}, answers: []reply{answer(429, "Retry-After: 50")}, end: -100 * time.Millisecond},
		{name: "a cancel in a send", tr: &Transport{}, answers: []reply{late(time.Hour, answer(200))}, end: -100 * time.Millisecond},
		{name: "a dead context", tr: &Transport{}, answers: []reply{answer(200)}, end: -1},
		{name: "a body that is gone", tr: &Transport{}, answers: []reply{answer(503)}, method: "PUT", body: "x", change: func(r *http.Request) { r.GetBody = nil }},
		{name: "a GetBody that fails", tr: &Transport{}, answers: []reply{answer(503)}, method: "PUT", body: "x", change: func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return nil, io.ErrClosedPipe }
		}},
		{name: "a retry budget that is spent", tr: &Transport{Retry: Retry{Reserve: 0.01}}, answers: []reply{answer(503)}},
		{name: "a BackOff that stops", tr: &Transport{Retry: Retry{Backoff: func() backoff.BackOff { return new(backoff.StopBackOff) }}}, answers: []reply{answer(503)}},
		{name: "a Budget that is away", tr: &Transport{Budget: store}, answers: []reply{answer(200)}},
		{name: "a shared Budget", tr: &Transport{Budget: NewBudget()}, answers: []reply{answer(429, "Retry-After: 9999")}, second: true},
		{name: "no host", tr: &Transport{}, answers: []reply{answer(200)}, change: func(r *http.Request) { r.URL.Host = "" }},
		{name: "a malformed field, sent by net/http", tr: &Transport{Base: new(http.Transport)}, change: func(r *http.Request) { r.Header.Set("X-Custom", r.Header.Get("X-Custom")+"\n") }},
		{name: "another scheme, sent by net/http", tr: &Transport{Base: new(http.Transport)}, change: func(r *http.Request) { r.URL.Scheme = "gopher" }},
		{name: "a mistake in the configuration", tr: &Transport{Retry: Retry{MaxDelay: -1}}, answers: []reply{answer(200)}},
		{name: "a cache that has nothing", tr: &Transport{Cache: NewCache(1 << 20)}, answers: []reply{answer(503, "Cache-Control: max-age=1")}, change: func(r *http.Request) { r.Header.Set("Cache-Control", "only-if-cached") }},
		{name: "a cache that was filled", tr: &Transport{Cache: NewCache(1 << 20)}, answers: []reply{answer(200, "Cache-Control: max-age=100")}, second: true},
		{name: "an identity", tr: &Transport{Throttle: Throttle{Identity: func(r *http.Request) string { return r.Header.Get("Authorization") }}}, answers: []reply{answer(429, "Retry-After: 9999")}, second: true},
	} {
		for _, through := range []string{"RoundTrip", "http.Client"} {
			synctest.Test(t, func(t *testing.T) {
				var hidden secrets
				var logged bytes.Buffer
				d := newDiary()
				tr := x.tr.Clone()
				tr.Observer = d.observer()
				tr.Logger = slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
				if tr.Base == nil {
					tr.Base = script(x.answers...)
				}
				ctx, cancel := context.WithCancel(WithCall(t.Context(), x.wishes))
				defer cancel()
				req := hidden.request(t, ctx, cmp.Or(x.method, "GET"), x.body)
				if x.change != nil {
					x.change(req)
				}
				ask := func(req *http.Request) (*http.Response, error) {
					if through == "http.Client" {
						return tr.Client().Do(req)
					}
					return tr.RoundTrip(req)
				}
				if x.second {
					if resp, err := ask(req.Clone(ctx)); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
					}
				}
				switch {
				case x.end > 0:
					ctx, cancel = context.WithTimeout(ctx, x.end)
					defer cancel()
				case x.end == -1:
					cancel()
				case x.end < 0:
					time.AfterFunc(-x.end, cancel)
				}
				resp, err := ask(req.WithContext(ctx))
				var found []string
				if resp != nil {
					resp.Body.Close()
					found = append(found, hidden.leaks("InfoOf", fmt.Sprintf("%+v", InfoOf(resp)))...)
				}
				for _, e := range errorLevels(err) {
					for _, verb := range []string{"%v", "%+v", "%#v", "%q"} {
						found = append(found, hidden.leaks(fmt.Sprintf("%T by %s", e, verb), fmt.Sprintf(verb, e))...)
					}
				}
				found = append(found, hidden.leaks("InfoOfError", fmt.Sprintf("%#v", InfoOfError(err)))...)
				found = append(found, hidden.leaks("the log", logged.String())...)
				for _, e := range d.events {
					e.Context = nil // the caller's own
					found = append(found, hidden.leaks("an Event", fmt.Sprintf("%+v %#v", e, e))...)
					for _, inner := range errorLevels(e.Err) {
						found = append(found, hidden.leaks("an Event's error", fmt.Sprintf("%+v", inner))...)
					}
				}
				found = append(found, hidden.leaks("a Budget's scope", fmt.Sprint(store.scopes))...)
				for _, f := range found {
					t.Errorf("%s, through %s: %s", x.name, through, f)
				}
				if len(errorLevels(err)) == 0 && x.name != "a mistake in the configuration" && len(d.events) == 0 {
					t.Errorf("%s: nothing was seen at all", x.name)
				}
			})
		}
	}
	if len(store.scopes) != 2 {
		t.Errorf("the broken Budget was asked %d times, want 2", len(store.scopes))
	}
}

func TestTheTaintTestSeesASecret(t *testing.T) {
	var hidden secrets
	x := hidden.make()
	err := &CallError{Err: errors.Join(errors.New("x"), fmt.Errorf("at %s", x))}
	n := 0
	for _, e := range errorLevels(err) {
		n += len(hidden.leaks("", fmt.Sprint(e)))
	}
	if n != 3 { // the CallError, the join, and its second part
		t.Errorf("%d levels show the secret, want 3", n)
	}
	if found := hidden.leaks("", "nothing"); found != nil {
		t.Errorf("nothing is a leak: %v", found)
	}
}
