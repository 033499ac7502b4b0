package heed

import (
	"net/http"
	"strings"
	"time"
)

// evidence is what an answer says about a refusal, apart from its readings.
type evidence struct {
	status    int
	now, base time.Time

	coarse, fine, body told // waits: of Retry-After, of its finer kin, of the body
	hasCoarse, hasFine bool
	hasBody            bool
	prose              bool // the body's wait stands in a sentence
	after              time.Duration

	reason    string // why, or which limit
	scope     string
	resource  string // the scope that a naming field implies
	global    bool
	shared    bool // a limit that others use up too
	allowance bool // a spent allowance, whatever its window
	clued     bool // something but the status speaks of a limit

	refused bool // a code or field says that a limit refused
	kind    Kind // what it says of the kind
	firm    bool // the kind stands, whatever the readings are
}

// retry reads a Retry-After field or one of its kin: the longest wait of all lines counts.
func (ev *evidence) retry(f field, n *headerName) {
	fine := n.scale != 0 && n.scale < time.Second || strings.HasSuffix(strings.ToLower(f.name), "in")
	for it := items(f.lines); ; {
		s, ok := it.next()
		if !ok {
			return
		}
		t, ok := when(s, n.scale, ev.base)
		if !ok {
			if _, good := number(s); !good {
				continue
			}
			t = told{delta: maxWait} // digits that fit no unit: very large, not malformed
		}
		if fine {
			ev.fine, ev.hasFine = longer(ev.fine, t, ev.hasFine, ev.base), true
		} else {
			ev.coarse, ev.hasCoarse = longer(ev.coarse, t, ev.hasCoarse, ev.base), true
		}
	}
}

// longer is the later of two waits.
func longer(a, b told, has bool, base time.Time) told {
	if !has || a.wait(base) < b.wait(base) {
		return b
	}
	return a
}

// wait is what is told as a delta from base.
func (t told) wait(base time.Time) time.Duration {
	if t.at.IsZero() {
		return t.delta
	}
	return t.at.Sub(base)
}

// inMillis says whether a delta that was read as seconds is milliseconds, by
// evidence alone: it exceeds its own window, or a thousandth of it is what Retry-After asks.
func (ev *evidence) inMillis(d, window time.Duration) bool {
	if window > 0 && d > window && d/1000 <= window && d >= 1000*time.Second {
		return true
	}
	if !ev.hasCoarse || !ev.coarse.at.IsZero() || ev.coarse.delta <= 0 || d < 1000*time.Second {
		return false
	}
	return (d/1000 - ev.coarse.delta).Abs() <= max(2*time.Second, ev.coarse.delta/20)
}

// asked is the wait that the answer names. The finer of two that agree within a
// second counts, else the longer.
func (ev *evidence) asked() (time.Time, bool) {
	coarse, fine, has := ev.coarse, ev.fine, ev.hasFine
	if ev.hasBody && !(ev.prose && (ev.hasCoarse || ev.hasFine)) {
		fine, has = longer(fine, ev.milli(ev.body), has, ev.base), true
	}
	if ev.hasCoarse {
		coarse = ev.milli(coarse)
	}
	switch {
	case !ev.hasCoarse && !has:
		return time.Time{}, false
	case !has:
		return coarse.local(ev.now, ev.base), true
	case !ev.hasCoarse:
		return fine.local(ev.now, ev.base), true
	}
	a, b := fine.local(ev.now, ev.base), coarse.local(ev.now, ev.base)
	if a.After(ev.now) && b.Sub(a).Abs() <= time.Second {
		return a, true
	}
	if a.After(b) {
		return a, true
	}
	return b, true
}

// milli corrects a wait that was given in milliseconds, when a finer field says so.
func (ev *evidence) milli(t told) told {
	if t.at.IsZero() && ev.after > 0 && t.delta > ev.after && (t.delta/1000-ev.after).Abs() <= 20*time.Millisecond {
		t.delta /= 1000
	}
	return t
}

// named takes the scope that a naming field implies.
func (ev *evidence) named(field, value string) {
	ev.clued = true
	lower := strings.ToLower(field)
	switch {
	case strings.HasSuffix(lower, "bucket"), strings.HasSuffix(lower, "group"):
		ev.resource = "bucket"
	case strings.HasSuffix(lower, "resource"):
		ev.resource = "resource"
	}
}

// sharing reads a field that names who shares the limit; Discord has user, shared and global.
func (ev *evidence) sharing(value string) {
	value = strings.ToLower(value)
	switch {
	case value == "shared":
		ev.shared, ev.scope = true, "resource"
	case scopeOf(value) != "":
		ev.scope = scopeOf(value)
	case len(value) <= 32 && validName(value):
		ev.scope = value
	}
}

// refusing says whether the status alone makes the answer a refusal by a limit.
func (ev *evidence) refusing() bool {
	switch ev.status {
	case http.StatusTooManyRequests, 420, 430: // RFC 6585; Twitter and EVE Online; Shopify
		return true
	}
	return false
}

// spentBy gathers what the readings say.
type spentBy struct {
	known, spent bool
	ietf         bool      // some reading comes from a RateLimit field without a prefix
	whole        time.Time // the latest reset among limits that are spent or silent about what remains
	scope        string
	kind         Kind
}

func (fb *Feedback) spending() (s spentBy) {
	s.kind = KindPrimary
	for i := range fb.Readings {
		r := &fb.Readings[i]
		s.ietf = s.ietf || len(r.From) >= 9 && strings.EqualFold(r.From[:9], "Ratelimit")
		if r.Has&HasRemaining != 0 {
			s.known = true
			if r.Remaining > 0 {
				continue
			}
			s.spent = true
			switch {
			case r.Limit.Unit == UnitConcurrent:
				s.kind = KindConcurrency
			case r.Limit.Window >= 24*time.Hour:
				s.kind = KindQuota
			case r.Has&HasQuota != 0 && r.Limit.Quota == 0 && r.Reset.IsZero():
				s.kind = KindQuota
			}
		}
		if !r.Reset.Before(s.whole) {
			s.whole = r.Reset
			if scope := scopeIn(r.Limit.Name); scope != "" {
				s.scope = scope
			}
		}
	}
	return s
}

// scopeIn finds who shares a limit in its name.
func scopeIn(name string) (scope string) {
	if len(name) > maxName {
		return ""
	}
	for rest := name; rest != ""; {
		var word string
		word, rest, _ = strings.Cut(strings.TrimLeft(rest, "-:_ "), "-")
		word, _, _ = strings.Cut(word, ":")
		if s := scopeOf(strings.ToLower(word)); s != "" {
			if s == "global" {
				return s
			}
			scope = s
		}
	}
	return scope
}

// verdict decides whether the answer is a refusal by a limit, of what kind, by
// whose limit, and until when. said: something was read at all. It may be
// called again when more evidence has come.
func (ev *evidence) verdict(fb *Feedback, said bool) {
	asked, hinted := ev.asked()
	s := fb.spending()
	fb.Limited, fb.Kind, fb.Scope, fb.RetryAt = false, KindNone, "", time.Time{}
	switch status := ev.status; {
	case ev.refused:
		fb.Limited, fb.Kind = true, ev.kind
	case ev.refusing():
		fb.Limited = true
		switch {
		case status == 430, !said && !hinted && !ev.clued:
			fb.Kind = KindSecondary // Shopify's bot guard; something before the limiter that reports
		}
	case status == http.StatusTeapot && hinted && asked.After(ev.now):
		fb.Limited, fb.Kind = true, KindBan
	case status == http.StatusForbidden:
		// A 403 is a refusal by a limit only with evidence; most are about rights.
		// A Retry-After of 0 is none: some servers send it with every answer.
		if s.spent || hinted && asked.After(ev.now) {
			fb.Limited = true
		}
		if !s.spent {
			fb.Kind = KindSecondary
		}
	case s.spent && (status == 400 || status == 402 || status == 418 || status == 503 || status == 509 || status == 529):
		fb.Limited = true
	case status == http.StatusServiceUnavailable, status == 509, status == 529, status == 598:
		fb.Kind = KindOverload
	default:
		if ev.kind == KindOverload {
			fb.Kind = KindOverload
		}
	}
	switch {
	case !fb.Limited:
		if fb.Kind != KindOverload {
			fb.Kind = KindNone
		}
	case ev.kind != KindNone && ev.firm:
		fb.Kind = ev.kind
	case ev.allowance:
		fb.Kind = KindQuota
	case ev.shared:
		fb.Kind = KindSecondary
	case fb.Kind == KindNone || fb.Kind == KindPrimary:
		fb.Kind = s.kind
		if s.known && !s.spent && !(s.ietf && hinted) && !ev.global && !ev.refused {
			// Everything that is reported has units left: another limiter refused.
			fb.Kind = KindSecondary
		}
	}
	if ev.status >= 400 || fb.Limited {
		fb.RetryAt = asked
		if fb.Limited && fb.Kind != KindSecondary && !asked.After(ev.now) && !s.whole.IsZero() {
			fb.RetryAt = s.whole
		}
	}
	if fb.Limited {
		fb.Scope = first(ev.scope, first(s.scope, ev.resource))
	}
}
