package heed

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// quotaPolicy is one item of RateLimit-Policy or of RateLimit in the structured form
// of drafts 08 to 10: a name and parameters.
type quotaPolicy struct {
	name, partition string
	unit            Unit
	quota           float64
	left            float64
	window          time.Duration
	reset           told
	from            string
	has             Has
	resets          bool
	joined          bool
}

// policies are what the two fields say, before they are joined.
type policies struct{ said, states []quotaPolicy }

// policy reads a RateLimit-Policy field: bare integers belong to the trio of
// the same family (drafts 04 to 07), names to RateLimit (from draft 08 on).
func (p *reader) policy(f field, n *headerName) {
	for it := items(f.lines); ; {
		s, ok := it.next()
		if !ok {
			return
		}
		if s[0] >= '0' && s[0] <= '9' {
			p.group(f, &headerName{role: rolePolicy, family: n.family, limit: n.limit, marked: true}).policies = f.lines
			continue
		}
		if q, ok := readPolicy(s); ok && q.has&HasQuota != 0 && len(p.names.said) < maxReadings {
			q.from = f.name
			p.adopt(&q, n)
			if p.names.said == nil {
				p.names.said = make([]quotaPolicy, 0, 2)
			}
			p.names.said = append(p.names.said, q)
		}
	}
}

// states reads a RateLimit field of draft 08 or later.
func (p *reader) states(f field, n *headerName) {
	for it := items(f.lines); ; {
		s, ok := it.next()
		if !ok {
			return
		}
		if s[0] >= '0' && s[0] <= '9' {
			continue
		}
		q, ok := readPolicy(s)
		if ok && (q.has&HasRemaining != 0 || q.resets) && len(p.names.states) < maxReadings {
			q.from = f.name
			p.adopt(&q, n)
			if p.names.states == nil {
				p.names.states = make([]quotaPolicy, 0, 2)
			}
			p.names.states = append(p.names.states, q)
		}
	}
}

// adopt takes what the field's own name adds: "Acme-RateLimit-Write" names its policies' owner only when they have no unit.
func (p *reader) adopt(q *quotaPolicy, n *headerName) {
	if q.unit == "" && n.unit != "" {
		q.unit = n.unit
	}
}

// readPolicy reads one item. The plain form is read by hand; what is not plain
// goes to a full structured-field parser (RFC 9651), and what even that
// refuses, but is still a name with readable parameters, is taken as servers
// that err in one particular way mean it.
func readPolicy(s string) (q quotaPolicy, ok bool) {
	if q, plain, good := plainPolicy(s); plain {
		return q, good
	}
	if v, err := httpsfv.UnmarshalItem([]string{s}); err == nil {
		return structured(v)
	}
	return loosePolicy(s)
}

// plain reads an item into q when it is plain and good.
func (q *quotaPolicy) plain(s string) bool {
	var plain, ok bool
	*q, plain, ok = plainPolicy(s)
	return plain && ok
}

// plainPolicy reads `"name";key=value;…` and `name;key=value;…` where no string holds an escape.
func plainPolicy(s string) (q quotaPolicy, plain, ok bool) {
	rest := ""
	if s[0] == '"' {
		end := strings.IndexByte(s[1:], '"')
		if end < 0 {
			return q, false, false
		}
		q.name, rest = s[1:end+1], s[end+2:]
		if strings.IndexByte(q.name, '\\') >= 0 {
			return q, false, false
		}
	} else {
		i := strings.IndexByte(s, ';')
		if i < 0 {
			i = len(s)
		}
		q.name, rest = trim(s[:i]), s[i:]
		if q.name == "" || strings.ContainsAny(q.name, " \"\\(){}=@%?,<>[]") {
			return q, false, false
		}
	}
	for len(rest) > 0 {
		if rest[0] != ';' {
			return q, trim(rest) == "", trim(rest) == "" && len(q.name) <= maxName
		}
		rest = rest[1:]
		i := strings.IndexByte(rest, ';')
		p := rest
		if i >= 0 {
			p, rest = rest[:i], rest[i:]
		} else {
			rest = ""
		}
		p = trim(p)
		eq := strings.IndexByte(p, '=')
		if eq < 0 {
			if strings.IndexByte(p, '"') >= 0 {
				return q, false, false
			}
			continue // a flag of the server's own
		}
		key, value := trim(p[:eq]), trim(p[eq+1:])
		if value != "" && value[0] == '"' {
			if len(value) < 2 || value[len(value)-1] != '"' || strings.IndexByte(value, '\\') >= 0 {
				return q, false, false
			}
			value = value[1 : len(value)-1]
		}
		if !q.parameter(key, value) {
			return q, true, false
		}
	}
	return q, true, len(q.name) <= maxName && validName(q.name)
}

// validName keeps names fit to print: visible ASCII and spaces, as a structured string has it.
func validName(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// parameter takes one parameter; false when a known one has a value that cannot be.
func (q *quotaPolicy) parameter(key, value string) bool {
	switch key {
	case "q", "r":
		n, ok := number(value)
		if !ok {
			if key == "r" && len(value) > 1 && value[0] == '-' {
				n, ok = 0, true
			} else {
				return false
			}
		}
		if n > maxUnits {
			return true // unknown
		}
		if key == "q" {
			q.quota = n
			q.has |= HasQuota
		} else {
			q.left = n
			q.has |= HasRemaining
		}
	case "w":
		n, ok := number(value)
		if !ok {
			return false
		}
		q.window = seconds(n)
	case "t":
		n, ok := number(value)
		if !ok {
			return false
		}
		if t, ok := magnitude(n); ok {
			q.reset, q.resets = t, true
		} else {
			q.reset, q.resets = told{delta: maxWait}, true
		}
	case "qu":
		q.unit = quotaUnit(value)
	case "pk":
		if len(value) <= maxName {
			q.partition = value
		}
	}
	return true
}

// quotaUnit gives the unit that a draft names; draft 08 still says "bytes".
func quotaUnit(s string) Unit {
	switch s {
	case "requests", "":
		return ""
	case "content-bytes", "bytes":
		return UnitBytes
	case "concurrent-requests":
		return UnitConcurrent
	}
	return Unit(named(s))
}

// structured takes an item that the full parser has read.
func structured(v httpsfv.Item) (q quotaPolicy, ok bool) {
	switch name := v.Value.(type) {
	case string:
		q.name = name
	case httpsfv.Token:
		q.name = string(name)
	default:
		return q, false
	}
	for _, key := range v.Params.Names() {
		value, _ := v.Params.Get(key)
		text := ""
		switch value := value.(type) {
		case int64:
			text = decimal(float64(value))
		case float64:
			text = decimal(value)
		case string:
			text = value
		case httpsfv.Token:
			text = string(value)
		case []byte:
			text = ":" + base64.StdEncoding.EncodeToString(value) + ":"
		default:
			text = "?"
		}
		if (key == "q" || key == "r" || key == "t" || key == "w" || key == "pk" || key == "qu") && !q.parameter(key, text) {
			return q, false
		}
	}
	return q, len(q.name) <= maxName
}

// loosePolicy reads `"fixed window";"api";q=500;w=300`, which is no structured
// field: the last string is the name, the others describe it (Hugging Face).
func loosePolicy(s string) (q quotaPolicy, ok bool) {
	for range maxItems {
		if s == "" {
			break
		}
		part := s
		if i := semicolon(s); i >= 0 {
			part, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		part = trim(part)
		if len(part) > 2 && part[0] == '"' && part[len(part)-1] == '"' {
			q.name = part[1 : len(part)-1]
			continue
		}
		key, value, pair := strings.Cut(part, "=")
		if pair && !q.parameter(trim(key), unquote(trim(value))) {
			return q, false
		}
	}
	return q, q.name != "" && len(q.name) <= maxName && validName(q.name)
}

// join puts policies and states of one name and partition together. A partition
// that only one of the two fields tells is no difference.
func (s *policies) join(p *reader) {
	if len(s.said) == 1 && len(s.states) == 1 && s.said[0].name != s.states[0].name && s.said[0].partition == s.states[0].partition {
		p.state(&s.states[0], &s.said[0]) // Cloudflare: one limit under two names
		return
	}
	for i := range s.said {
		q := &s.said[i]
		for pass := 0; pass < 2 && !q.joined; pass++ { // first the same partition, then one that is not told
			for j := range s.states {
				r := &s.states[j]
				if !r.joined && q.matches(r) && (pass == 1 || q.partition == r.partition) {
					q.joined, r.joined = true, true
					p.state(r, q)
					break
				}
			}
		}
		if !q.joined {
			p.state(nil, q)
		}
	}
	for i := range s.states {
		if !s.states[i].joined {
			p.state(&s.states[i], nil)
		}
	}
}

// matches says whether two items speak of one limit.
func (q *quotaPolicy) matches(r *quotaPolicy) bool {
	return q.name == r.name && (q.partition == r.partition || q.partition == "" || r.partition == "")
}

// state emits one named limit, of which either part may be missing.
func (p *reader) state(r, q *quotaPolicy) {
	var out Reading
	if q != nil {
		out.Limit = Limit{Name: q.name, Partition: q.partition, Unit: q.unit, Quota: q.quota, Window: q.window}
		out.Has, out.From = q.has&HasQuota, q.from
	}
	if r != nil {
		out.Limit.Name, out.From = r.name, r.from
		out.Limit.Partition = first(out.Limit.Partition, r.partition)
		if out.Limit.Unit == "" {
			out.Limit.Unit = r.unit
		}
		if r.has&HasRemaining != 0 {
			out.Remaining = r.left
			out.Has |= HasRemaining
		}
		if r.resets {
			out.Reset, out.absolute = r.reset.local(p.ev.now, p.ev.base), !r.reset.at.IsZero()
		}
	}
	p.emit(&group{marked: true}, out)
}

// trio reads RateLimit-Limit, -Remaining and -Reset beside policies without
// names: drafts 00 to 03 list them after the expiring limit, 04 to 07 in a field
// of their own. What remains and the reset belong to the policy of the same
// quota that can hold both; else to any that can.
func (g *group) trio(p *reader, quota, left, used []item) {
	var room [4]item
	all := collect(g.policies, room[:0])
	if len(quota) > 1 {
		all = append(all, quota[1:]...)
	}
	r := g.reading(p, at(quota, 0), at(left, 0), at(used, 0))
	g.whenWhole(p, &r, -1)
	held := -1
	if r.Has&(HasQuota|HasRemaining) != 0 || !r.Reset.IsZero() {
		held = holder(all, &r, p.ev.now)
	}
	for i := range all {
		if it := &all[i]; it.ok && i != held {
			o := g.reading(p, it, nil, nil)
			if o.Has&HasQuota != 0 {
				p.emit(g, o)
			}
		}
	}
	if held >= 0 {
		it := &all[held]
		restates := false
		for i := range all {
			restates = restates || all[i].n == r.Limit.Quota && i != held
		}
		if r.Has&HasQuota == 0 || restates && r.Limit.Quota != it.n {
			r.Limit.Quota = it.n
			r.Has |= HasQuota
		}
		r.describe(it)
	}
	p.emit(g, r)
}

// holder finds the policy that a trio is about, or -1.
func holder(all []item, r *Reading, now time.Time) int {
	loose := -1
	for i := range all {
		it := &all[i]
		if !it.ok || r.Has&HasRemaining != 0 && r.Remaining > it.n {
			continue
		}
		if it.window > 0 && !r.Reset.IsZero() && r.Reset.Sub(now) > it.window {
			continue
		}
		if r.Has&HasQuota != 0 && it.n == r.Limit.Quota {
			return i
		}
		if loose < 0 {
			loose = i
		}
	}
	return loose
}
