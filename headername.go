package heed

import (
	"strings"
	"time"
)

// headerName is what the name of a header field says: which figure it carries,
// and of which limit. Names are read by a grammar of field words, window
// words, unit words and scope words around the mark "ratelimit", so that a
// vendor nobody has heard of is understood like the known ones.
type headerName struct {
	role   role
	family string // the name up to and with the mark, "" when it has none
	limit  string // the limit's name, in lower case; "" is the unnamed one
	window time.Duration
	unit   Unit
	scope  string
	scale  time.Duration // of the value, when the name gives its unit
	marked bool          // "ratelimit" or "rate-limit" stands in it
	sure   bool          // without a mark: yet surely about a rate limit
}

// common are the names that most servers use. The grammar reads them the same;
// here they only cost less.
func common(name string) (f headerName, ok bool) {
	switch name {
	case "X-Ratelimit-Limit":
		return headerName{role: roleLimit, family: name[:11], marked: true}, true
	case "X-Ratelimit-Remaining":
		return headerName{role: roleLeft, family: name[:11], marked: true}, true
	case "X-Ratelimit-Reset":
		return headerName{role: roleReset, family: name[:11], marked: true}, true
	case "X-Ratelimit-Used":
		return headerName{role: roleUsed, family: name[:11], marked: true}, true
	case "Ratelimit-Limit":
		return headerName{role: roleLimit, family: name[:9], marked: true}, true
	case "Ratelimit-Remaining":
		return headerName{role: roleLeft, family: name[:9], marked: true}, true
	case "Ratelimit-Reset":
		return headerName{role: roleReset, family: name[:9], marked: true}, true
	case "Ratelimit-Policy":
		return headerName{role: rolePolicy, family: name[:9], marked: true}, true
	case "Ratelimit":
		return headerName{role: roleNone, family: name, marked: true}, true
	case "Retry-After":
		return headerName{role: roleRetry}, true
	}
	return f, false
}

// glimpse is what a name is at first sight.
type glimpse uint8

const (
	glimpseOther    glimpse = iota
	glimpseOrdinary         // a field of most answers, which says nothing about limits
	glimpseCommon           // a field that most servers with limits send
	glimpseMarked           // a field that only the table of dialects knows
)

// glance sorts the names that are worth a switch.
func glance(name string) glimpse {
	switch name {
	case "X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Used",
		"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "Ratelimit-Policy", "Ratelimit", "Retry-After":
		return glimpseCommon
	case "X-Database-Lag", "Mediawiki-Api-Error":
		return glimpseMarked
	case "Accept-Ranges", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers", "Access-Control-Allow-Methods",
		"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Access-Control-Max-Age", "Age", "Alt-Svc",
		"Cache-Control", "Connection", "Content-Encoding", "Content-Language", "Content-Length", "Content-Security-Policy",
		"Content-Type", "Date", "Etag", "Expires", "Keep-Alive", "Last-Modified", "Link", "Location", "Pragma", "Referrer-Policy",
		"Server", "Set-Cookie", "Strict-Transport-Security", "Vary", "Via", "X-Cache", "X-Content-Type-Options",
		"X-Frame-Options", "X-Powered-By", "X-Request-Id", "X-Xss-Protection":
		return glimpseOrdinary
	}
	return glimpseOther
}

// maxFieldName bounds the names that are looked at, and maxWords their words.
const (
	maxFieldName = 96
	maxWords     = 12
)

// hinted says whether a name could be about limits: the cheap test that most
// fields of an answer do not pass.
func hinted(name string) bool {
	if len(name) < 5 || len(name) > maxFieldName {
		return false
	}
	for i := 0; i+4 <= len(name); i++ {
		var want string
		switch name[i] | 0x20 {
		case 'l':
			want = "limit"
		case 'r':
			if i+5 > len(name) {
				return false
			}
			switch name[i+2] | 0x20 {
			case 't':
				want = "retry"
			case 'm':
				want = "remain"
			case 's':
				want = "reset"
			}
		case 'q':
			want = "quota"
		case 'u':
			want = "usage"
			if name[i+1]|0x20 == 's' && name[i+2]|0x20 == 'e' && name[i+3]|0x20 == 'd' {
				return true
			}
		case 't':
			want = "throttl"
		case 'o':
			want = "order-count"
		case 'c':
			switch name[i+2] | 0x20 {
			case 's':
				want = "cost"
			case 'n':
				want = "concurren"
			case 'a':
				want = "charge"
			}
		}
		if want != "" && len(name)-i >= len(want) && strings.EqualFold(name[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

// parseName reads a field's name; ok is false when it is not about limits.
func parseName(name string) (f headerName, ok bool) {
	if f, ok := common(name); ok {
		return f, true
	}
	if len(name) > maxFieldName || !validName(name) {
		return f, false
	}
	lower := strings.ToLower(name)
	p := nameParser{lower: lower}
	p.split()
	p.read()
	return p.finish(name)
}

type nameParser struct {
	lower string
	words [maxWords]string
	ends  [maxWords]int // where each word ends in the name
	n     int

	f      headerName
	mark   int // where the mark ends; 0: none
	limit  [maxWords]string
	parts  int
	pre    int  // parts before the mark
	counts bool // a word speaks of calls, weights and the like
	last   string
	stray  role // a field word that is part of the name unless no other comes
	strays string
}

func (p *nameParser) split() {
	from := 0
	for i := 0; i <= len(p.lower) && p.n < maxWords; i++ {
		if i < len(p.lower) && p.lower[i] != '-' && p.lower[i] != '_' {
			continue
		}
		if i > from {
			p.words[p.n], p.ends[p.n] = p.lower[from:i], i
			p.n++
		}
		from = i + 1
	}
}

func (p *nameParser) read() {
	for i := 0; i < p.n; i++ {
		word, next := p.words[i], ""
		if i+1 < p.n {
			next = p.words[i+1]
		}
		p.last = word
		switch {
		case i == 0 && word == "x":
			continue
		case word == "ratelimit" || word == "ratelimits" || word == "ratelimited":
			p.marking(i)
			continue
		case word == "rate" && (next == "limit" || next == "limits" || next == "limited"):
			i++
			p.marking(i)
			continue
		case word == "query" && next == "cost" || word == "requested" && next == "tokens":
			if p.add(roleCost); word == "requested" {
				i++
			}
			continue
		}
		if r, both, ok := fieldWord(word, next); ok {
			if both {
				i++
				p.last = next
			}
			switch r {
			case roleNone:
			case roleName, roleType, roleScope, roleGlobal:
				p.naming(r, word)
			default:
				p.add(r)
				if r == roleUsed || r == roleLimit {
					p.strays = word
				}
				if r == roleUsed && p.mark == 0 {
					p.part(word, false)
				}
			}
			continue
		}
		p.other(word)
	}
}

func (p *nameParser) marking(i int) {
	p.mark = p.ends[i]
	p.pre = p.parts
	p.f.marked = true
}

// add takes a role; the strongest wins.
func (p *nameParser) add(r role) { p.f.role = max(p.f.role, r) }

// naming: words that give the limit's name as the value, unless another figure
// is asked: then they are part of the name.
func (p *nameParser) naming(r role, word string) {
	p.stray = max(p.stray, r)
	p.part(word, true)
}

// other is a word that is no field word: a window, a unit, a scope, a fused
// pair ("userremaining", "daylimit"), or a name of the server's own.
func (p *nameParser) other(word string) {
	switch word {
	case "ms", "milliseconds", "millis", "msec":
		p.f.scale = time.Millisecond
		return
	case "seconds", "secs":
		p.f.scale = time.Second
		return
	case "minutes", "mins":
		p.f.scale = time.Minute
		return
	case "ratelimitbysize":
		p.f.marked = true
		p.mark = len("ratelimitbysize")
		p.part(word, false)
		return
	}
	for _, suffix := range [...]string{"ratelimit", "limit", "remaining", "reset", "used"} {
		if rest, ok := strings.CutSuffix(word, suffix); ok && len(rest) > 1 {
			if suffix == "ratelimit" {
				p.part(rest, false)
				p.f.marked, p.mark = true, strings.Index(p.lower, word)+len(word)
				return
			}
			p.part(rest, false)
			r, _, _ := fieldWord(suffix, "")
			p.add(r)
			if suffix == "limit" {
				p.f.sure = p.f.sure || p.f.window > 0 || rest == "burst"
			}
			return
		}
	}
	if rest, ok := strings.CutPrefix(word, "ratelimit"); ok && len(rest) > 1 { // "ratelimitremaining"
		p.f.marked, p.mark = true, strings.Index(p.lower, word)+len("ratelimit")
		p.pre = p.parts
		if r, _, ok := fieldWord(rest, ""); ok && r != roleNone {
			p.add(r)
			return
		}
		p.part(rest, false)
		return
	}
	p.part(word, false)
}

// part adds a word to the limit's name.
func (p *nameParser) part(word string, weak bool) {
	if word == "today" {
		word = "day"
	}
	p.limit[p.parts] = word
	p.parts++
	if weak {
		return
	}
	if d := spanWord(word); d > 0 {
		if p.parts > 1 {
			if n, ok := number(p.limit[p.parts-2]); ok && n > 0 && n < 1e6 {
				d = time.Duration(min(n*float64(d), float64(maxWait)))
			}
		}
		p.f.window = d
	} else if p.f.window == 0 {
		for _, suffix := range [...]string{"min", "hour", "day"} { // "appmin"
			if rest, ok := strings.CutSuffix(word, suffix); ok && scopeOf(rest) != "" {
				p.f.window = unitSpan(suffix)
			}
		}
	}
	if u, ok := unitOf(word); ok {
		p.counts = true
		if u != "" {
			p.f.unit = u
		}
	}
}

// finish decides what the name is about.
func (p *nameParser) finish(name string) (headerName, bool) {
	f := &p.f
	if f.marked {
		f.family = name[:p.mark]
	}
	// A unit of the value belongs to values of time; elsewhere "minutes" is a window and "seconds" too.
	if f.scale != 0 && f.role != roleWindow && f.role != roleReset && f.role != roleAfter && f.role != roleRetry {
		if f.scale >= time.Second && f.window == 0 {
			p.part(p.last, false)
		}
		f.scale = 0
	}
	if f.role == roleRetry && f.scale == 0 && strings.HasPrefix(p.lower, "x-amz-") {
		f.scale = time.Millisecond // AWS SDKs: x-amz-retry-after counts milliseconds
	}
	keep := 0 // drop the words that name the vendor
	from := 0
	if f.role == roleNone && p.stray != roleNone && (f.marked || p.stray == roleName) {
		f.role = p.stray
		p.parts = min(p.parts, p.pre) // the words that ask for a name are none
	}
	for i := from; i < p.parts; i++ {
		w := p.limit[i]
		if f.marked && i < p.pre && !nameWord(w) || !f.marked && vendorWord(w) {
			continue
		}
		p.limit[keep] = w
		keep++
	}
	p.parts = keep
	for i := range keep {
		if s := scopeOf(p.limit[i]); s != "" {
			f.scope = s
		}
	}
	f.limit = hyphened(p.limit[:keep])
	return *f, p.about()
}

// about says whether the name is surely enough about rate limits.
func (p *nameParser) about() bool {
	f := &p.f
	if f.role == roleIgnored {
		return false
	}
	if f.marked {
		return true
	}
	switch f.role {
	case roleRetry:
		return true
	case roleLeft:
		f.sure = true
		return true
	case roleLimit:
		f.sure = f.sure || f.window > 0 && p.strays != "max" || p.counts && p.strays == "limit"
		return true // believed only beside a remaining of the same name
	case roleReset, roleAfter:
		return f.limit != "" || p.strays != "" || strings.Contains(p.lower, "api")
	case roleUsed:
		f.sure = p.counts && (f.window > 0 || f.unit != "") || f.unit == UnitConcurrent
		return true
	case roleInfo:
		return p.strays == "limit" || f.marked
	case roleCost:
		f.sure = true
		return true
	case roleNone:
		if f.unit == UnitConcurrent {
			f.role, f.sure = roleUsed, true
			for i := range p.parts {
				if u, _ := unitOf(p.limit[i]); u == UnitConcurrent {
					f.limit = p.limit[i] // "Concurrent-Requests"
				}
			}
			return true
		}
		return strings.HasSuffix(p.lower, "throttle")
	}
	return false
}

// hyphened puts the words of a limit's name together. The usual ones cost nothing.
func hyphened(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words, "-")
}
