package heed

import "time"

// plainTrio reads the form that most answers have: one family's limit,
// remaining, reset and used as bare numbers, one line each, and nothing else.
// The grammar reads them the same; here they only cost less. ok is false for
// all that is not so plain.
func plainTrio(fields []field, now, base time.Time) (r Reading, ok bool) {
	if len(fields) > 4 || len(fields) < 2 {
		return r, false
	}
	family := len("Ratelimit")
	if fields[0].name[0] == 'X' {
		family = len("X-Ratelimit")
	}
	for i := range fields {
		f := &fields[i]
		if len(f.lines) != 1 || f.name[0] != fields[0].name[0] || len(f.name) <= family {
			return r, false
		}
		n, good := number(f.lines[0])
		if !good || n > maxUnits {
			return r, false
		}
		switch f.name[family:] {
		case "-Limit":
			r.Limit.Quota = n
			r.Has |= HasQuota
			if r.From == "" {
				r.From = f.name
			}
		case "-Remaining":
			r.Remaining, r.From = n, f.name
			r.Has |= HasRemaining
		case "-Used":
			r.Used = n
			r.Has |= HasUsed
		case "-Reset":
			t, good := magnitude(n)
			if !good {
				return r, false
			}
			r.Reset, r.absolute = t.local(now, base), !t.at.IsZero()
		default:
			return r, false
		}
	}
	return r, r.Has&(HasQuota|HasRemaining) == HasQuota|HasRemaining && r.Limit.Quota > 0
}

// plainDraft reads RateLimit beside RateLimit-Policy as drafts 08 to 10 have
// them, where every state has its policy. It too reads what the grammar would.
func plainDraft(fields []field, now, base time.Time, into []Reading) ([]Reading, bool) {
	if len(fields) != 2 || fields[0].name != "Ratelimit" || fields[1].name != "Ratelimit-Policy" {
		return nil, false
	}
	var room [4]quotaPolicy
	n, left := 0, 0
	for it := items(fields[0].lines); ; n++ {
		s, ok := it.next()
		if !ok {
			break
		}
		if n == len(room) || s[0] != '"' {
			return nil, false
		}
		if !room[n].plain(s) || room[n].has != HasRemaining {
			return nil, false
		}
	}
	left = n
	from := len(into)
	for it := items(fields[1].lines); ; {
		s, ok := it.next()
		if !ok {
			break
		}
		var q quotaPolicy
		if s[0] != '"' || !q.plain(s) || q.has != HasQuota || q.quota == 0 {
			return nil, false
		}
		r := Reading{Limit: Limit{Name: q.name, Partition: q.partition, Unit: q.unit, Quota: q.quota, Window: q.window}, Has: HasQuota, From: "Ratelimit-Policy"}
		for i := range n {
			state := &room[i]
			if state.name != q.name {
				continue
			}
			if state.joined || state.partition != "" {
				return nil, false
			}
			state.joined = true
			left--
			r.Remaining, r.Has, r.From = state.left, HasQuota|HasRemaining, "Ratelimit"
			if r.Limit.Unit == "" {
				r.Limit.Unit = state.unit
			}
			if state.resets {
				r.Reset, r.absolute = state.reset.local(now, base), !state.reset.at.IsZero()
			}
			break
		}
		for i := from; i < len(into); i++ {
			if into[i].Limit.Name == q.name {
				return nil, false
			}
		}
		if len(into)-from == len(room) {
			return nil, false
		}
		into = append(into, r)
	}
	return into, left == 0 && len(into) > from
}
