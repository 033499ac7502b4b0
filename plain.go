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
