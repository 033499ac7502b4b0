package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// take reads a list to its end.
func take(l *list) (labels []string) {
	for it := l.next(context.Background()); it != nil; it = l.next(context.Background()) {
		labels = append(labels, it.label)
	}
	return labels
}

func TestAListIsReadLineByLine(t *testing.T) {
	for _, tt := range []struct {
		name, stdin string
		want        []string
	}{
		{"plain", "http://h/a\nhttp://h/b\n", []string{"http://h/a", "http://h/b"}},
		{"no newline at the end", "http://h/a", []string{"http://h/a"}},
		{"carriage returns and spaces", " http://h/a \r\n\r\n\thttp://h/b\r\n", []string{"http://h/a", "http://h/b"}},
		{"comments", "# x\n  # y\nhttp://h/a\n#", []string{"http://h/a"}},
		{"byte order mark", "\ufeffhttp://h/a\n\ufeff\n", []string{"http://h/a", "\ufeff"}},
		{"nothing", "\n\n# \n", nil},
		{"a line too long", "http://h/a\n" + strings.Repeat("x", 3*longestLine) + "\nhttp://h/b", []string{"http://h/a", "(a line of more than 64 KiB)", "http://h/b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for reader, r := range map[string]io.Reader{"whole": strings.NewReader(tt.stdin), "bytewise": iotest.OneByteReader(strings.NewReader(tt.stdin))} {
				l := newList()
				prepared := 0
				l.feed([]string{"-"}, r, func(it *item) {
					if it.index != prepared {
						t.Errorf("item %d came as number %d", it.index, prepared)
					}
					prepared++
				})
				want := tt.want
				if tt.name == "byte order mark" {
					want = []string{"http://h/a", "(empty)"} // it is shown as nothing
				}
				if got := take(l); !slices.Equal(got, want) || prepared != len(want) || l.size() != len(want) {
					t.Errorf("%s: %q, %d prepared, want %q", reader, got, prepared, want)
				}
				if ended, err := l.end(); !ended || err != nil {
					t.Errorf("%s: ended: %v, %v", reader, ended, err)
				}
			}
		})
	}
}

func TestAListThatBreaksOffKeepsWhatWasRead(t *testing.T) {
	l := newList()
	broken := io.MultiReader(strings.NewReader("http://h/a\n"), iotest.ErrReader(errors.New("input/output error")))
	l.feed([]string{"http://h/0", "-", "http://h/z"}, broken, func(*item) {})
	if got := take(l); !slices.Equal(got, []string{"http://h/0", "http://h/a"}) {
		t.Errorf("%q", got)
	}
	if _, err := l.end(); err == nil || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("%v", err)
	}
}

func TestFetchingBeginsBeforeTheListEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		l := newList()
		go l.feed([]string{"-"}, r, func(*item) {})
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		go func() {
			for it := l.next(ctx); it != nil; it = l.next(ctx) {
				got = append(got, it.label)
			}
			got = append(got, "end")
		}()
		_, _ = io.WriteString(w, "http://h/a\n")
		synctest.Wait()
		if !slices.Equal(got, []string{"http://h/a"}) {
			t.Fatalf("%q, want the first at once", got)
		}
		cancel()
		synctest.Wait()
		if !slices.Equal(got, []string{"http://h/a", "end"}) {
			t.Errorf("%q, want an end with the context", got)
		}
		w.Close()
	})
}

func TestWhatIsNoURLFailsInItsTurn(t *testing.T) {
	for raw, says := range map[string]string{
		"nonsense":          "no scheme",
		"example.com/path":  "no scheme",
		"localhost:8080/x":  "no scheme",
		"user:pw@host":      "no scheme",
		"ftp://h/x":         "scheme ftp",
		"mailto:someone":    "scheme mailto",
		"http:///x":         "no host",
		"http://:80/":       "no host",
		"http:x":            "no host",
		"http://h:port/":    "not a URL",
		"http://h/%zz":      "not a URL",
		"http://h/\x7f":     "not a URL",
		"://h":              "not a URL",
		"http://[::1/":      "not a URL",
		"javascript:void 0": "scheme javascript",
	} {
		it := newItem(3, raw)
		if it.wrong == nil || !strings.Contains(it.wrong.Error(), says) || it.url != nil || it.index != 3 || it.label == "" {
			t.Errorf("%q: %+v, want an error with %q", raw, it, says)
		}
	}
	if it := newItem(0, "HTTPS://h/x#part"); it.wrong != nil || it.url.String() != "https://h/x" {
		t.Errorf("%+v", it)
	}
}

// FuzzEachLine holds the reading of a list against a slow and simple one.
func FuzzEachLine(f *testing.F) {
	for _, seed := range []string{"a\nb", "\ufeff# x\r\n\r\n a \n", "\x00\n\xff\n", "#", "\n\n", strings.Repeat("x", longestLine) + "\ny"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		var want, got []string
		for i, line := range strings.Split(string(list), "\n") {
			if len(line) >= longestLine {
				return // its own test has that
			}
			if i == 0 {
				line = strings.TrimPrefix(line, "\ufeff")
			}
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				want = append(want, line)
			}
		}
		if err := eachLine(iotest.HalfReader(strings.NewReader(string(list))), func(s string) { got = append(got, s) }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q gives %q, want %q", list, got, want)
		}
	})
}
