package heed

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// scopeKey is who shares a ledger entry: scheme, host and credential, or a name
// that the caller gave. The credential is a keyed hash; the secret is never kept.
type scopeKey struct {
	scheme, host, name string
	credential         uint64
}

// scope is one entry of the throttle: its ledger, and those who wait for it.
type scope struct {
	key  scopeKey
	name string // for people: no secret
	wire string // for a Budget; made on first need

	mu     sync.Mutex
	ledger ledger
	lanes  []*lane
	slots  []int   // concurrency in use, by rule
	credit float64 // of the retry budget
	drawn  bool    // credit has been drawn on, so it counts
}

// lane is one queue of a scope: the waiters that match the same rules. A rule
// for some routes then holds up those routes alone.
type lane struct {
	hits    []int
	known   []Limit
	cost    Cost // what its rules say one call costs; zero: nothing said
	bounded bool // some rule has a Concurrency
	queue   queue
	short   Limit // the known limit of which the first in line lacks units; zero: none
}

// lane finds or makes the queue for a set of matched rules.
func (s *scope) lane(rs rules, hits []int) *lane {
	for _, l := range s.lanes {
		if slices.Equal(l.hits, hits) {
			return l
		}
	}
	l := &lane{hits: hits}
	for _, i := range hits {
		l.known = append(l.known, rs[i].Limits...)
		if rs[i].Cost != (Cost{}) {
			l.cost = rs[i].Cost
		}
		l.bounded = l.bounded || rs[i].Concurrency > 0
	}
	s.lanes = append(s.lanes, l)
	return l
}

// behind says that the first in line of another lane came earlier and lacks
// units of a limit that q's calls spend too: were they to go first, cheap calls
// would keep a dear one waiting for ever.
func (s *scope) behind(q *lane, seq uint64) bool {
	for _, l := range s.lanes {
		if l != q && l.short != (Limit{}) && l.queue.head != nil && l.queue.head.seq < seq && slices.Contains(q.known, l.short) {
			return true
		}
	}
	return false
}

// lacks notes what the first in line of q waits for, and lets those look again who stood behind it.
func (s *scope) lacks(q *lane, short Limit) {
	if q.short == short {
		return
	}
	before := q.short
	q.short = short
	if before != (Limit{}) {
		s.wake()
	}
}

// free says whether every matched rule has a concurrency slot left.
func (s *scope) free(rs rules, l *lane) bool {
	if !l.bounded {
		return true
	}
	for _, i := range l.hits {
		if n := rs[i].Concurrency; n > 0 && s.slots != nil && s.slots[i] >= n {
			return false
		}
	}
	return true
}

// occupy takes (by 1) or gives back (by -1) the slots of a lane's rules.
func (s *scope) occupy(rs rules, l *lane, by int) {
	if !l.bounded {
		return
	}
	if s.slots == nil {
		s.slots = make([]int, len(rs))
	}
	for _, i := range l.hits {
		if rs[i].Concurrency > 0 {
			s.slots[i] += by
		}
	}
}

// wake lets the first of every lane look again.
func (s *scope) wake() {
	for _, l := range s.lanes {
		l.queue.wake()
	}
}

// unlocked runs f, which may wait or call what is not ours, with the scope
// unlocked, and locks it again whatever happens there.
func (s *scope) unlocked(f func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	f()
}

// busy says that somebody waits in the scope, is under way, or reads an answer that holds a slot.
func (s *scope) busy() bool {
	if s.ledger.flights > 0 || slices.ContainsFunc(s.slots, func(n int) bool { return n > 0 }) {
		return true
	}
	for _, l := range s.lanes {
		if l.queue.n > 0 {
			return true
		}
	}
	return false
}

// keyOf names the scope of a request.
func keyOf(req *http.Request, c *call, identity func(*http.Request) string, seed maphash.Seed) scopeKey {
	if c.wishes.Scope != "" {
		return scopeKey{name: c.wishes.Scope}
	}
	key := scopeKey{scheme: req.URL.Scheme, host: canonicalHost(req.URL.Scheme, req.URL.Host)}
	if identity != nil {
		if id := identity(req); id != "" {
			key.credential = maphash.String(seed, id)
		}
		return key
	}
	credentials(req, func(name, value string) {
		// A sum does not depend on the order that a map is walked in.
		key.credential += maphash.String(seed, value) ^ maphash.String(seed, name)
	})
	return key
}

// canonicalHost is the host in lower case without the scheme's default port (RFC 9110, 4.2.3).
func canonicalHost(scheme, host string) string {
	switch scheme {
	case "http":
		host = strings.TrimSuffix(host, ":80")
	case "https":
		host = strings.TrimSuffix(host, ":443")
	}
	for i := range len(host) {
		if c := host[i]; c-'A' < 26 || c >= utf8.RuneSelf {
			return strings.ToLower(host)
		}
	}
	return host
}

// credentials calls yield for every part of a request that says who asks:
// Authorization, API-key headers, user info and API-key query fields, but not Cookie.
func credentials(req *http.Request, yield func(name, value string)) {
	for name, values := range req.Header {
		switch name {
		case "Authorization", "X-Api-Key", "Api-Key", "Apikey", "X-Apikey", "X-Auth-Token", "X-Access-Token", "Private-Token",
			"X-Goog-Api-Key", "Ocp-Apim-Subscription-Key", "X-Shopify-Access-Token", "X-Figma-Token":
			for _, v := range values {
				yield(name, v)
			}
		}
	}
	if req.URL.User != nil {
		yield("user info", req.URL.User.String())
	}
	for query := req.URL.RawQuery; query != ""; {
		var field string
		field, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "api_key", "apikey", "apiKey", "api-key", "key", "token", "access_token", "hapikey", "appid":
			yield(name, value)
		}
	}
}

// display names a scope for people: credentials are told apart by 20 bits of a hash with a seed of its own.
func (k scopeKey) display() string {
	switch {
	case k.name != "":
		return k.name
	case k.credential == 0:
		return k.scheme + "://" + k.host
	default:
		return fmt.Sprintf("%s://%s#%05x", k.scheme, k.host, k.credential&0xfffff)
	}
}

// onWire names a scope for a Budget, the same in every process: the credential
// is 128 bits of SHA-256, which a store must key before it writes it anywhere.
func (s *scope) onWire(req *http.Request, identity func(*http.Request) string) string {
	s.mu.Lock()
	wire := s.wire
	s.mu.Unlock()
	if wire == "" {
		// Outside the lock: identity is the user's. Whoever comes at the same time finds the same.
		wire = s.key.onWire(req, identity)
		s.mu.Lock()
		s.wire = wire
		s.mu.Unlock()
	}
	return wire
}

func (k scopeKey) onWire(req *http.Request, identity func(*http.Request) string) string {
	if k.name != "" {
		return k.name
	}
	var parts []string
	if identity != nil {
		if id := identity(req); id != "" {
			parts = append(parts, id)
		}
	} else {
		credentials(req, func(name, value string) { parts = append(parts, name+"\x00"+value) })
	}
	wire := k.scheme + "://" + k.host
	if len(parts) == 0 {
		return wire
	}
	slices.Sort(parts)
	h := sha256.New()
	for _, p := range parts {
		_, _ = io.WriteString(h, p)
		h.Write([]byte{0})
	}
	return wire + "#" + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
