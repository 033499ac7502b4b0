//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"github.com/heedhttp/heed/heedtest"
	"go.uber.org/goleak"
)

// onTerminal runs the program with a terminal for its stderr, and also for
// stdout if asked, and gives what the terminals got.
func onTerminal(t *testing.T, both bool, args ...string) (code int, screen string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	master, tty, err := pty.Open()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no terminal to be had: ", err)
		}
		t.Skip("no terminal to be had: ", err)
	}
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	var seen bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&seen, master) }) // ends with an error when the other side is closed
	var out io.Writer = io.Discard
	if both {
		out = tty
	}
	code = run(t.Context(), args, tty, out, tty)
	tty.Close()
	reading.Wait()
	master.Close()
	goleak.VerifyNone(t, before, serving)
	return code, seen.String()
}

var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestATerminalGetsABarThatSaysWhatIsWaitedFor(t *testing.T) {
	t.Setenv("TERM", "xterm")
	srv := newSite().servers()["HELD"]
	url := srv.Listen(t)
	code, screen := onTerminal(t, false, "get", "-n", "1", url+"/text/a", url+"/text/b", "nonsense")
	if code != exitFailed {
		t.Errorf("status %d", code)
	}
	for _, want := range []string{`1/3 \[[=>-]+\]  33 %  eta [12]s`, `127\.0\.0\.1:\d+: waiting [12]s \(hold\)`, `heed: nonsense: this is not a URL`, `3 URLs: 2 ok, 1 failed`} {
		if !regexp.MustCompile(want).MatchString(screen) {
			t.Errorf("no %q on the terminal:\n%q", want, screen)
		}
	}
	if strings.Contains(screen, "ok http") {
		t.Errorf("plain lines on the terminal:\n%q", screen)
	}
	if colour.MatchString(screen) {
		t.Errorf("colour on the terminal:\n%q", screen)
	}
}

func TestNoBarComesBetweenBodies(t *testing.T) {
	t.Setenv("TERM", "xterm")
	url := (&heedtest.Server{Handler: newSite().handler()}).Listen(t)
	code, screen := onTerminal(t, true, "get", url+"/text/a", url+"/text/b")
	if code != exitOK || strings.ContainsRune(screen, '\x1b') || !strings.Contains(screen, "<a>\r\n") {
		t.Errorf("status %d, screen %q", code, screen)
	}
}

func TestADumbTerminalGetsPlainLines(t *testing.T) {
	t.Setenv("TERM", "dumb")
	url := (&heedtest.Server{Handler: newSite().handler()}).Listen(t)
	code, screen := onTerminal(t, false, "get", url+"/text/a")
	if code != exitOK || strings.ContainsRune(screen, '\x1b') || !strings.Contains(screen, "ok http") {
		t.Errorf("status %d, screen %q", code, screen)
	}
}

func TestAQuietRunShowsNoBar(t *testing.T) {
	t.Setenv("TERM", "xterm")
	url := (&heedtest.Server{Handler: newSite().handler()}).Listen(t)
	if code, screen := onTerminal(t, false, "get", "-q", url+"/text/a"); code != exitOK || screen != "" {
		t.Errorf("status %d, screen %q", code, screen)
	}
}

func TestNoURLOnATerminalIsAMistakeAndNoWait(t *testing.T) {
	if code, screen := onTerminal(t, false, "get"); code != exitUsage || !strings.Contains(screen, "no URL; give some as arguments") {
		t.Errorf("status %d, screen %q", code, screen)
	}
}

func TestWhatIsNoTerminalIsNone(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if terminal(file) || terminal(new(bytes.Buffer)) || terminal(nil) {
		t.Error("a file, a buffer or nothing is taken for a terminal")
	}
}
