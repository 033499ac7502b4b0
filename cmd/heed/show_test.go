package main

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode"
)

func TestAURLIsShownWithoutItsSecrets(t *testing.T) {
	for raw, want := range map[string]string{
		"http://user:pw@h:1/p?token=s#f": "http://h:1/p?...",
		"http://h/a%20b":                 "http://h/a%20b",
		"http://h":                       "http://h",
	} {
		if got := show(parse(t, raw)); got != want {
			t.Errorf("%s is shown as %q, want %q", raw, got, want)
		}
	}
	for raw, want := range map[string]string{
		"user:pw@host/x":         "host/x",
		"http://u:p@h:port/?s=1": "http://h:port/?...",
		"http://u:p?s@h/x":       "http://...",
		"http://h/%zz?a=x@y&b=s": "http://...",
		"example.com/x?key=s":    "example.com/x?...",
		"a\x1b[31mb\nc":          "a[31mb c",
		"u:p@://h/x":             "://h/x",
	} {
		if got := showRaw(raw); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
}

func TestAnUnknownErrorIsShownWithoutURLs(t *testing.T) {
	err := errors.New("failed to parse Location header \"http://u:s3cret@h/x?k=s3cret\": \r\n\x1b[2Jinvalid port")
	if got := showError(err); strings.Contains(got, "s3cret") || strings.ContainsAny(got, "\r\n\x1b") {
		t.Errorf("shown as %q", got)
	}
}

func TestWhatIsShownIsBounded(t *testing.T) {
	for _, s := range []string{strings.Repeat("é", 1000), strings.Repeat("x", 301), strings.Repeat("a\xff", 1000)} {
		if got := printable(s); len(got) > longest+3 || !strings.HasSuffix(got, "...") {
			t.Errorf("%d bytes are shown as %d: %q", len(s), len(got), got)
		}
	}
}

// FuzzShow holds that no secret part of a URL is shown, however it is written.
func FuzzShow(f *testing.F) {
	for _, seed := range [][2]string{{"http", "h/p"}, {"", "h"}, {"HTTP", "[::1"}, {"http", "h/%zz"}, {"a@b", "x"}, {"http", "h/\x00"}} {
		f.Add(seed[0], seed[1])
	}
	const secret = "s3cretZ"
	f.Fuzz(func(t *testing.T, scheme, rest string) {
		if strings.Contains(scheme+rest, secret) {
			return
		}
		for _, raw := range []string{
			scheme + "://u:" + secret + "@" + rest,
			scheme + "://" + rest + "?k=" + secret,
			scheme + "://u:" + secret + "@" + rest + "?k=" + secret + "@x&" + secret,
		} {
			it := newItem(0, raw)
			said := it.label
			if it.wrong != nil {
				said += it.wrong.Error()
			}
			u, err := url.Parse(raw)
			hostile := err == nil && (strings.Contains(u.Path, secret) || strings.Contains(u.Host, secret)) // then it is no secret
			if strings.Contains(said, secret) && !hostile && !strings.ContainsAny(scheme+rest, "/?#") {
				t.Fatalf("%q is shown as %q", raw, said)
			}
			if strings.ContainsFunc(said, func(r rune) bool { return !unicode.IsPrint(r) }) || len(it.label) > longest+3 {
				t.Fatalf("%q is shown as %q", raw, said)
			}
		}
	})
}
