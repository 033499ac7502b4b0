package heed

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// principals are ways to say who asks, each told apart from the others by its number.
var principals = []struct {
	name string
	as   func(req *http.Request, who string)
}{
	{"Authorization", func(req *http.Request, who string) { req.Header.Set("Authorization", "Bearer "+who) }},
	{"authorization in lower case", func(req *http.Request, who string) { req.Header["authorization"] = []string{"Bearer " + who} }},
	{"Cookie", func(req *http.Request, who string) { req.Header.Set("Cookie", "s="+who) }},
	{"COOKIE in upper case", func(req *http.Request, who string) { req.Header["COOKIE"] = []string{"s=" + who} }},
	{"X-API-Key", func(req *http.Request, who string) { req.Header.Set("X-API-Key", who) }},
	{"Private-Token", func(req *http.Request, who string) { req.Header.Set("Private-Token", who) }},
	{"a vendor's own key", func(req *http.Request, who string) { req.Header.Set("X-Acme-Secret-2", who) }},
	{"a session", func(req *http.Request, who string) { req.Header.Set("X-Session-Id", who) }},
	{"an account acted for", func(req *http.Request, who string) { req.Header.Set("Stripe-Account", who) }},
	{"an organisation", func(req *http.Request, who string) { req.Header.Set("OpenAI-Organization", who) }},
	{"a user impersonated", func(req *http.Request, who string) { req.Header.Set("Impersonate-User", who) }},
	{"user info", func(req *http.Request, who string) { req.URL.User = url.UserPassword("u", who) }},
	{"user info without a password", func(req *http.Request, who string) { req.URL.User = url.User(who) }},
	{"a key in the query", func(req *http.Request, who string) { req.URL.RawQuery += "&api_key=" + who }},
	{"a token in the query", func(req *http.Request, who string) { req.URL.RawQuery += "&access_token=" + who }},
	{"two keys in the query", func(req *http.Request, who string) { req.URL.RawQuery += "&key=x&token=" + who }},
}

// Shared by nobody: RFC 9111, 7.1 and 3.5 leave it to Vary, which servers forget.
func TestCacheNeverGivesOnePrincipalTheAnswerOfAnother(t *testing.T) {
	for _, p := range principals {
		t.Run(p.name, func(t *testing.T) {
			r := newCacheRig(t, counting("Cache-Control: max-age=900"))
			as := func(who string) cacheGot {
				req := r.request("GET", "http://api.test/me?a=1")
				if who != "" {
					p.as(req, who)
				}
				return r.do(req)
			}
			r.want(as("ann"), "stored", "v1", 1)
			r.want(as("bob"), "stored", "v2", 2)
			r.want(as(""), "stored", "v3", 3)
			r.want(as("ann"), "hit", "v1", 3)
			r.want(as("bob"), "hit", "v2", 3)
			r.want(as(""), "hit", "v3", 3)
			// A write by one of them concerns all of them.
			req := r.request("DELETE", "http://api.test/me?a=1")
			p.as(req, "ann")
			r.origin = always(204, "")
			r.do(req)
			want := 0
			if strings.Contains(p.name, "query") {
				want = 1 // that of nobody, at a URI without the field
			}
			if n := r.layer.cache.Len(); n != want {
				t.Errorf("%d entries after a DELETE", n)
			}
		})
	}
}

func TestCacheTellsCredentialsApartByFieldAndOrder(t *testing.T) {
	k := newKeyer()
	request := func(query string, fields ...string) *http.Request {
		return &http.Request{URL: &url.URL{Scheme: "http", Host: "h", RawQuery: query}, Header: cacheFields(fields...)}
	}
	seen := map[resourceKey]int{}
	all := []*http.Request{
		request(""),
		request("", "Authorization: a"),
		request("", "X-Api-Key: a"),
		request("", "Api-Key: a"),
		request("", "Authorization: a", "X-Api-Key: b"),
		request("", "Authorization: b", "X-Api-Key: a"),
		request("", "Cookie: a"),
		request("", "Cookie: a", "Cookie: b"),
		request("", "Cookie: b", "Cookie: a"),
		request("", "Cookie: ab"),
		request("key=1&token=2"),
		request("key=2&token=1"),
		request("key=1&key=2"),
		request("key=2&key=1"),
		request("key=1"),
		request("token=1"),
		request("x=key=1"),
	}
	for i, req := range all {
		key := k.key(req)
		if j, ok := seen[key]; ok {
			t.Errorf("requests %d and %d have one key", j, i)
		}
		seen[key] = i
		for range 20 { // a map is walked in another order each time
			if k.key(req) != key {
				t.Fatalf("request %d has two keys", i)
			}
		}
	}
	if newKeyer().key(all[1]) == k.key(all[1]) {
		t.Error("two caches hash alike: their secret is none")
	}
}

func TestCacheTakesNoCommonFieldForAnIdentity(t *testing.T) {
	k := newKeyer()
	req := &http.Request{URL: &url.URL{Scheme: "http", Host: "h"}, Header: cacheFields("Accept: a", "Accept-Language: b", "Accept-Encoding: c",
		"User-Agent: d", "Cache-Control: max-age=1", "Idempotency-Key: e", "X-Request-Id: f", "Traceparent: g", "Referer: i", "Origin: j")}
	if got := k.key(req); got.who != (digest{}) {
		t.Error("a request of nobody in particular has a principal")
	}
}

// Random principals, variants, methods, answers and times, against a model that
// remembers every answer that was ever given and to whom.
func TestCacheNeverMixesPrincipalsOrVariantsInAnyOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(3, 4))
		varies := []string{"", "Accept", "accept-language, Accept", "X-A", "*", "Accept-Language,X-A"}
		values := map[string][]string{
			"Accept":          {"a/b", "c/d", "a/b, c/d", "a/b,c/d"},
			"Accept-Language": {"fr", "de", "FR", "fr , de", "fr,de"},
			"X-A":             {"1", "2"},
		}
		type answer struct {
			who, path, vary string
			header          http.Header
		}
		given := map[string]answer{} // by body
		var asking answer
		n := 0
		r := newCacheRig(t, nil)
		r.origin = func(req *http.Request) (*http.Response, error) {
			n++
			if rnd.IntN(3) == 0 && req.Header.Get("If-None-Match") != "" {
				return cacheReply(304, "", fmt.Sprintf("Cache-Control: max-age=%d", rnd.IntN(9))), nil
			}
			body := fmt.Sprint("answer ", n)
			asking.vary = varies[rnd.IntN(len(varies))]
			given[body] = asking
			fields := []string{fmt.Sprintf("Cache-Control: max-age=%d, stale-if-error=3", rnd.IntN(9)), fmt.Sprintf(`ETag: "%d"`, n)}
			if asking.vary != "" {
				fields = append(fields, "Vary: "+asking.vary)
			}
			status := 200
			if rnd.IntN(10) == 0 {
				status = []int{404, 503, 301, 429}[rnd.IntN(4)]
			}
			return cacheReply(status, body, fields...), nil
		}
		hits := 0
		for range 20_000 {
			path := fmt.Sprint("/", rnd.IntN(2))
			req := r.request("GET", "http://api.test"+path+"?q=1")
			for name, vs := range values {
				if rnd.IntN(2) == 0 {
					req.Header.Set(name, vs[rnd.IntN(len(vs))])
				}
			}
			asking = answer{path: path, header: cloneAll(req.Header)}
			if rnd.IntN(4) > 0 {
				p, who := principals[rnd.IntN(len(principals))], fmt.Sprint(rnd.IntN(2))
				p.as(req, who)
				asking.who = strings.ToLower(strings.Fields(p.name)[0]) + who
				if strings.Contains(p.name, "query") || strings.Contains(p.name, "user info") {
					asking.who = p.name + who
				}
			}
			if rnd.IntN(30) == 0 {
				req.Method = "POST"
			}
			me := asking
			got := r.do(req)
			if got.err != nil {
				t.Fatal(got.err)
			}
			was, ok := given[got.body]
			if !ok {
				t.Fatalf("%q was never given", got.body)
			}
			if was.who != me.who || was.path != me.path {
				t.Fatalf("%q at %s was given the answer of %q at %s", me.who, me.path, was.who, was.path)
			}
			if got.outcome == "hit" || got.outcome == "revalidated" {
				if got.outcome == "hit" {
					hits++
				}
				if !matchesSlowly(was.vary, was.header, me.header) {
					t.Fatalf("an answer that varies by %q\nwas given to %v\nand then to  %v", was.vary, was.header, me.header)
				}
			}
			time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
		}
		if hits < 100 {
			t.Errorf("only %d hits; nothing was tried", hits)
		}
	})
}

// What a cache is found by must not tell a secret to whoever reads the memory of an entry.
func TestCacheEntriesHoldNoSecret(t *testing.T) {
	const secret = "hunter2hunter2"
	r := newCacheRig(t, always(200, "v", "Cache-Control: max-age=60", "Vary: Authorization, Cookie, X-Thing", "Set-Cookie: s="+secret))
	req := r.request("GET", "http://u:"+secret+"@api.test/?api_key="+secret+"&x="+secret, "Authorization: Bearer "+secret, "Cookie: s="+secret, "X-Thing: "+secret)
	r.want(r.do(req), "stored", "v", 1)
	s := r.layer.cache.shelf
	dump := fmt.Sprintf("%+v", s.rows)
	for _, e := range s.recent.Values() {
		dump += fmt.Sprintf("%+v %s", *e, e.id.key.uri)
	}
	if h, ok := r.layer.cache.keys.idle.Get().(*hashing); ok {
		dump += string(h.text[:cap(h.text)])
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("u:" + secret))
	if strings.Contains(dump, secret) || strings.Contains(dump, encoded) {
		t.Errorf("a secret is in %s", dump)
	}
	if n := unsafe.Sizeof(digest{}); n != 16 {
		t.Errorf("%d bytes of the hash are kept", n)
	}
	r.want(r.do(req.Clone(context.Background())), "hit", "v", 1)
}
