package heed

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// digest is 128 bits of an HMAC-SHA-256 under a key that only one Cache has.
// Nothing that identifies a request is kept in another form: URLs, cookies,
// tokens and varying fields may all hold secrets.
type digest [16]byte

// resourceKey is what entries are found by: which resource, for whom.
type resourceKey struct {
	uri digest
	who digest // zero: nobody in particular
}

// keyer makes digests. Safe for concurrent use.
type keyer struct {
	secret [sha256.Size]byte
	idle   sync.Pool // of *hashing
}

type hashing struct {
	mac  hash.Hash
	text []byte
	sum  []byte
}

func newKeyer() *keyer {
	k := new(keyer)
	_, _ = rand.Read(k.secret[:]) // never fails
	return k
}

// digest is the digest of what write appends.
func (k *keyer) digest(write func(b []byte) []byte) (d digest) {
	h, ok := k.idle.Get().(*hashing)
	if !ok {
		h = &hashing{mac: hmac.New(sha256.New, k.secret[:])}
	}
	h.text = write(h.text[:0])
	h.mac.Reset()
	h.mac.Write(h.text)
	h.sum = h.mac.Sum(h.sum[:0])
	copy(d[:], h.sum)
	clear(h.text)
	if cap(h.text) <= 16<<10 {
		k.idle.Put(h)
	}
	return d
}

// identity is one part of a request that says who asks.
type identity struct{ name, value string }

// key is the key of a request for its target URI.
func (k *keyer) key(req *http.Request) resourceKey {
	var room [8]identity
	who := identities(req, room[:0])
	key := resourceKey{uri: k.digest(func(b []byte) []byte { return appendTarget(b, req, who) })}
	if len(who) > 0 {
		key.who = k.digest(func(b []byte) []byte {
			for _, id := range who {
				b = appendField(appendField(b, id.name), id.value)
			}
			return b
		})
	}
	return key
}

// uri is the digest of a request's target URI alone.
func (k *keyer) uri(req *http.Request) digest {
	var room [8]identity
	who := identities(req, room[:0])
	return k.digest(func(b []byte) []byte { return appendTarget(b, req, who) })
}

// identities are all parts of a request that say who asks, in one order for
// one request: the credentials, and every field whose name suggests an
// identity. To take a field for one that is none costs a miss; the reverse
// would hand one user's answer to another.
func identities(req *http.Request, who []identity) []identity {
	credentials(req, func(name, value string) { who = append(who, identity{name, value}) })
	known := len(who)
	for name, values := range req.Header {
		if !personal(name) || slices.ContainsFunc(who[:known], func(id identity) bool { return id.name == name }) {
			continue
		}
		for _, v := range values {
			who = append(who, identity{name, v})
		}
	}
	if len(who) > 1 {
		slices.SortStableFunc(who, func(a, b identity) int { return cmp.Compare(a.name, b.name) })
	}
	return who
}

// hints are parts of the names of fields that say who asks.
var hints = [...]string{
	"auth", "cookie", "token", "key", "secret", "session", "credential", "password", "passwd", "signature",
	"account", "tenant", "organi", "user", "identity", "impersonat", "subscription", "login", "on-behalf", "customer", "client",
}

// personal says that a field, by its canonical name, may say who asks.
func personal(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Cache-Control", "Pragma", "Content-Type",
		"If-None-Match", "If-Modified-Since", "Referer", "Origin", "Idempotency-Key", "X-Idempotency-Key":
		return false
	}
	var room [64]byte
	lower := room[:0]
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	for _, h := range hints {
		if strings.Contains(string(lower), h) { // does not allocate
			return true
		}
	}
	return false
}

// appendTarget writes the target URI of a request (RFC 9110, 7.1), normalised
// as RFC 9110, 4.2.3 allows without asking the server: scheme and host in lower
// case, no default port, "/" for an empty path, the hexadecimal of
// percent-encoding in upper case, no fragment. The query keeps its order. The
// values of credentials in it are left out: they say who, not what.
func appendTarget(b []byte, req *http.Request, who []identity) []byte {
	u := req.URL
	scheme := strings.ToLower(u.Scheme)
	dialled := canonicalHost(scheme, strings.TrimSuffix(u.Host, ":"))
	host := dialled
	if req.Host != "" && req.Host != u.Host {
		host = canonicalHost(scheme, strings.TrimSuffix(req.Host, ":"))
	}
	b = append(append(b, scheme...), "://"...)
	b = append(b, host...)
	if u.Opaque != "" {
		b = append(append(b, ' '), u.Opaque...)
	} else if path := u.EscapedPath(); path != "" {
		if path[0] != '/' {
			b = append(b, '/')
		}
		b = appendUpperHex(b, path)
	} else {
		b = append(b, '/')
	}
	if u.RawQuery != "" || u.ForceQuery {
		b = append(b, '?')
		b = appendQuery(b, u.RawQuery, who)
	}
	if host != dialled { // one server may be asked for another's name
		b = append(append(b, " via "...), dialled...)
	}
	return b
}

func appendQuery(b []byte, query string, who []identity) []byte {
	for more := query != ""; more; {
		var field string
		field, query, more = strings.Cut(query, "&")
		name, value, _ := strings.Cut(field, "=")
		if len(who) > 0 && slices.Contains(who, identity{name, value}) {
			field = name
		}
		b = appendUpperHex(b, field)
		if more {
			b = append(b, '&')
		}
	}
	return b
}

func appendUpperHex(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		b = append(b, s[i])
		if s[i] == '%' && i+2 < len(s) {
			b = append(b, upper(s[i+1]), upper(s[i+2]))
			i += 2
		}
	}
	return b
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}

// canonicalHeader gives a header with its names in canonical form: h itself
// when they are, which is not odd. A map may hold them in any form, and all of them are sent.
func canonicalHeader(h http.Header) (c http.Header, odd bool) {
	for name := range h {
		if textproto.CanonicalMIMEHeaderKey(name) != name {
			odd = true
			break
		}
	}
	if !odd {
		return h, false
	}
	c = make(http.Header, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		key := textproto.CanonicalMIMEHeaderKey(name)
		c[key] = append(c[key], h[name]...)
	}
	return c, true
}

// sameOrigin resolves a reference in an answer to req, and gives a request for
// it when it is of the same origin, nil otherwise (RFC 9111, 4.4).
func sameOrigin(req *http.Request, reference string) *http.Request {
	base := *req.URL
	if req.Host != "" {
		base.Host = req.Host
	}
	u, err := base.Parse(reference)
	if err != nil || originOf(u) != originOf(&base) {
		return nil
	}
	u.Host = req.URL.Host
	return &http.Request{URL: u, Host: req.Host}
}

func originOf(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	return scheme + "://" + canonicalHost(scheme, strings.TrimSuffix(u.Host, ":"))
}
