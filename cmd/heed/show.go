package main

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is how much of anything is shown in one message, in bytes.
const longest = 300

// show writes a URL for people. User info and query may hold secrets: the
// first is dropped, and of the second only that there is one is said.
func show(u *url.URL) string {
	clean := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	s := clean.String()
	if u.RawQuery != "" {
		s += "?..."
	}
	return printable(s)
}

// showRaw does the same for a text that is no URL, so that nobody can say
// which of its parts is which: all that might be user info or query goes.
func showRaw(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	if ok && !strings.ContainsAny(scheme, "@?#") {
		scheme += "://"
	} else {
		scheme, rest = "", raw
	}
	at, mark := strings.LastIndexByte(rest, '@'), strings.IndexAny(rest, "?#")
	switch {
	case mark >= 0 && at > mark: // a password with a mark in it, or a query with an @
		return printable(scheme + "...")
	case mark >= 0:
		rest = rest[:mark] + "?..."
	}
	rest = rest[at+1:]
	return printable(scheme + rest)
}

var (
	userInfo = regexp.MustCompile(`//[^/\s"?#]*@`)
	query    = regexp.MustCompile(`\?[^\s"]*`)
)

// showError writes an error of which nothing is known: what looks like user
// info or a query goes.
func showError(err error) string {
	s := userInfo.ReplaceAllString(err.Error(), "//")
	return printable(query.ReplaceAllString(s, "?..."))
}

// printable makes one line of s that a terminal takes for text, of bounded
// length: some of what is shown was written by servers.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) <= longest {
		return s
	}
	cut := longest
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}
