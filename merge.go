package heed

import (
	"strings"
	"time"
)

// merge takes together the readings that speak of one limit in different
// spellings, as servers do that send X-RateLimit-* beside RateLimit-*: an
// unnamed one that contradicts another in nothing and agrees with it in what
// remains is the same.
func merge(rs []Reading, from int) []Reading {
	for i := from; i < len(rs); i++ {
		if rs[i].Limit.Name != "" {
			continue
		}
		twin, others := -1, 0
		for j := from; j < len(rs); j++ {
			if i != j && restates(&rs[i], &rs[j]) {
				if others++; twin < 0 || rs[twin].Limit.Name != "" && rs[j].Limit.Name == "" {
					twin = j
				}
			}
		}
		if twin < 0 || others > 1 && rs[twin].Limit.Name != "" {
			continue
		}
		rs[twin].complete(&rs[i])
		rs = append(rs[:i], rs[i+1:]...)
		i--
	}
	return rs
}

// restates: a says of b's limit nothing that b contradicts, under another family's name.
func restates(a, b *Reading) bool {
	if a.Has&b.Has&HasRemaining == 0 || a.Remaining != b.Remaining || a.Limit.Unit != b.Limit.Unit {
		return false
	}
	both := a.Has & b.Has
	if both&HasQuota != 0 && a.Limit.Quota != b.Limit.Quota || both&HasUsed != 0 && a.Used != b.Used {
		return false
	}
	if b.Limit.Name != "" && both&HasQuota == 0 {
		return false // too little to tell by
	}
	if a.Limit.Window > 0 && b.Limit.Window > 0 && a.Limit.Window != b.Limit.Window {
		return false
	}
	if !a.Reset.IsZero() && !b.Reset.IsZero() && a.Reset.Sub(b.Reset).Abs() > 2*time.Second {
		return false
	}
	return !strings.EqualFold(familyOf(a.From), familyOf(b.From))
}

// familyOf is what stands before the figure's own word: what tells spellings apart.
func familyOf(from string) string {
	f, _ := parseName(from)
	return f.family
}

// complete adds what another reading of the same limit says more.
func (r *Reading) complete(o *Reading) {
	if r.Has&HasQuota == 0 && o.Has&HasQuota != 0 {
		r.Limit.Quota = o.Limit.Quota
	}
	if r.Has&HasUsed == 0 && o.Has&HasUsed != 0 {
		r.Used = o.Used
	}
	r.Has |= o.Has
	if r.Limit.Window == 0 {
		r.Limit.Window = o.Limit.Window
	}
	if r.Reset.IsZero() {
		r.Reset, r.absolute = o.Reset, o.absolute
	}
}
