package main

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write what the program says into the golden file")

// short is a comparison that takes little more than a second for each client.
var short = []string{"-items", "60", "-workers", "8", "-rate", "25", "-burst", "25"}

// shape is a text without its figures: what a reader sees on every machine.
func shape(text string) string {
	text = regexp.MustCompile(`\d[\d,.]*`).ReplaceAllString(text, "N")
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}

// figures reads one line of the table.
func figures(t *testing.T, table, client string) (sent, refused, got, of int) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^ *` + client + ` +[\d.]+ s +([\d,]+) +([\d,]+) +(\d+) of (\d+)$`)
	m := line.FindStringSubmatch(table)
	if m == nil {
		t.Fatalf("no line for %q in:\n%s", client, table)
	}
	var n [4]int
	for i := range n {
		v, err := strconv.Atoi(strings.ReplaceAll(m[i+1], ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		n[i] = v
	}
	return n[0], n[1], n[2], n[3]
}

func TestBothClientsGetEverythingAndHeedIsHardlyRefused(t *testing.T) {
	defer goleak.VerifyNone(t)
	var stdout, stderr bytes.Buffer
	if status := start(t.Context(), short, &stdout, &stderr, false); status != 0 {
		t.Fatalf("exit status %d: %s", status, &stderr)
	}
	sent, refused, got, of := figures(t, stdout.String(), "retry at once")
	if got != 60 || of != 60 || sent != refused+60 {
		t.Errorf("retry at once: %d sent, %d refused, %d of %d got", sent, refused, got, of)
	}
	if refused < 100 {
		t.Errorf("the client that asks again at once was refused %d times, which shows nothing", refused)
	}
	sent, refused, got, of = figures(t, stdout.String(), "heed")
	if got != 60 || of != 60 || sent != refused+60 {
		t.Errorf("heed: %d sent, %d refused, %d of %d got", sent, refused, got, of)
	}
	if refused > 2 {
		t.Errorf("heed was refused %d times, want at most 2", refused)
	}
	golden(t, "testdata/table.golden", shape(stdout.String()))
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; -update writes it anew:\n%s", path, diff)
	}
}

func TestThePlanIsCheckedBeforeAnythingRuns(t *testing.T) {
	for _, c := range []struct {
		args, says string
		status     int
	}{
		{"-h", "-items", 0},
		{"-items 0", "-items is 0; give a number", 2},
		{"-items 2000000", "-items is 2000000", 2},
		{"-workers -1", "-workers is -1; give a number", 2},
		{"-rate 0", "-rate is 0; give a number", 2},
		{"-rate NaN", "-rate is NaN", 2},
		{"-burst 0.5", "-burst is 0.5", 2},
		{"-burst NaN", "-burst is NaN", 2},
		{"-colour", "flag provided but not defined", 2},
		{"more", `"more" is too much`, 2},
	} {
		var stdout, stderr bytes.Buffer
		status := start(t.Context(), strings.Fields(c.args), &stdout, &stderr, false)
		if status != c.status || !strings.Contains(stderr.String(), c.says) || stdout.Len() > 0 {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q", c.args, status, &stdout, &stderr)
		}
	}
}

func TestAnInterruptEndsTheRunAndLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var stdout, stderr bytes.Buffer
	status := start(ctx, []string{"-rate", "0.001", "-burst", "1", "-items", "9"}, &stdout, &stderr, false)
	if status != 130 || !strings.HasSuffix(stderr.String(), "quickstart: interrupted\n") {
		t.Errorf("exit status %d, stderr %q", status, &stderr)
	}
}

func TestProgressIsLinesInAPipeAndOneLineOnATerminal(t *testing.T) {
	for _, live := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			count := new(tally)
			w := progress{&out, live}.follow("heed", 200, count)
			count.got.Store(50)
			count.sent.Store(1234)
			time.Sleep(2*time.Second + time.Millisecond)
			w.end()
			const line = "heed          [#####...............] 50/200  1,234 sent  0 refused  2 s"
			want := line + "\n" + line + "\n"
			if live {
				want = "\r\x1b[K"
				if n := strings.Count(out.String(), "\n"); n > 0 {
					t.Errorf("%d line ends on a terminal", n)
				}
			}
			if !strings.HasSuffix(out.String(), want) || !strings.Contains(out.String(), line) {
				t.Errorf("live %v: %q", live, &out)
			}
		})
	}
}

func TestALineOfProgressFitsATerminal(t *testing.T) {
	var count tally
	count.got.Store(200)
	count.sent.Store(9_999_999)
	count.refused.Store(9_999_999)
	for _, c := range clients {
		if line := status(c.name, 200, &count, time.Minute); len(line) >= 96 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// always answers with one status.
type always int

func (a always) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: http.NoBody, Request: req}, nil
}

func TestFetchEndsAtWhatItCannotGet(t *testing.T) {
	for _, c := range []struct {
		status int
		again  bool
		calls  int
	}{
		{http.StatusTooManyRequests, false, 1},
		{http.StatusTooManyRequests, true, tries},
		{http.StatusInternalServerError, true, 1},
		{http.StatusNotFound, false, 1},
	} {
		count := &tally{base: always(c.status)}
		err := fetch(t.Context(), bare(count), "http://api.example.com/items/1", c.again)
		if err == nil || count.sent.Load() != int64(c.calls) {
			t.Errorf("status %d: %v after %d sends, want an error after %d", c.status, err, count.sent.Load(), c.calls)
		}
	}
}

func TestNumbersAreGroupedByThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 80163: "80,163", 1234567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if live(f) {
		t.Error("a regular file counts as a terminal")
	}
}
