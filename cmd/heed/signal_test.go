//go:build unix

package main

import (
	"bytes"
	"os/exec"
	"syscall"
	"testing"
)

// TestWhatStopsAServiceStopsItCleanly ends a real process in the way that
// supervisors do.
func TestWhatStopsAServiceStopsItCleanly(t *testing.T) {
	s, url := start(t)
	var out, said bytes.Buffer
	c := exec.CommandContext(t.Context(), "heed", "get", "-q", "-n", "1", url+"/text/a", url+"/hang", url+"/text/b")
	c.Stdout, c.Stderr = &out, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-s.hung
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // its status is looked at
	if code := c.ProcessState.ExitCode(); code != exitInterrupted || out.String() != "<a>\n" {
		t.Errorf("status %d, printed %q, said %q", code, out.String(), said.String())
	}
}
