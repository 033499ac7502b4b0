package heed

import (
	"net/http"
	"strings"
	"time"
)

// family is the canonical names of one trio of rate-limit fields.
type family struct{ limit, remaining, reset, used, name string }

// families are the trios in use: the one that vendors invented, its other
// spelling, and the one of the early IETF drafts (draft-ietf-httpapi-ratelimit-headers-00 to -06).
var families = [...]family{
	{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Used", "X-Ratelimit-Resource"},
	{"Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset", "", ""},
	{"X-Rate-Limit-Limit", "X-Rate-Limit-Remaining", "X-Rate-Limit-Reset", "", ""},
}

// ParseFeedback reads what resp says about rate limits at the instant now:
// Retry-After as delta-seconds or as any HTTP-date (RFC 9110, 10.2.3), and the
// X-RateLimit-*, X-Rate-Limit-* and RateLimit-* trios.
//
// Absolute instants are measured against the answer's own Date, so a server
// whose clock is minutes off is still read right, and are returned on the local
// clock. Every wait lies within [now, now + 10 years]. Garbage drops only the
// field it stands in. ParseFeedback reads no body, changes nothing in resp, and
// is safe for concurrent use as long as nobody changes resp.Header.
func ParseFeedback(resp *http.Response, now time.Time) Feedback {
	return parseFeedback(resp.StatusCode, resp.Header, now, nil)
}

// parseFeedback appends the readings to buf, so that a caller with a buffer allocates nothing.
func parseFeedback(status int, h http.Header, now time.Time, buf []Reading) Feedback {
	fb := Feedback{Readings: buf}
	lain, _ := age(h)
	fb.parse(status, h, lain, now)
	return fb
}

// parse fills an empty Feedback from an answer whose age is lain.
func (fb *Feedback) parse(status int, h http.Header, lain time.Duration, now time.Time) {
	base := now // what absolute instants are measured against
	if v := h["Date"]; len(v) > 0 {
		if date, ok := httpDate(v[0], now); ok && clockable(date) {
			fb.Date, base = date, date
			if lain > 0 {
				// An answer out of a cache: its Date is no reading of a clock now.
				fb.Date, base = time.Time{}, date.Add(lain)
			}
		}
	}
	for i := range families {
		f := &families[i]
		limit, remaining := h[f.limit], h[f.remaining]
		if len(limit) == 0 && len(remaining) == 0 {
			continue
		}
		r, ok := f.read(h, limit, remaining, now, base)
		if ok && !(status < 400 && r.void(now)) && !repeats(fb.Readings, &r) {
			fb.Readings = append(fb.Readings, r)
		}
	}
	var asked time.Time
	if status >= 400 { // a redirect's or a poll's Retry-After is no rate limit
		if v := h["Retry-After"]; len(v) > 0 {
			asked = latest(v, now, base)
		}
	}
	fb.verdict(status, now, asked)
}

// read reads one trio. A Reading needs a quota or a remaining; a reset alone says nothing.
func (f *family) read(h http.Header, limit, remaining []string, now, base time.Time) (r Reading, ok bool) {
	r.From = f.remaining
	if len(remaining) == 0 {
		r.From = f.limit
	}
	var window time.Duration
	if r.Limit.Quota, r.Limit.Window, ok = count(limit, false); ok {
		r.Has |= HasQuota
	}
	if r.Remaining, window, ok = count(remaining, false); ok {
		r.Has |= HasRemaining
		if r.Limit.Window == 0 {
			r.Limit.Window = window
		}
	}
	if f.used != "" {
		if r.Used, _, ok = count(h[f.used], true); ok {
			r.Has |= HasUsed
			if r.Has&(HasQuota|HasRemaining) == HasQuota {
				r.Remaining = max(0, r.Limit.Quota-r.Used)
				r.Has |= HasRemaining
			}
		}
	}
	if r.Has == 0 {
		return r, false
	}
	if f.name != "" {
		if v := h[f.name]; len(v) > 0 && len(v[0]) <= 128 {
			r.Limit.Name = v[0]
		}
	}
	r.Reset, r.absolute = reset(h[f.reset], now, base)
	return r, true
}

// clockable: an instant that fits nanoseconds since 1970, as all reckoning with clocks here does.
func clockable(t time.Time) bool { return t.Unix() >= 0 && t.Unix() < year2201 }

const year2201 = 7_289_654_400

// void: all zero on an answer that was let through, as gateways write that there is no quota.
func (r *Reading) void(now time.Time) bool {
	return r.Has&(HasQuota|HasRemaining) == HasQuota|HasRemaining && r.Limit.Quota == 0 && r.Remaining == 0 && !r.Reset.After(now)
}

// sameReset is how far apart two spellings of one reset may lie: one may be a delta, the other an instant in whole seconds.
const sameReset = 2 * time.Second

// repeats: the same limit under a second spelling, as servers that send both
// X-RateLimit-* and RateLimit-* do. What the first left open the second fills in.
func repeats(rs []Reading, r *Reading) bool {
	for i := range rs {
		p := &rs[i]
		if p.Has&HasRemaining != r.Has&HasRemaining || p.Remaining != r.Remaining ||
			p.Has&r.Has&HasQuota != 0 && p.Limit.Quota != r.Limit.Quota ||
			p.Limit.Window != 0 && r.Limit.Window != 0 && p.Limit.Window != r.Limit.Window ||
			!p.Reset.IsZero() && !r.Reset.IsZero() && p.Reset.Sub(r.Reset).Abs() > sameReset {
			continue
		}
		if p.Has&HasQuota == 0 {
			p.Limit.Quota = r.Limit.Quota
		}
		if p.Limit.Window == 0 {
			p.Limit.Window = r.Limit.Window
		}
		if p.Reset.IsZero() {
			p.Reset, p.absolute = r.Reset, r.absolute
		}
		p.Has |= r.Has
		return true
	}
	return false
}

// reset reads a reset field, the latest of all items and lines.
func reset(lines []string, now, base time.Time) (at time.Time, absolute bool) {
	for _, line := range lines[:min(len(lines), maxLines)] {
		for range maxItems {
			if line == "" {
				break
			}
			n, ok := digits(line)
			if ok {
				line = ""
			} else {
				var item string
				item, line, _ = strings.Cut(line, ",")
				if n, ok = number(strings.TrimSpace(item)); !ok {
					continue
				}
			}
			t, ok := magnitude(n)
			if !ok {
				continue
			}
			if local := t.local(now, base); local.After(at) {
				at, absolute = local, !t.at.IsZero()
			}
		}
	}
	return at, absolute
}

// latest reads Retry-After lines, and lines that an intermediary joined ("7, 30"): the longest wait wins.
func latest(lines []string, now, base time.Time) (at time.Time) {
	for _, line := range lines[:min(len(lines), maxLines)] {
		for range maxItems {
			if line == "" {
				break
			}
			t, ok := wait(line, base) // nearly always one value
			rest := ""
			var item string
			if !ok {
				item, rest, _ = strings.Cut(line, ",")
				t, ok = wait(item, base)
			}
			if !ok && rest != "" {
				// Two of the three forms of an HTTP-date have a comma of their own.
				next, after, _ := strings.Cut(rest, ",")
				if t, ok = wait(line[:len(item)+1+len(next)], base); ok {
					rest = after
				}
			}
			line = rest
			if local := t.local(now, base); ok && local.After(at) {
				at = local
			}
		}
	}
	return at
}

// local brings what was told onto the local clock, within [now, now+maxWait].
func (t told) local(now, base time.Time) time.Time {
	d := t.delta
	if !t.at.IsZero() {
		d = t.at.Sub(base)
	}
	return now.Add(min(max(d, 0), maxWait))
}

// age reads Age (RFC 9111, 5.1): how long the answer lay in a cache.
func age(h http.Header) (time.Duration, bool) {
	v := h["Age"]
	if len(v) == 0 {
		return 0, false
	}
	n, ok := number(strings.TrimSpace(v[0]))
	if !ok || n <= 0 {
		return 0, false
	}
	return seconds(n), true
}

// verdict decides whether the answer is a refusal by a limit, and until when.
func (fb *Feedback) verdict(status int, now, asked time.Time) {
	spent, known := false, false // some reported limit is spent; some remaining is stated
	var whole time.Time          // the latest reset among limits that are spent or silent about what remains
	for i := range fb.Readings {
		r := &fb.Readings[i]
		if r.Has&HasRemaining != 0 {
			known = true
			if r.Remaining > 0 {
				continue
			}
			spent = true
		}
		if r.Reset.After(whole) {
			whole = r.Reset
		}
	}
	switch status {
	case http.StatusTooManyRequests:
		fb.Limited, fb.Kind = true, KindPrimary
		if known && !spent {
			fb.Kind = KindSecondary
		}
	case http.StatusForbidden:
		// A 403 is a refusal by a limit only with evidence; most are about
		// rights. A Retry-After of 0 is none: some servers send it with every answer.
		switch {
		case spent:
			fb.Limited, fb.Kind = true, KindPrimary
		case asked.After(now):
			fb.Limited, fb.Kind = true, KindSecondary
		}
	case http.StatusServiceUnavailable, 529:
		fb.Kind = KindOverload
	}
	if status < 400 {
		return
	}
	fb.RetryAt = asked
	if fb.Limited && fb.Kind == KindPrimary && !asked.After(now) && whole.After(now) {
		fb.RetryAt = whole
	}
}
