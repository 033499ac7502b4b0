package heed

import (
	"net/http"
	"net/url"
	"testing"
)

func TestCacheKeysAreOfTheTargetURI(t *testing.T) {
	request := func(raw, host string) *http.Request {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Request{URL: u, Host: host}
	}
	text := func(req *http.Request) string { return string(appendTarget(nil, req, identities(req, nil))) }
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"letter case of the host (RFC 9110, 4.2.3)", "http://Api.Test/x", "http://api.test/x", true},
		{"letter case of the scheme", "HTTP://api.test/x", "http://api.test/x", true},
		{"the default port", "http://api.test:80/x", "http://api.test/x", true},
		{"the default port of https", "https://api.test:443/x", "https://api.test/x", true},
		{"an empty port", "http://api.test:/x", "http://api.test/x", true},
		{"another scheme's port", "http://api.test:443/x", "http://api.test/x", false},
		{"another port", "http://api.test:8080/x", "http://api.test/x", false},
		{"another scheme", "https://api.test/x", "http://api.test/x", false},
		{"an empty path", "http://api.test", "http://api.test/", true},
		{"an empty path with a query", "http://api.test?a", "http://api.test/?a", true},
		{"the fragment", "http://api.test/x#a", "http://api.test/x#b", true},
		{"hexadecimal (RFC 3986, 6.2.2.1)", "http://api.test/a%2fb?c=%c3%a9", "http://api.test/a%2Fb?c=%C3%A9", true},
		{"an encoded slash", "http://api.test/a%2Fb", "http://api.test/a/b", false},
		{"letter case of the path", "http://api.test/X", "http://api.test/x", false},
		{"a trailing slash", "http://api.test/x/", "http://api.test/x", false},
		{"the query", "http://api.test/x?a=1", "http://api.test/x?a=2", false},
		{"no query", "http://api.test/x?a=1", "http://api.test/x", false},
		{"an empty query", "http://api.test/x?", "http://api.test/x", false},
		{"the order of the query", "http://api.test/x?a=1&b=2", "http://api.test/x?b=2&a=1", false},
		{"a field twice", "http://api.test/x?a=1&a=1", "http://api.test/x?a=1", false},
		{"an ampersand more", "http://api.test/x?a=1&", "http://api.test/x?a=1", false},
		{"another host", "http://api.test/x", "http://api.test.evil/x", false},
		{"a user (who, not what)", "http://u:p@api.test/x", "http://api.test/x", true},
		{"the value of a key (who, not what)", "http://api.test/x?api_key=1&b=2", "http://api.test/x?api_key=9&b=2", true},
		{"what looks like a key's value", "http://api.test/x?b=1&api_key=1", "http://api.test/x?b=2&api_key=1", false},
		{"a percent sign alone", "http://api.test/x?%", "http://api.test/x?%2", false},
	} {
		a, b := text(request(tt.a, "")), text(request(tt.b, ""))
		if (a == b) != tt.same {
			t.Errorf("%s: %q and %q", tt.name, a, b)
		}
	}
	// A Host of its own is the name asked for; where it was asked counts too.
	own := text(request("http://10.0.0.1/x", "api.test"))
	for _, other := range []*http.Request{request("http://10.0.0.1/x", ""), request("http://api.test/x", ""), request("http://10.0.0.2/x", "api.test"), request("http://10.0.0.1/x", "other.test")} {
		if text(other) == own {
			t.Errorf("%s for %s has the key of another", other.URL, other.Host)
		}
	}
	if text(request("http://10.0.0.1/x", "API.test:80")) != own {
		t.Error("the Host is not normalised")
	}
	bare := &http.Request{URL: &url.URL{Scheme: "http", Host: "h", Path: "x/y"}}
	if text(bare) != text(request("http://h/x/y", "")) || text(bare) == text(request("http://hx/y", "")) {
		t.Errorf("a path without its slash gives %q", text(bare))
	}
	if opaque := (&http.Request{URL: &url.URL{Scheme: "http", Host: "api.test", Opaque: "//api.test/x"}}); text(opaque) == text(request("http://api.test/", "")) {
		t.Error("an opaque URL is taken for the root")
	}
}

func TestCacheHeaderNamesAreReadInAnyForm(t *testing.T) {
	plain := http.Header{"Accept": {"a"}}
	if h, odd := canonicalHeader(plain); odd || len(h) != 1 {
		t.Error("a canonical header is called odd")
	}
	h, odd := canonicalHeader(http.Header{"accept": {"b"}, "ACCEPT": {"a"}, "X-B": {"c"}})
	if !odd || len(h) != 2 || len(h["Accept"]) != 2 || h["Accept"][0] != "a" || h["X-B"][0] != "c" {
		t.Errorf("%v", h)
	}
}

func TestCacheAnswerWithOddFieldNamesIsReadAsMeant(t *testing.T) {
	odd := "set-cookie"
	r := newCacheRig(t, func(*http.Request) (*http.Response, error) {
		resp := cacheReply(200, "v", "Cache-Control: max-age=60")
		resp.Header[odd] = []string{"s=1"}
		return resp, nil
	})
	r.get(cacheURL)
	if got := r.get(cacheURL); got.outcome != "hit" || len(got.Header[odd])+len(got.Header["Set-Cookie"]) > 0 {
		t.Errorf("%s with %v", got.outcome, got.Header)
	}
	r = newCacheRig(t, func(*http.Request) (*http.Response, error) {
		resp := cacheReply(200, "v", "Cache-Control: max-age=60")
		odd := "cache-control"
		resp.Header[odd] = []string{"no-store"}
		return resp, nil
	})
	r.want(r.get(cacheURL), "miss", "v", 1)
}
