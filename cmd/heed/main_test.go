package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write what the program says into the golden files")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"heed": main})
}

// result is what one run in this process came to.
type result struct {
	code           int
	stdout, stderr string
}

// heedWith runs the program in this process, and checks that nothing of it stays behind.
func heedWith(t *testing.T, ctx context.Context, stdin string, args ...string) result {
	t.Helper()
	before := goleak.IgnoreCurrent()
	var out, err bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &err)
	goleak.VerifyNone(t, before, serving)
	return result{code, out.String(), err.String()}
}

// serving is what a test server keeps for the connections of a client that has gone.
var serving = goleak.IgnoreAnyFunction("net/http.(*conn).serve")

func heedCLI(t *testing.T, args ...string) result {
	t.Helper()
	return heedWith(t, t.Context(), "", args...)
}

// golden holds text against a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update to accept):\n%s\nwant:\n%s", name, got, want)
	}
}

var (
	someServer = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	someTime   = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s|µs)\b`)
)

// steady makes a run's words the same each time.
func steady(s string) string {
	return someTime.ReplaceAllString(someServer.ReplaceAllString(s, "SERVER"), "TIME")
}

func TestHelpSaysWhatThereIs(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	for name, args := range map[string][]string{
		"help":         {"--help"},
		"help-short":   {"-h"},
		"help-get":     {"get", "--help"},
		"help-get-any": {"get", "--parallel", "3", "-h", "http://example.com/"},
	} {
		r := heedCLI(t, args...)
		if r.code != exitOK || r.stderr != "" {
			t.Errorf("%v: status %d, stderr %q", args, r.code, r.stderr)
		}
		golden(t, strings.TrimSuffix(strings.TrimSuffix(name, "-short"), "-any"), r.stdout)
	}
}

func TestVersionIsOneLine(t *testing.T) {
	r := heedCLI(t, "--version")
	if r.code != exitOK || !strings.HasPrefix(r.stdout, "heed ") || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("status %d, stdout %q", r.code, r.stdout)
	}
	if agent := userAgent(); strings.ContainsAny(agent, "() ") {
		t.Errorf("%q is not a product of RFC 9110", agent)
	}
}

func TestAWrongCommandLineIsStatus2AndOneLine(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{nil, "see heed --help"},
		{[]string{"fetch"}, "fetch"},
		{[]string{"get", "--nonsense"}, "unknown flag --nonsense; see heed get --help"},
		{[]string{"get", "-n", "0", "http://a.invalid"}, "between 1 and 1000"},
		{[]string{"get", "-n", "many", "http://a.invalid"}, "see heed get --help"},
		{[]string{"get", "--timeout=-1s", "http://a.invalid"}, "negative"},
		{[]string{"get", "--timeout", "soon", "http://a.invalid"}, "soon"},
		{[]string{"get", "--max-wait", "0s", "http://a.invalid"}, "--max-wait"},
		{[]string{"get", "--retries=-2", "http://a.invalid"}, "between 0 and 1000"},
		{[]string{"get", "--cache-size", "big", "http://a.invalid"}, `"big" is not a size`},
		{[]string{"get", "-q", "-v", "http://a.invalid"}, "do not go together"},
		{[]string{"get", "-", "-"}, "only once"},
		{[]string{"get"}, "standard input has no URL"},
	} {
		r := heedCLI(t, tt.args...)
		if r.code != exitUsage || r.stdout != "" || !strings.Contains(r.stderr, tt.says) {
			t.Errorf("%v: status %d, stderr %q, want 2 and %q", tt.args, r.code, r.stderr, tt.says)
		}
		if strings.Count(r.stderr, "\n") != 1 || !strings.HasPrefix(r.stderr, "heed: ") {
			t.Errorf("%v: not one line: %q", tt.args, r.stderr)
		}
	}
}

// brokenWriter fails after some bytes.
type brokenWriter struct {
	left int
	err  error
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, w.err
	}
	w.left -= len(p)
	return len(p), nil
}

var _ io.Writer = (*brokenWriter)(nil)
