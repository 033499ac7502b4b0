package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// item is one URL to fetch.
type item struct {
	index int      // its place in the list, from 0
	url   *url.URL // nil: what was given is not fit to be fetched
	label string   // how people see it: no secrets
	name  string   // of the file that it is saved to, if it is saved
	wrong error    // why it is not fit to be fetched
}

// newItem reads what a user gave as a URL. It always gives an item: one that
// cannot be fetched fails in its turn, like any other.
func newItem(index int, raw string) *item {
	it := &item{index: index}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		it.wrong = errors.New("this is not a URL; write it in full, as in https://example.com/path")
	case u.Scheme == "" || bare(u):
		it.wrong = errors.New("this is not a URL, as it has no scheme; put https:// in front")
	case u.Scheme != "http" && u.Scheme != "https":
		it.wrong = fmt.Errorf("the scheme %s cannot be fetched; give an http or https URL", printable(u.Scheme))
	case u.Hostname() == "":
		it.wrong = errors.New("this URL has no host; write it in full, as in https://example.com/path")
	}
	if it.wrong != nil {
		it.label = showRaw(raw)
		if it.label == "" {
			it.label = "(empty)"
		}
		return it
	}
	u.Fragment, u.RawFragment = "", "" // it is not for the server (RFC 9110, 7.1)
	it.url, it.label = u, show(u)
	return it
}

// bare says that a text without a scheme was given: what stands before its
// first colon is a host, or a user.
func bare(u *url.URL) bool {
	return u.Opaque != "" && ('0' <= u.Opaque[0] && u.Opaque[0] <= '9' || strings.Contains(u.Opaque, "@"))
}
