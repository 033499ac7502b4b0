package heed

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// decimal writes a number in the shortest way.
func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// pairs reads key=value fields: draft-07's "limit=100, remaining=50, reset=5",
// Zendesk's "total=100; remaining=99; resets=41", and Salesforce's
// "api-usage=25/5000; per-app-api-usage=17/250(appName=sample)".
func (p *reader) pairs(f field, n *headerName) {
	r := Reading{Limit: Limit{Name: n.limit, Unit: n.unit, Window: n.window}, From: f.name}
	for it := items(f.lines); ; {
		s, ok := it.next()
		if !ok {
			break
		}
		for range maxItems {
			if s == "" {
				break
			}
			pair := s
			if i := semicolon(s); i >= 0 {
				pair, s = s[:i], s[i+1:]
			} else {
				s = ""
			}
			key, value, ok := strings.Cut(pair, "=")
			if !ok {
				continue
			}
			p.pair(&r, strings.ToLower(trim(key)), unquote(trim(value)), f)
		}
	}
	r.infer()
	if r.Has == 0 && r.Reset.IsZero() {
		return
	}
	// Policies without names belong to it (draft-07).
	for i := range p.n {
		g := p.at(i)
		if g.policies != nil && strings.EqualFold(g.family, n.family) && g.limit == n.limit {
			p.under(g, &r)
			return
		}
	}
	if n.role == roleNone && n.limit == "" {
		// RateLimit-Policy sorts after RateLimit: let the group wait for it.
		g := p.group(f, n)
		g.paired, g.pair = true, &r
		return
	}
	p.emit(&group{marked: true}, r)
}

// under lets a reading of pairs take its window from policies.
func (p *reader) under(g *group, r *Reading) {
	var room [4]item
	all := collect(g.policies, room[:0])
	held := holder(all, r, p.ev.now)
	for i := range all {
		if it := &all[i]; it.ok && i != held {
			p.emit(g, g.reading(p, it, nil, nil))
		}
	}
	if held >= 0 {
		if r.Has&HasQuota == 0 {
			r.Limit.Quota = all[held].n
			r.Has |= HasQuota
		}
		r.describe(&all[held])
	}
	p.emit(g, *r)
}

// pair takes one pair into r, or makes a reading of its own of "used/limit".
func (p *reader) pair(r *Reading, key, value string, f field) {
	head, rest, _ := strings.Cut(value, "(")
	it := readItem(trim(head))
	if it.ok && it.hasUsed {
		own := Reading{Limit: Limit{Name: named(key), Quota: it.n}, Used: it.used, Has: HasQuota | HasUsed, From: f.name}
		if _, partition, ok := strings.Cut(strings.TrimSuffix(rest, ")"), "="); ok {
			own.Limit.Partition = named(trim(partition))
		}
		own.infer()
		p.emit(&group{marked: true}, own)
		return
	}
	p.figure(r, key, value, it)
}

// figure takes one figure by its key, as a field of a trio.
func (p *reader) figure(r *Reading, key, value string, it item) {
	word, next, _ := strings.Cut(strings.NewReplacer("_", "-", " ", "-").Replace(key), "-")
	role, _, _ := fieldWord(word, next)
	if role == roleNone {
		switch word {
		case "r":
			role = roleLeft
		case "t":
			role = roleReset
		case "w":
			role = roleWindow
		case "call": // call_count
			role = roleUsed
		}
	}
	switch role {
	case roleLimit:
		if it.ok {
			r.Limit.Quota = it.n
			r.Has |= HasQuota
		}
	case roleLeft:
		switch {
		case it.ok:
			r.Remaining = it.n
			r.Has |= HasRemaining
		case it.negative:
			r.Has |= HasRemaining
		}
	case roleUsed:
		if it.ok {
			r.Used = it.n
			r.Has |= HasUsed
		}
	case roleWindow:
		if it.ok {
			r.Limit.Window = seconds(it.n)
		} else {
			r.Limit.Window = windowOf(value)
		}
	case roleReset, roleAfter:
		var scale time.Duration
		if strings.HasSuffix(key, "ms") {
			scale = time.Millisecond
		}
		if t, ok := when(value, scale, p.ev.base); ok {
			r.Reset, r.absolute = t.local(p.ev.now, p.ev.base), !t.at.IsZero()
		}
	case roleName:
		r.Limit.Name = named(value)
	}
}

// object reads a field whose value is JSON: a limit with its figures, or shares
// in percent as Meta sends them, per account or not.
func (p *reader) object(f field, n *headerName) {
	title := n.limit
	it := items(f.lines)
	it.long = maxJSON
	for {
		s, ok := it.next()
		if !ok {
			return
		}
		v, ok := parseJSON([]byte(s)).(map[string]any)
		if !ok {
			continue
		}
		if name, ok := usageFields[strings.ToLower(f.name)]; ok {
			title = name
		}
		p.usage(f, n, title, "", v)
	}
}

// usageFields are Meta's fields, whose names do not tell what they are called by.
var usageFields = map[string]string{
	"x-business-use-case-usage":  "buc",
	"x-fb-ads-insights-throttle": "insights",
	"x-ad-account-usage":         "ad-account",
	"x-app-usage":                "app",
	"x-page-usage":               "page",
}

// usage reads one object of shares: each number of percent is a limit.
func (p *reader) usage(f field, n *headerName, title, partition string, v map[string]any) {
	var regain, whole time.Time
	keys := sortedKeys(v)
	percent := false
	for _, key := range keys {
		switch value := v[key].(type) {
		case []any, map[string]any: // by account
			list, ok := value.([]any)
			if !ok {
				list = []any{value}
			}
			for _, one := range list[:min(len(list), maxReadings)] {
				if one, ok := one.(map[string]any); ok {
					name := title
					if kind, ok := one["type"].(string); ok {
						name += ":" + named(kind)
					}
					p.usage(f, n, name, named(key), one)
				}
			}
		case json.Number:
			num, ok := number(value.String())
			if !ok {
				continue
			}
			switch key {
			case "estimated_time_to_regain_access":
				if num > 0 {
					regain = told{delta: seconds(num * 60)}.local(p.ev.now, p.ev.base)
				}
			case "reset_time_duration":
				whole = told{delta: seconds(num)}.local(p.ev.now, p.ev.base)
			default:
				percent = percent || strings.HasPrefix(key, "total_") || strings.HasSuffix(key, "_pct") || key == "call_count" && !n.marked
			}
		}
	}
	if !percent {
		if partition == "" {
			p.figures(f, n, v, keys)
		}
		return
	}
	for _, key := range keys {
		value, ok := v[key].(json.Number)
		used, good := 0.0, false
		if ok {
			used, good = number(value.String())
		}
		if !good || used > 1e6 || key == "estimated_time_to_regain_access" || key == "reset_time_duration" {
			continue
		}
		r := Reading{
			Limit: Limit{Name: title + ":" + named(key), Partition: partition, Unit: UnitPercent, Quota: 100},
			Used:  used, Has: HasQuota | HasUsed, From: f.name, Reset: whole,
		}
		r.infer()
		if !regain.IsZero() && r.Remaining == 0 {
			r.Reset = regain
		}
		p.emit(&group{marked: true}, r)
	}
}

// figures reads {"limit":100,"remaining":40,"reset":12}.
func (p *reader) figures(f field, n *headerName, v map[string]any, keys []string) {
	r := Reading{Limit: Limit{Name: n.limit, Unit: n.unit, Window: n.window}, From: f.name}
	for _, key := range keys {
		value := ""
		switch v := v[key].(type) {
		case json.Number:
			value = v.String()
		case string:
			value = v
		default:
			continue
		}
		p.figure(&r, strings.ToLower(key), value, readItem(trim(value)))
	}
	r.infer()
	p.emit(&group{marked: n.marked}, r)
}
