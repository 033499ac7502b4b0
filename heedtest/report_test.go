package heedtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAReportIsAShortTable(t *testing.T) {
	var b strings.Builder
	show := func(name string, r Report) { fmt.Fprintf(&b, "== %s\n%v", name, r) }
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	show("nobody called", Report{})
	show("one client", Report{
		Accepted: 10, Rejected: 2, Peak: 1,
		Clients: []ClientCount{{"anonymous", 10, 2, 0}},
		Events:  []Event{{At: at(0)}, {At: at(90)}},
	})
	show("everything", Report{
		Accepted: 123456, Rejected: 789, Violations: 45, Forgiven: 5, Crowded: 6, Peak: 64, Dropped: 24_245,
		Clients: []ClientCount{{"0a1b2c3d", 123000, 700, 44}, {"anonymous", 456, 89, 1}},
		Events:  []Event{{At: at(0)}, {At: at(3600)}},
	})
	many := Report{Accepted: 12}
	for i := range 12 {
		many.Clients = append(many.Clients, ClientCount{fmt.Sprintf("%08x", i), 1, 0, 0})
	}
	show("many clients", many)
	golden(t, "report.golden", b.String())
}

func TestTheRecorderKeepsTheNewestEvents(t *testing.T) {
	for _, size := range []int{-1, 0, 1, 3, 10} {
		var rec recorder
		var all []Event
		rnd := rand.New(rand.NewPCG(1, uint64(size+1)))
		for i := range 25 {
			e := Event{Status: i, Rejected: rnd.IntN(2) == 0, Violation: rnd.IntN(2) == 0}
			if seq := rec.add(e, size, false); seq != uint64(i+1) {
				t.Fatalf("size %d: event %d has the number %d", size, i, seq)
			}
			all = append(all, e)
			which := rnd.IntN(len(all))
			rec.answered(uint64(which+1), 1000+i)
			all[which].Status = 1000 + i
			kept := all[len(all)-min(len(all), max(size, 0)):]
			r := rec.report(nil)
			if !slices.Equal(r.Events, kept) || r.Dropped != len(all)-len(kept) {
				t.Fatalf("size %d, after %d: got %v and %d dropped, want %v", size, i+1, r.Events, r.Dropped, kept)
			}
		}
		r, rejected, violations, forgiven := rec.report(nil), 0, 0, 0
		for _, e := range all {
			if e.Rejected {
				rejected++
			}
			if e.Violation {
				violations++
				if !e.Rejected {
					forgiven++
				}
			}
		}
		if r.Rejected != rejected || r.Accepted != 25-rejected || r.Violations != violations || r.Forgiven != forgiven {
			t.Errorf("size %d: %+v", size, r)
		}
	}
}

func TestAReportIsACopy(t *testing.T) {
	var rec recorder
	rec.add(Event{Path: "/a"}, 2, false)
	r := rec.report(nil)
	rec.add(Event{Path: "/b"}, 2, false)
	rec.add(Event{Path: "/c"}, 2, false)
	if len(r.Events) != 1 || r.Events[0].Path != "/a" {
		t.Errorf("it changed: %v", r.Events)
	}
	r.Events[0].Path = "/mine"
	if rec.report(nil).Events[0].Path != "/b" {
		t.Error("the server has the caller's change")
	}
}

func TestRejectedAfterCountsRefusalsAfterAnInstant(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	r := Report{Events: []Event{
		{At: at(1), Rejected: true}, {At: at(2)}, {At: at(3), Rejected: true}, {At: at(4), Status: 429}, {At: at(5), Rejected: true},
	}}
	for s, want := range map[int]int{0: 3, 1: 2, 2: 2, 3: 1, 4: 1, 5: 0} {
		if got := r.RejectedAfter(at(s)); got != want {
			t.Errorf("after %d: %d, want %d", s, got, want)
		}
	}
}
