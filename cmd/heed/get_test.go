package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

func TestTheSummaryCountsWhatHappened(t *testing.T) {
	_, url := start(t)
	r := heedCLI(t, "get", "-n", "1", "--retries", "0", "--cache-size", "1MB",
		url+"/text/a", url+"/away", url+"/status/500", "nonsense", url+"/big/12345")
	if r.code != exitFailed {
		t.Errorf("status %d", r.code)
	}
	golden(t, "summary", steady(r.stderr))
	if !strings.HasPrefix(r.stdout, "<a>\n<landed>\n0123456789abcde\n") || len(r.stdout) != 4+9+12345 {
		t.Errorf("%d bytes: %.40q", len(r.stdout), r.stdout)
	}
}

func TestAnInterruptKeepsWhatIsFetched(t *testing.T) {
	s, url := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.hung; <-s.hung; cancel() }()
	// The first /hang is in the way of what comes after it, which is printed all the same.
	r := heedWith(t, ctx, "", "get", "-n", "2", url+"/hang", url+"/text/a", url+"/text/b", url+"/hang", url+"/text/c")
	if r.code != exitInterrupted || r.stdout != "<a>\n<b>\n" {
		t.Errorf("status %d, printed %q", r.code, r.stdout)
	}
	if !strings.Contains(r.stderr, "interrupted: 2 of 5 URLs done; what was fetched is kept\n") || strings.Contains(r.stderr, "cancel") {
		t.Errorf("said %q", r.stderr)
	}
}

func TestAnInterruptLeavesNoHalfFiles(t *testing.T) {
	s, url := start(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.hung; cancel() }()
	r := heedWith(t, ctx, "", "get", "-q", "-n", "1", "-o", dir, url+"/text/a", url+"/hang", url+"/text/b")
	if r.code != exitInterrupted || steady(r.stderr) != "heed: interrupted: 1 of 3 URLs done; what was fetched is kept\n" {
		t.Errorf("status %d, said %q", r.code, r.stderr)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), "_text_a") {
		t.Errorf("%v, %v", files, err)
	}
}

func TestAnInterruptBeforeTheListEndsSaysSo(t *testing.T) {
	_, url := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	in, w := io.Pipe()
	var out, said bytes.Buffer
	go func() {
		_, _ = io.WriteString(w, url+"/text/a\n")
		_, _ = io.WriteString(w, "# read only when the line above has been\n")
		cancel()
	}()
	code := run(ctx, []string{"get"}, in, &out, &said)
	w.Close()
	if code != exitInterrupted || !strings.Contains(said.String(), "done and the list not read to its end") {
		t.Errorf("status %d, said %q", code, said.String())
	}
}

func TestAnInterruptAfterTheEndIsNone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := heedWith(t, ctx, "", "get", "-")
	if r.code == exitOK {
		t.Errorf("status %d", r.code)
	}
}

func TestAListThatCannotBeReadIsAFailure(t *testing.T) {
	_, url := start(t)
	in := io.MultiReader(strings.NewReader(url+"/text/a\n"), iotest.ErrReader(errors.New("input/output error")))
	var out, said bytes.Buffer
	code := run(t.Context(), []string{"get"}, in, &out, &said)
	if code != exitFailed || out.String() != "<a>\n" || !strings.Contains(said.String(), "heed: cannot read standard input: input/output error; ") {
		t.Errorf("status %d, printed %q, said %q", code, out.String(), said.String())
	}
}

func TestAnOutputThatBreaksEndsTheRun(t *testing.T) {
	_, url := start(t)
	var said bytes.Buffer
	args := []string{"get", "-n", "4"}
	for range 50 {
		args = append(args, url+"/big/100000")
	}
	code := run(t.Context(), args, nil, &brokenWriter{left: 150_000, err: syscall.ENOSPC}, &said)
	if code != exitOutput {
		t.Errorf("status %d", code)
	}
	if n := strings.Count(said.String(), "heed: "); n != 1 || !strings.Contains(said.String(), "cannot write to standard output: no space left on device; ") {
		t.Errorf("said %q", said.String())
	}
}

func TestTheSameURLTwiceIsFetchedTwice(t *testing.T) {
	_, url := start(t)
	r := heedCLI(t, "get", "-q", url+"/text/a", url+"/text/a")
	if r.code != exitOK || r.stdout != "<a>\n<a>\n" || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

func TestADirectoryIsProvedWritableAndLeftAsItWas(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.close()
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "sub"), ""} {
		_, err := openFolder(path)
		var output *outputError
		if !errors.As(err, &output) || strings.ContainsAny(err.Error(), "\n") || !strings.Contains(err.Error(), "-o") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestASymbolicLinkIsReplacedAndNotFollowed(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "name")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("no symbolic links here: ", err)
	}
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	d, err := f.begin(&item{name: "name"})
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, d, "new")
	if err := d.end(true); err != nil {
		t.Fatal(err)
	}
	inside, _ := os.ReadFile(filepath.Join(dir, "name"))
	old, _ := os.ReadFile(outside)
	if string(inside) != "new" || string(old) != "old" {
		t.Errorf("inside %q, outside %q", inside, old)
	}
}

func TestADirectoryThatGoesAwayIsSaid(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	f, err := openFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	d, err := f.begin(&item{name: "name"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := d.end(true); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "cannot write to the directory") {
		t.Errorf("%v", err)
	}
	if _, err := f.begin(&item{name: "other"}); err == nil {
		t.Error("another file may begin")
	}
}

func TestManyURLsAtATimeEachGetTheirOwnFile(t *testing.T) {
	_, url := start(t)
	dir := t.TempDir()
	var list strings.Builder
	for i := range 200 {
		fmt.Fprintf(&list, "%s/text/%d/%d\n%s/text/%d_%d\n", url, i/10, i%10, url, i/10, i%10)
	}
	r := heedWith(t, t.Context(), list.String(), "get", "-q", "-n", "32", "-o", dir)
	if r.code != exitOK || r.stderr != "" {
		t.Fatalf("status %d, said %q", r.code, r.stderr)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 400 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	bodies := make(map[string]bool)
	for _, f := range files {
		body, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		bodies[string(body)] = true
	}
	if len(bodies) != 400 {
		t.Errorf("%d bodies in 400 files", len(bodies))
	}
}

func TestABodyThatBreaksOffInItsTurnIsAFailureAndTheNextFollows(t *testing.T) {
	_, url := start(t)
	r := heedCLI(t, "get", "-n", "1", url+"/cut", url+"/text/b")
	if r.code != exitFailed || r.stdout != "0123456789<b>\n" {
		t.Errorf("status %d, printed %q", r.code, r.stdout)
	}
	if !strings.Contains(r.stderr, "/cut: the body broke off after 10 B: ") {
		t.Errorf("said %q", r.stderr)
	}
}

func TestNoSecretOfAURLShows(t *testing.T) {
	_, url := start(t)
	withUser := strings.Replace(url, "http://", "http://s3cretuser:s3cretword@", 1)
	dir := t.TempDir()
	r := heedCLI(t, "get", "-v", "-o", dir, "--retries", "0",
		withUser+"/text/a?key=s3cret", withUser+"/status/500?key=s3cret", withUser+"/away?s3cret", withUser+"/cut?s3cret#s3cret")
	if r.code != exitFailed {
		t.Errorf("status %d", r.code)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v, %v", files, err)
	}
	if all := fmt.Sprint(r.stderr, files); strings.Contains(all, "s3cret") {
		t.Errorf("a secret shows:\n%s", all)
	}
}

func TestALongWaitIsLogged(t *testing.T) {
	url := newSite().servers()["CLOSED"].Listen(t)
	r := heedCLI(t, "get", "-v", "-n", "1", "--max-wait", "1s", url+"/text/a", url+"/text/b", url+"/text/c")
	if r.code != exitFailed || r.stdout != "<a>\n" {
		t.Errorf("status %d, printed %q", r.code, r.stdout)
	}
	for _, want := range []string{`level=INFO msg="heed: scope on hold"`, `level=WARN msg="heed: gave up"`} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %s in:\n%s", want, r.stderr)
		}
	}
}
