package main

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heedhttp/heed/heedtest"
	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts run the program as a process of its own against servers on loopback sockets.
//
//	status N heed ...   runs it, and holds its exit status against N
//	interrupt           waits until /hang is asked for, and then sends what Ctrl-C sends to what runs in the background
//	interrupted         says, after wait, whether that ended with status 130
//	fetched NAME N      says whether the server $NAME was asked N times
//	refused NAME N      says whether the server $NAME refused at most N requests
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			s := newSite()
			env.Values["site"] = s
			for name, srv := range s.servers() {
				url, stop, err := srv.Start()
				if err != nil {
					return err
				}
				env.Defer(stop)
				env.Setenv(name, url)
				env.Setenv(name+"_HOST", strings.TrimPrefix(url, "http://"))
				env.Values[name] = srv
			}
			env.Setenv("GORACE", "atexit_sleep_ms=0") // which the race detector takes at each end of a process
			return os.MkdirAll(env.Getenv("TMPDIR"), 0o777)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":      exits,
			"interrupt":   interrupt,
			"interrupted": interrupted,
			"refused":     refused,
			"fetched":     fetched,
		},
	})
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

func interrupt(ts *testscript.TestScript, _ bool, _ []string) {
	select {
	case <-ts.Value("site").(*site).hung:
	case <-time.After(10 * time.Second):
		ts.Fatalf("nobody asked for /hang")
	}
	commands := ts.BackgroundCmds()
	running = append(running, commands...)
	for _, c := range commands {
		ts.Check(c.Process.Signal(os.Interrupt))
	}
}

// running are the processes of the one script that interrupts some.
var running []*exec.Cmd

func interrupted(ts *testscript.TestScript, _ bool, _ []string) {
	if len(running) == 0 {
		ts.Fatalf("nothing was interrupted")
	}
	for _, c := range running {
		if code := c.ProcessState.ExitCode(); code != exitInterrupted {
			ts.Fatalf("status %d, want %d", code, exitInterrupted)
		}
	}
}

func refused(ts *testscript.TestScript, _ bool, args []string) {
	most, err := strconv.Atoi(args[1])
	ts.Check(err)
	r := ts.Value(args[0]).(*heedtest.Server).Report()
	if r.Rejected > most {
		ts.Fatalf("want at most %d refusals:\n%v", most, r)
	}
}

func fetched(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	r := ts.Value(args[0]).(*heedtest.Server).Report()
	if got := r.Accepted + r.Rejected; got != want {
		ts.Fatalf("%d requests, want %d", got, want)
	}
}
