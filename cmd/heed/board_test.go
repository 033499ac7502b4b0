package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heedhttp/heed"
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func TestTheLineSaysWhoWaitsForWhat(t *testing.T) {
	b := newBoard()
	hold := func(scope string, until float64) { b.hold(scope, after(until), noon) }
	begin := func(call int, scope string, reason heed.Reason, until float64) {
		b.begin(call, wait{scope, reason, after(until)}, noon)
	}
	expect := func(at float64, want string) {
		t.Helper()
		got, left := b.line(after(at))
		if got != want {
			t.Errorf("after %v s: %q, want %q", at, got, want)
		}
		if (got == "") != (left == 0) {
			t.Errorf("after %v s: %q, and %v left", at, got, left)
		}
	}
	expect(0, "")
	hold("https://api.example.com#0a1b2", 42)
	expect(0, "") // nobody waits for it yet
	begin(1, "https://api.example.com#0a1b2", heed.ReasonQueue, 50)
	expect(0, "api.example.com: waiting 42s (hold)")
	expect(40.6, "api.example.com: waiting 1s (hold)")
	expect(41.5, "") // not worth a word any more
	begin(2, "http://127.0.0.1:80", heed.ReasonPace, 3)
	begin(3, "http://127.0.0.1:80", heed.ReasonQueue, 9)
	expect(0, "api.example.com: waiting 42s (hold), 1 host more")
	b.end(1)
	expect(0, "127.0.0.1:80: waiting 3s (pace)")
	b.end(2)
	expect(0, "127.0.0.1:80: waiting 9s (queue)")
	hold("http://127.0.0.1:80", 20)
	expect(0, "127.0.0.1:80: waiting 20s (hold)")
	b.end(3)
	b.end(3)
	expect(0, "")
}

func TestWhatAnswersSayIsNewerThanWhatACallFirstWaitedFor(t *testing.T) {
	b := newBoard()
	b.begin(1, wait{"http://h", heed.ReasonQueue, noon}, noon)
	said := heed.Reading{Has: heed.HasRemaining, Remaining: 3, Reset: after(30)}
	b.limit("http://h", said, noon)
	if got, _ := b.line(noon); got != "" {
		t.Errorf("%q of a limit with units left", got)
	}
	said.Remaining = 0
	b.limit("http://h", said, noon)
	if got, left := b.line(after(10)); got != "h: waiting 20s (limit)" || left != 20*time.Second {
		t.Errorf("%q, %v", got, left)
	}
	b.begin(1, wait{"http://h", heed.ReasonPace, after(15)}, after(10))
	if got, _ := b.line(after(10)); got != "h: waiting 5s (pace)" {
		t.Errorf("%q, want what the call itself was told", got)
	}
}

func TestTheEndIsForeseenFromThePaceAndTheWait(t *testing.T) {
	for _, tt := range []struct {
		done, total int64
		took, wait  time.Duration
		want        string
	}{
		{0, 10, time.Second, 0, "?"},
		{0, 10, time.Second, 42 * time.Second, "over 42s"},
		{5, 10, 20 * time.Second, 0, "20s"},
		{5, 10, 20 * time.Second, time.Minute, "1m0s"},
		{10, 10, time.Minute, 0, "0s"},
		{1, 1_000_000, time.Second, 0, "277h46m39s"},
		{3, 2, time.Second, 0, "?"}, // the bar learns the two one after the other
	} {
		if got := eta(tt.done, tt.total, tt.took, tt.wait); got != tt.want {
			t.Errorf("%d of %d in %v, then %v: %q, want %q", tt.done, tt.total, tt.took, tt.wait, got, tt.want)
		}
	}
}

func TestALogIsToldOfLongWaitsOnly(t *testing.T) {
	b := newBoard()
	if s := b.begin(1, wait{"http://h", heed.ReasonProbe, after(0.4)}, noon); s != "" {
		t.Errorf("%q of a short wait", s)
	}
	if s := b.hold("http://h", after(60), noon); s != "h: waiting 1m0s (hold)" {
		t.Errorf("%q", s)
	}
	for i := range 100 {
		if s := b.begin(i, wait{"http://h", heed.ReasonQueue, after(60 + float64(i)/10)}, after(float64(i)/10)); s != "" {
			t.Fatalf("the same wait is told again: %q", s)
		}
	}
	if s := b.hold("http://h", after(600), after(1)); s != "h: waiting 9m59s (hold)" {
		t.Errorf("a far longer hold: %q", s)
	}
	if s := b.begin(1, wait{"http://h", heed.ReasonLimit, after(630)}, after(601)); s != "h: waiting 29s (limit)" {
		t.Errorf("the next wait: %q", s)
	}
}

func TestAPacedHostIsToldOfNowAndThen(t *testing.T) {
	b := newBoard()
	lines := 0
	for i := range 300 {
		now := after(float64(i) * 2)
		if b.begin(0, wait{"http://h", heed.ReasonPace, now.Add(2 * time.Second)}, now) != "" {
			lines++
		}
		b.end(0)
	}
	if lines < 30 || lines > 60 {
		t.Errorf("%d lines in 10 minutes", lines)
	}
}

func TestTheBoardStaysSmall(t *testing.T) {
	b := newBoard()
	told := 0
	for i := range mostScopes + 100 {
		scope := fmt.Sprintf("http://h%d", i)
		if strings.Contains(b.hold(scope, after(1000), noon), scope[7:]) {
			told++
		}
		b.begin(i, wait{scope, heed.ReasonQueue, after(5)}, noon)
		b.end(i)
	}
	if len(b.holds) > mostScopes || len(b.quiet) > mostScopes || len(b.waits) != 0 || told != mostScopes {
		t.Errorf("%d holds, %d told, %d waits, %d lines", len(b.holds), len(b.quiet), len(b.waits), told)
	}
	b.hold("http://new", after(3000), after(2000))
	if len(b.holds) != 1 || len(b.quiet) != 1 {
		t.Errorf("%d holds and %d told are left when all have ended", len(b.holds), len(b.quiet))
	}
}
