package heed

import (
	"net/http"
	"strings"
	"time"
)

// ParseFeedback reads what resp says about rate limits at the instant now. It
// knows no list of servers: names are read by a grammar (field words, window
// words, unit words and scope words around "ratelimit"), values by their form
// and magnitude, so that a server nobody has met is read like the known ones.
// It reads Retry-After in all forms (RFC 9110, 10.2.3), every generation of
// draft-ietf-httpapi-ratelimit-headers (00 to 10) and, from a table of
// dialects, what no grammar can know; see docs/dialects.md.
//
// Absolute instants are measured against the answer's own Date, so a server
// whose clock is minutes off is still read right, and are returned on the local
// clock. Every wait lies within [now, now + 10 years]. Garbage drops only the
// field it stands in.
//
// It may read up to 64 KiB of the body, for at most a second, and restores it:
// resp.Body then gives the same bytes and the same error as before. All else of
// resp stays as it is. Time and memory are bounded whatever the server sends.
// It is safe for concurrent use as long as nobody else uses resp.
func ParseFeedback(resp *http.Response, now time.Time) Feedback {
	a := answerOf(resp, now)
	if readable(resp) && (resp.StatusCode >= 400 || wordy(resp.Header.Get("Content-Type"))) {
		a.Body = peek(resp, nil)
	}
	var fb Feedback
	lain, _ := age(a.Header)
	fb.parse(&a, lain, nil)
	return fb
}

// field is one header field that may be about limits.
type field struct {
	name  string
	lines []string
}

// maxFields bounds the fields that are read of one answer; of a flood those that sort first.
const maxFields = 64

// parse fills a Feedback from an answer whose age is lain. It must be empty but
// for the room of its Readings, so that a caller with room allocates nothing.
// mine are tried before the built-in dialects.
func (fb *Feedback) parse(a *Answer, lain time.Duration, mine []Dialect) {
	var few [8]field
	fields := few[:0]
	odd := a.Status >= 400 || len(a.Body) > 0 || len(mine) > 0 // more than the usual fields are to be looked at
	for name, lines := range a.Header {
		switch glance(name) {
		case glimpseOrdinary:
			continue
		case glimpseMarked:
			odd = true
			continue
		case glimpseOther:
			if !hinted(name) {
				continue
			}
			odd = true
		}
		if len(lines) > 0 {
			odd = odd || name == "Ratelimit-Limit" && lines[0] == "800" // Twitch
			fields = insert(fields, field{name, lines})
		}
	}
	base := a.Now // what absolute instants are measured against
	if v := a.Header["Date"]; len(v) > 0 {
		if date, ok := httpDate(v[0], a.Now); ok && clockable(date) {
			fb.Date, base = date, date
			if lain > 0 {
				// An answer out of a cache: its Date is no reading of a clock now.
				fb.Date, base = time.Time{}, date.Add(lain)
			}
		}
	}
	if len(fields) == 0 && !odd {
		return
	}
	if !odd {
		if rs, ok := plainDraft(fields, a.Now, base, fb.Readings); ok {
			fb.Readings = rs
			return
		}
		if r, ok := plainTrio(fields, a.Now, base); ok {
			fb.Readings = append(fb.Readings, r)
			return
		}
	}
	ev := evidence{status: a.Status, now: a.Now, base: base}
	if len(fields) > 0 {
		readFields(fields, &ev, fb)
	}
	if odd {
		*fb = judge(*a, mine, ev, *fb, len(fields) > 0)
	}
}

// clockable: an instant that fits nanoseconds since 1970, as all reckoning with clocks here does.
func clockable(t time.Time) bool { return t.Unix() >= 0 && t.Unix() < year2201 }

const year2201 = 7_289_654_400

// judge decides what the answer means. It has its own copies of everything, as
// dialects may keep what they are given, so that the usual answer allocates nothing.
func judge(a Answer, mine []Dialect, ev evidence, fb Feedback, said bool) Feedback {
	ev.verdict(&fb, said || len(a.Body) > 0)
	for i := range mine {
		if mine[i].claims(&a) && mine[i].Read(a, &fb) {
			rectify(&fb, a.Now)
			return fb
		}
	}
	if len(mine) > 0 {
		rectify(&fb, a.Now)
	}
	readDialects(&a, &ev, &fb, said)
	return fb
}

// insert keeps the fields sorted by name: a map has no order, and what is read must not depend on chance.
func insert(fields []field, f field) []field {
	if len(fields) == maxFields {
		if f.name >= fields[maxFields-1].name {
			return fields
		}
		fields = fields[:maxFields-1]
	}
	fields = append(fields, f)
	for i := len(fields) - 1; i > 0 && fields[i].name < fields[i-1].name; i-- {
		fields[i], fields[i-1] = fields[i-1], fields[i]
	}
	return fields
}

// readFields reads all fields into readings and evidence.
func readFields(fields []field, ev *evidence, fb *Feedback) {
	var p reader
	p.ev, p.fb = *ev, *fb
	for _, f := range fields {
		name, ok := parseName(f.name)
		if !ok {
			continue
		}
		p.take(f, &name)
	}
	p.finish()
	*ev, *fb = p.ev, p.fb
}

// reader puts the fields of one answer together. It holds no pointers to what
// it fills in, so that all of it stays on the stack.
type reader struct {
	ev   evidence
	fb   Feedback
	some [2]group // the first limits; most answers have no more
	more []*group
	n    int

	name, category, kind string // what the unnamed limit is called
	names                policies
}

// take sorts one field in.
func (p *reader) take(f field, n *headerName) {
	if braced(f.lines) {
		p.object(f, n)
		return
	}
	switch n.role {
	case roleLimit, roleLeft, roleUsed, roleReset, roleAfter, roleWindow, roleFill, roleUtil, roleStatus:
		p.group(f, n).take(f, n)
		return
	case rolePolicy:
		p.policy(f, n)
		return
	case roleNone:
		if line := f.lines[0]; line != "" && line[0] == '"' && !numeric(line) {
			p.states(f, n)
			return
		}
	}
	value := firstItem(f.lines)
	switch n.role {
	case roleRetry:
		p.ev.retry(f, n)
	case roleCost:
		p.cost(f, n)
	case roleName:
		if n.limit == "" {
			p.name = first(p.name, named(unquote(value)))
			if strings.HasSuffix(strings.ToLower(f.name), "category") {
				p.name, p.category = "", named(value)
			}
			p.ev.named(f.name, value)
		}
	case roleType:
		if s := scopeOf(strings.ToLower(value)); s != "" {
			p.ev.scope = first(p.ev.scope, s)
		} else {
			p.kind = named(value)
		}
	case roleScope:
		p.ev.sharing(value)
	case roleGlobal:
		if strings.EqualFold(value, "true") || value == "1" {
			p.ev.global = true
			p.ev.scope = "global"
		}
	case roleReason:
		p.ev.reason = first(p.ev.reason, named(value))
	case roleInfo:
		p.pairs(f, n)
	case roleNone:
		switch {
		case numeric(value):
			p.group(f, n).quota = f.lines
		case keyed(value):
			p.pairs(f, n)
		default:
			p.states(f, n)
		}
	}
}

// first is a unless it is empty.
func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// numeric says whether a value begins like a count.
func numeric(s string) bool {
	if s != "" && s[0] == '"' {
		end := closing(s, 0)
		if end < 0 {
			return false
		}
		_, ok := number(s[1:end])
		return ok
	}
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return s != "" && s[0] >= '0' && s[0] <= '9' || strings.EqualFold(s, "unlimited")
}

// keyed says whether a value is made of key=value pairs, as in draft-07: an
// equals sign stands before the first semicolon.
func keyed(s string) bool {
	if s == "" || s[0] == '"' {
		return false
	}
	i := strings.IndexAny(s, "=;")
	if i <= 0 || s[i] != '=' {
		return false
	}
	_, _, ok := fieldWord(strings.ToLower(trim(s[:i])), "")
	return ok || strings.Contains(s[:i], "usage")
}

// group finds or makes the group of fields of one limit.
func (p *reader) group(f field, n *headerName) *group {
	for i := range p.n {
		g := p.at(i)
		if g.limit == n.limit && strings.EqualFold(g.family, n.family) {
			g.hear(f, n)
			return g
		}
	}
	var g *group
	if p.n < len(p.some) {
		g = &p.some[p.n]
	} else {
		p.more = append(p.more, new(group))
		g = p.more[len(p.more)-1]
	}
	p.n++
	g.family, g.limit = n.family, n.limit
	g.hear(f, n)
	return g
}

// at gives the i-th group.
func (p *reader) at(i int) *group {
	if i < len(p.some) {
		return &p.some[i]
	}
	return p.more[i-len(p.some)]
}

// cost reads what the call cost.
func (p *reader) cost(f field, n *headerName) {
	it := readItem(firstItem(f.lines))
	if !it.ok {
		return
	}
	unit := n.unit
	if unit == "" && !n.marked { // Canvas, Cosmos DB: costs in a unit of their own
		unit = UnitPoints
	}
	p.fb.Cost.add(unit, it.n)
}

// finish turns the groups into readings.
func (p *reader) finish() {
	from := len(p.fb.Readings)
	p.lend()
	p.names.join(p)
	for i := range p.n {
		g := p.at(i)
		if !g.lent {
			g.read(p)
		}
	}
	p.call(from)
	p.fb.Readings = merge(p.fb.Readings, from)
	p.blame(from)
}

// call gives the unnamed limits the name that other fields told.
func (p *reader) call(from int) {
	name := p.name
	if p.category != "" {
		name = p.category
		if p.kind != "" {
			name += ":" + p.kind
		}
	}
	if name == "" && p.ev.reason != "" && scopeOf(strings.ToLower(p.ev.reason)) == "" {
		name = p.ev.reason
	}
	if name == "" {
		return
	}
	for i := from; i < len(p.fb.Readings); i++ {
		r := &p.fb.Readings[i]
		if r.Limit.Name != "" {
			continue
		}
		r.Limit.Name = name
		if r.Limit.Window == 0 && p.kind != "" {
			r.Limit.Window = windowIn(p.kind)
		}
		if p.name != "" && strings.EqualFold(name, "graphql") && r.Limit.Unit == "" {
			r.Limit.Unit = UnitPoints // GitHub counts GraphQL in points
		}
	}
}

// blame makes a reading of a limit that is only named as the one that refused.
func (p *reader) blame(from int) {
	ev := &p.ev
	if !ev.refusing() {
		return
	}
	blamed := Reading{Has: HasRemaining, momentary: true}
	switch {
	case ev.global:
		blamed.Limit.Name = "global"
	case p.name != "":
		blamed.Limit.Name = p.name
	case ev.reason != "" && len(p.fb.Readings) == from && !strings.ContainsRune(ev.reason, ' '):
		if unitSpan(ev.reason) != 0 || scopeOf(strings.ToLower(ev.reason)) != "" {
			return // a word for one of the limits, not a name
		}
		blamed.Limit.Name, blamed.Limit.Window = ev.reason, windowIn(ev.reason)
		if strings.Contains(ev.reason, "concurren") {
			blamed.Limit.Unit = UnitConcurrent
		}
	default:
		return
	}
	if ev.global && p.fb.Readings != nil {
		for _, r := range p.fb.Readings[from:] {
			if r.Limit.Name == "global" {
				return
			}
		}
	} else if len(p.fb.Readings) > from {
		return
	}
	blamed.From = "Retry-After"
	p.fb.Readings = append(p.fb.Readings, blamed)
}

// age reads Age (RFC 9111, 5.1): how long the answer lay in a cache.
func age(h http.Header) (time.Duration, bool) {
	v := h["Age"]
	if len(v) == 0 {
		return 0, false
	}
	n, ok := number(trim(v[0]))
	if !ok || n <= 0 {
		return 0, false
	}
	return seconds(n), true
}
