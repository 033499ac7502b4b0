package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func parse(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestFileNamesAreLegible(t *testing.T) {
	for _, tt := range []struct {
		url, name string
		exact     bool
	}{
		{"https://example.com", "example.com_index", true},
		{"https://Example.COM/", "example.com_index", true},
		{"https://example.com/a/b.json", "example.com_a_b.json", true},
		{"https://example.com:8443/a/", "example.com_8443_a_index", true},
		{"https://user:pw@example.com/a", "example.com_a", true},
		{"https://example.com/a?q=1", "example.com_a", false},
		{"https://example.com/a%20b", "example.com_a_b", false},
		{"https://example.com/%2e%2e/x", "example.com_.._x", true},
		{"https://example.com/a%2Fb", "example.com_a_b", true},
		{"https://example.com/a%00b%5Cc", "example.com_a_b_c", false},
		{"https://example.com/caf%C3%A9", "example.com_café", false},
		{"https://example.com/x...", "example.com_x_", false},
		{"https://[::1]:80/x", "___1__80_x", false},
		{"http://com1.example/x", "_com1.example_x", false},
		{"http://nul/", "nul_index", true},
		{"http://.hidden/x", "_.hidden_x", false},
		{"http://-f/x", "_-f_x", false},
	} {
		name, exact := fileName(parse(t, tt.url))
		if name != tt.name || exact != tt.exact {
			t.Errorf("%s: %q, %v, want %q, %v", tt.url, name, exact, tt.name, tt.exact)
		}
	}
}

func TestTheSameListGetsTheSameNames(t *testing.T) {
	list := []string{
		"http://h/a_b", "http://h/a/b", "https://h/a/b", "http://h/a/b", "http://h/A/B", "http://h/a/b?x", "http://h/a/b?y",
		"http://h/a.tar?1", "http://h/a.tar?2", "http://u:p@h/a/b?x",
	}
	var first, second names
	seen := map[string]string{}
	for _, raw := range list {
		a, b := first.assign(parse(t, raw)), second.assign(parse(t, raw))
		if a != b {
			t.Errorf("%s is %q and then %q", raw, a, b)
		}
		if old, ok := seen[strings.ToLower(a)]; ok {
			t.Errorf("%s and %s are both %q", raw, old, a)
		}
		seen[strings.ToLower(a)] = raw
	}
}

func TestADigestIsOfTheURLAloneAndKeepsTheExtension(t *testing.T) {
	var one, other names
	with, without := one.assign(parse(t, "http://user:pw@h/a.json?x=1")), other.assign(parse(t, "http://h/a.json?x=1"))
	if with != without {
		t.Errorf("user info shows in the name: %q, %q", with, without)
	}
	if filepath.Ext(with) != ".json" {
		t.Errorf("%q has lost its extension", with)
	}
	for name, want := range map[string]string{
		"h_a.json": "h_a-X.json", "example.com_a": "example.com_a-X", "h_a": "h_a-X", "h_a.muchtoolong": "h_a.muchtoolong-X",
	} {
		if got := insert(name, "X"); got != want {
			t.Errorf("insert(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzFileName(f *testing.F) {
	for _, seed := range []string{
		"http://h/a/../../b", "http://h/%2e%2e%2fetc%2fpasswd", "http://h/" + strings.Repeat("é", 300),
		"http://h/\\..\\x", "http://con/", "http://h/a?b#c", "http://h/%ff%fe", "http://[::1%25eth0]/", "http://h/.", "http://h/ ",
	} {
		f.Add(seed, "http://h/other")
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, first, second string) {
		var n names
		var given []string
		for i, raw := range []string{first, second, first} {
			it := newItem(i, raw)
			if it.url == nil {
				continue
			}
			name := n.assign(it.url)
			given = append(given, name)
			if name == "" || name[0] == '.' || strings.ContainsAny(name, "/\\\x00:*?\"<>|") || !filepath.IsLocal(name) || filepath.Base(name) != name {
				t.Fatalf("%q becomes the name %q", raw, name)
			}
			if len(name) > 255 || !utf8.ValidString(name) {
				t.Fatalf("%q becomes a name of %d bytes: %q", raw, len(name), name)
			}
		}
		for i, a := range given {
			for _, b := range given[:i] {
				if strings.EqualFold(a, b) {
					t.Fatalf("%q and %q both become %q", first, second, a)
				}
			}
			path := filepath.Join(dir, a)
			if err := os.WriteFile(path, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	})
}
