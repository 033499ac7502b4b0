package heed

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// diary is an Observer that writes down every event of every hook.
type diary struct {
	mu     sync.Mutex
	start  time.Time
	lines  []string
	events []Event
	hook   func(Event) // runs in each hook
}

func newDiary() *diary { return &diary{start: time.Now()} }

// observer has every hook that there is, by reflection, so that a new one is not forgotten.
func (d *diary) observer() *Observer {
	o := new(Observer)
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		v.Field(i).Set(reflect.ValueOf(func(e Event) { d.write(name, e) }))
	}
	return o
}

func (d *diary) write(hook string, e Event) {
	d.mu.Lock()
	line := fmt.Sprintf("%v %s #%d", time.Since(d.start), hook, e.Attempt)
	for _, part := range []struct {
		name string
		v    any
	}{{"status", e.Status}, {"reason", e.Reason}, {"stop", e.Stop}, {"wait", e.Wait}, {"took", e.Took}, {"cache", e.Cache}, {"err", e.Err}, {"left", e.Reading.Remaining}} {
		if !reflect.ValueOf(part.v).IsValid() || reflect.ValueOf(part.v).IsZero() {
			continue
		}
		line += fmt.Sprintf(" %s=%v", part.name, part.v)
	}
	if e.Limited {
		line += " limited"
	}
	d.lines = append(d.lines, line)
	d.events = append(d.events, e)
	d.mu.Unlock()
	if d.hook != nil {
		d.hook(e)
	}
}

func (d *diary) compare(t *testing.T, want ...string) {
	t.Helper()
	got := strings.Join(d.lines, "\n")
	if w := strings.Join(want, "\n"); got != w {
		t.Errorf("the hooks told:\n%s\nwant:\n%s", got, w)
	}
}

func TestEachHookFiresOnceAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		base := script(
			late(10*time.Millisecond, answer(429, "Retry-After: 2", "RateLimit-Limit: 5", "RateLimit-Remaining: 0", "RateLimit-Reset: 2")),
			late(20*time.Millisecond, answer(503)),
			breaks(errReset),
			answer(200),
		)
		resp, err := fetch(t, t.Context(), &Transport{Base: base, Rand: lowest, Observer: d.observer()})
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		d.compare(t,
			"0s Sent #1",
			"10ms Answered #1 status=429 took=10ms limited",
			"10ms LimitSeen #1",
			"10ms Held #1 reason=hold wait=2s limited",
			"10ms Retrying #1 status=429 limited",
			"10ms Waiting #2 reason=hold wait=2s",
			"2.01s Sent #2",
			"2.03s Answered #2 status=503 took=20ms",
			"2.03s Retrying #2 status=503 wait=500ms",
			"2.53s Sent #3",
			"2.53s Answered #3 err=read tcp: connection reset by peer",
			"2.53s Retrying #3 wait=1s err=read tcp: connection reset by peer",
			"3.53s Sent #4",
			"3.53s Answered #4 status=200",
		)
		for _, e := range d.events {
			if e.Context != t.Context() || e.Scope != "http://api.test" {
				t.Errorf("an event has context %v and scope %q", e.Context, e.Scope)
			}
			if e.Method != "GET" && e.URL != "" || e.Method == "GET" && e.URL != "http://api.test/items" {
				t.Errorf("an event is of %s %s", e.Method, e.URL)
			}
		}
	})
}

func TestGaveUpFiresOnceForEachWayToFail(t *testing.T) {
	for _, x := range []struct {
		name    string
		tr      *Transport
		answers []reply
		cancel  time.Duration
		want    string // the last line
	}{
		{"attempts", &Transport{Retry: Retry{MaxAttempts: 1}}, []reply{answer(503)}, 0, "0s GaveUp #1 status=503 stop=attempts"},
		{"off", &Transport{Retry: Retry{MaxAttempts: -1}}, []reply{answer(503)}, 0, "0s GaveUp #1 status=503 stop=off"},
		{"final", &Transport{}, []reply{answer(501)}, 0, "0s GaveUp #1 status=501 stop=final"},
		{"wait", &Transport{}, []reply{answer(429, "Retry-After: 9999")}, 0, "0s GaveUp #1 status=429 stop=wait limited"},
		{"budget", &Transport{Retry: Retry{Reserve: 0.05}}, []reply{answer(503)}, 0, "0s GaveUp #1 status=503 stop=budget"},
		{"an error", &Transport{}, []reply{breaks(errNoHost)}, 0, "0s GaveUp #1 stop=final err=lookup api.test: no such host"},
		{"a cancelled pause", &Transport{}, []reply{answer(503)}, time.Millisecond, "1ms GaveUp #1 stop=cancelled err=context canceled\nthe last answer had status 503"},
		{"a cancelled hold", &Transport{}, []reply{answer(429, "Retry-After: 9")}, time.Millisecond, "1ms GaveUp #1 stop=cancelled err=context canceled\nthe last answer had status 429"},
		{"a cancelled send", &Transport{}, []reply{late(time.Hour, answer(200))}, time.Millisecond, "1ms GaveUp #1 stop=cancelled err=context canceled"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDiary()
				x.tr.Base, x.tr.Observer, x.tr.Rand = script(x.answers...), d.observer(), lowest
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if x.cancel > 0 {
					time.AfterFunc(x.cancel, cancel)
				}
				resp, err := fetch(t, ctx, x.tr)
				if err == nil {
					content(t, resp)
				}
				if n := strings.Count(strings.Join(d.lines, "\n"), " GaveUp "); n != 1 || d.lines[len(d.lines)-1] != x.want {
					t.Errorf("GaveUp fired %d times, and the diary ends with\n%s\nwant\n%s", n, d.lines[len(d.lines)-1], x.want)
				}
			})
		})
	}
}

func TestTheCacheIsToldOnceForEachCallThatAskedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		tr := &Transport{Base: script(answer(200, "Cache-Control: max-age=60")), Cache: NewCache(1 << 20), Observer: d.observer()}
		for range 2 {
			resp, err := fetch(t, t.Context(), tr)
			if err != nil {
				t.Fatal(err)
			}
			content(t, resp)
		}
		all := strings.Join(d.lines, "\n")
		if strings.Count(all, " Cached ") != 2 || strings.Count(all, "cache=hit") != 1 || strings.Count(all, " Sent ") != 1 {
			t.Errorf("the hooks told:\n%s", all)
		}
	})
}

func TestAHookMayUseTheTransportThatCallsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiary()
		tr := &Transport{Base: script(answer(429, "Retry-After: 1", "RateLimit-Limit: 9", "RateLimit-Remaining: 0", "RateLimit-Reset: 1"), answer(503), answer(200)),
			Cache: NewCache(1 << 20), Observer: d.observer(), Logger: slog.New(slog.DiscardHandler)}
		inside := false
		d.hook = func(Event) {
			if inside {
				return
			}
			inside = true
			defer func() { inside = false }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if resp, err := tr.RoundTrip(newRequest(t, ctx, "GET", "")); err == nil {
				resp.Body.Close()
			}
			_ = tr.Validate()
		}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		conserved(t, tr)
	})
}

func TestAnObserverWithoutHooksAndNoObserverAreTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, o := range []*Observer{nil, {}} {
			base := script(answer(429, "Retry-After: 1"), answer(503), answer(200))
			resp, err := fetch(t, t.Context(), &Transport{Base: base, Observer: o, Cache: NewCache(0)})
			if err != nil || base.count() != 3 {
				t.Fatal(err)
			}
			content(t, resp)
		}
	})
}

func TestTheLoggerGetsALineForEachLongWaitHoldRetryAndFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		tr := &Transport{Base: script(answer(429, "Retry-After: 2"), answer(503), answer(501)), Rand: lowest, Logger: logger}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		want := `level=INFO msg="heed: scope on hold" scope=http://api.test wait=2s kind=primary
level=INFO msg="heed: sending again" url=http://api.test/items sends=1 status=429 pause=0s
level=INFO msg="heed: waiting" scope=http://api.test reason=hold wait=2s url=http://api.test/items
level=INFO msg="heed: sending again" url=http://api.test/items sends=2 status=503 pause=500ms
level=WARN msg="heed: gave up" url=http://api.test/items sends=3 status=501 stop=final
`
		if out.String() != want {
			t.Errorf("the log reads\n%swant\n%s", out.String(), want)
		}
	})
}

func TestASuccessLogsNothing(t *testing.T) {
	var out bytes.Buffer
	tr := &Transport{Base: script(answer(200)), Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	resp, err := fetch(t, t.Context(), tr)
	if err != nil || out.Len() != 0 {
		t.Errorf("%v, log %q", err, out.String())
	}
	content(t, resp)
}

func TestRedactKeepsSchemeHostAndPathAlone(t *testing.T) {
	for raw, want := range map[string]string{
		"https://user:secret@api.test:8443/a%2Fb/c?token=secret#secret": "https://api.test:8443/a%2Fb/c",
		"http://api.test": "http://api.test",
		"mailto:secret":   "mailto:",
	} {
		req, err := http.NewRequest("GET", raw, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := redact(req.URL); got != want {
			t.Errorf("redact(%s) = %s, want %s", raw, got, want)
		}
	}
	if got := redact(nil); got != "" {
		t.Errorf("redact(nil) = %q", got)
	}
}
