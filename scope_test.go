package heed

import (
	"context"
	"hash/maphash"
	"net/http"
	"strings"
	"testing"
)

func TestAScopeIsSchemeHostAndCredential(t *testing.T) {
	seed := maphash.MakeSeed()
	key := func(url string, identity func(*http.Request) string, header ...string) scopeKey {
		req, err := http.NewRequest("GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = headerOf(header...)
		return keyOf(req, begin(req, 1), identity, seed)
	}
	base := key("https://api.test/a", nil)
	for name, same := range map[string]scopeKey{
		"another path":       key("https://api.test/b?page=2#x", nil),
		"capitals":           key("https://API.Test/a", nil),
		"the default port":   key("https://api.test:443/a", nil),
		"a cookie":           key("https://api.test/a", nil, "Cookie", "a=b"),
		"an empty identity":  key("https://api.test/a", func(*http.Request) string { return "" }, "Authorization", "x"),
		"an ordinary header": key("https://api.test/a", nil, "Accept", "x"),
	} {
		if same != base {
			t.Errorf("%s makes another scope", name)
		}
	}
	seen := map[scopeKey]string{base: "no credential"}
	for name, other := range map[string]scopeKey{
		"http":                key("http://api.test/a", nil),
		"port 80 of https":    key("https://api.test:80/a", nil),
		"another host":        key("https://b.test/a", nil),
		"a bearer":            key("https://api.test/a", nil, "Authorization", "Bearer a"),
		"another bearer":      key("https://api.test/a", nil, "Authorization", "Bearer b"),
		"a key":               key("https://api.test/a", nil, "X-Api-Key", "a"),
		"the same as a token": key("https://api.test/a", nil, "X-Auth-Token", "a"),
		"both":                key("https://api.test/a", nil, "Authorization", "Bearer a", "X-Api-Key", "a"),
		"swapped":             key("https://api.test/a", nil, "Authorization", "a", "X-Api-Key", "Bearer a"),
		"twice":               key("https://api.test/a", nil, "X-Api-Key", "a", "X-Api-Key", "a"),
		"a user":              key("https://me:pw@api.test/a", nil),
		"a query key":         key("https://api.test/a?x=1&api_key=a", nil),
		"an identity":         key("https://api.test/a", func(*http.Request) string { return "me" }),
	} {
		if before, ok := seen[other]; ok {
			t.Errorf("%s and %s are one scope", name, before)
		}
		seen[other] = name
	}
}

func TestANamedScopeIsOneWhateverTheHost(t *testing.T) {
	seed := maphash.MakeSeed()
	key := func(url string) scopeKey {
		req, _ := http.NewRequestWithContext(WithCall(context.Background(), Call{Scope: "mine"}), "GET", url, nil)
		return keyOf(req, begin(req, 1), nil, seed)
	}
	if a, b := key("https://a.test/"), key("http://b.test:81/?token=x"); a != b || a.display() != "mine" {
		t.Errorf("%+v and %+v, shown as %q", a, b, a.display())
	}
}

func TestNoNameOfAScopeHoldsASecret(t *testing.T) {
	const secret = "s3cr3t-t0k3n"
	for _, header := range [][]string{{"Authorization", "Bearer " + secret}, {"X-Api-Key", secret}, nil} {
		req, _ := http.NewRequest("GET", "https://u:"+secret+"@api.test/?api_key="+secret, nil)
		req.Header = headerOf(header...)
		s := &scope{key: keyOf(req, begin(req, 1), nil, maphash.MakeSeed())}
		for _, name := range []string{s.key.display(), s.onWire(req, nil)} {
			if strings.Contains(name, secret) || !strings.HasPrefix(name, "https://api.test#") {
				t.Errorf("the scope is called %q", name)
			}
		}
	}
}

func TestTheNameForABudgetIsTheSameInEveryProcess(t *testing.T) {
	wire := func(identity func(*http.Request) string, header ...string) string {
		req, _ := http.NewRequest("GET", "https://api.test/", nil)
		req.Header = headerOf(header...)
		s := &scope{key: keyOf(req, begin(req, 1), identity, maphash.MakeSeed())} // a seed of its own, as in another process
		return s.onWire(req, identity)
	}
	if a, b := wire(nil, "Authorization", "x", "X-Api-Key", "y"), wire(nil, "X-Api-Key", "y", "Authorization", "x"); a != b {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := wire(nil, "Authorization", "x"), wire(nil, "Authorization", "y"); a == b {
		t.Errorf("two credentials are both %q", a)
	}
	if a := wire(nil); a != "https://api.test" {
		t.Errorf("without a credential it is %q", a)
	}
	me := func(*http.Request) string { return "me" }
	if a, b := wire(me, "Authorization", "x"), wire(me, "Authorization", "y"); a != b || strings.HasSuffix(a, "#me") {
		t.Errorf("one identity is %q and %q", a, b)
	}
	nobody := func(*http.Request) string { return "" }
	if a := wire(nobody, "Authorization", "x"); a != "https://api.test" {
		t.Errorf("an empty identity is %q", a)
	}
}

func TestEachSetOfRulesHasALaneAndSlotsAreCountedByRule(t *testing.T) {
	rs, err := compileRules([]Rule{{Match: "/", Concurrency: 2}, {Match: "/a", Concurrency: 1, Cost: Cost{Points: 3}}, {Match: "/b"}})
	if err != nil {
		t.Fatal(err)
	}
	var s scope
	all, a, b := s.lane(rs, []int{0}), s.lane(rs, []int{0, 1}), s.lane(rs, []int{2})
	if s.lane(rs, []int{0, 1}) != a || len(s.lanes) != 3 {
		t.Errorf("%d lanes for three sets", len(s.lanes))
	}
	if a.cost != (Cost{Points: 3}) || all.cost != (Cost{}) || !a.bounded || b.bounded {
		t.Errorf("lanes are %+v, %+v, %+v", all, a, b)
	}
	s.occupy(rs, a, 1)
	if s.free(rs, a) || !s.free(rs, all) || !s.free(rs, b) {
		t.Error("one of /a is under way: /a is full, the rest is not")
	}
	s.occupy(rs, all, 1)
	if s.free(rs, all) {
		t.Error("two are under way, and / has room")
	}
	s.occupy(rs, a, -1)
	s.occupy(rs, all, -1)
	if !s.free(rs, a) || !s.free(rs, all) || s.slots[0] != 0 || s.slots[1] != 0 {
		t.Errorf("slots in use: %v", s.slots)
	}
}

func TestAScopeIsBusyWithSomebodyInIt(t *testing.T) {
	var s scope
	if s.busy() {
		t.Error("an empty scope is busy")
	}
	l, w := s.lane(nil, nil), newWaiter(1)
	l.queue.insert(w)
	if !s.busy() {
		t.Error("a scope in which somebody waits is not busy")
	}
	s.wake()
	if !poked(w) {
		t.Error("the first in line was not woken")
	}
	l.queue.remove(w)
	s.ledger.spend(moment(0), nil, one, false)
	if !s.busy() {
		t.Error("a scope with a flight is not busy")
	}
}
