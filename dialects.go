package heed

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Answer is one answer as a [Dialect] sees it. It must not be changed or kept.
type Answer struct {
	// Method and URL are of the request; empty and nil when they are not known.
	Method string
	URL    *url.URL
	// Status is the status code.
	Status int
	// Header is the answer's header, names in canonical form.
	Header http.Header
	// Body is the beginning of the body, at most 64 KiB, decompressed. It is
	// empty when the body was not looked at; what does not come within a second is missing.
	Body []byte
	// Now is the instant of reading, on the local clock.
	Now time.Time
}

// Dialect is how one family of servers writes its limits, where that cannot be
// read from names and values alone. Those of [Transport].Dialects are tried in
// order, before the built-in ones.
type Dialect struct {
	// Name is for error messages and the like.
	Name string
	// Match says whose answers it reads: "host/path", where a path that ends in
	// a slash stands for all below it, "host" for all of a host, "/path" for
	// that path of any host; the host may begin with "*." for all below a domain.
	// A method and a space may come first. Empty: all answers.
	Match string
	// Body asks that the bodies of successful answers (2xx) that Match claims
	// are looked at, too. Answers of 400 and above always are.
	Body bool
	// Read changes fb, which holds what was read from the header, to what the
	// answer means. True: nothing more is read. False: the answer is not one of
	// its own, and it has left fb alone. It is called on every matching
	// answer, outside all locks, must not block, and must be safe for concurrent
	// use. A RetryAt beyond ten years or before Now, or a negative Remaining, is put right.
	Read func(a Answer, fb *Feedback) bool
}

// pattern is a Match in its parts.
type pattern struct{ method, host, path string }

func patternOf(match string) (p pattern) {
	if method, rest, ok := strings.Cut(match, " "); ok {
		p.method, match = method, strings.TrimLeft(rest, " ")
	}
	p.host, p.path = match, ""
	if i := strings.IndexByte(match, '/'); i >= 0 {
		p.host, p.path = match[:i], match[i:]
	}
	return p
}

// claims says whether the dialect reads the answer.
func (d *Dialect) claims(a *Answer) bool {
	return d.Match == "" || patternOf(d.Match).claims(a.Method, a.URL)
}

// claims says whether a request falls under the pattern.
func (p pattern) claims(method string, u *url.URL) bool {
	if u == nil {
		return false
	}
	if p.method != "" && p.method != method {
		return false
	}
	host := u.Host
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.ContainsRune(p.host, ':') {
		host = host[:i]
	}
	switch {
	case p.host == "":
	case strings.HasPrefix(p.host, "*."):
		if n := len(host) - len(p.host) + 1; n <= 0 || !strings.EqualFold(host[n:], p.host[1:]) {
			return false
		}
	case !strings.EqualFold(host, p.host):
		return false
	}
	if p.path == "" || p.path == "/" {
		return true
	}
	path := u.Path
	if strings.HasSuffix(p.path, "/") {
		return strings.HasPrefix(path, p.path) || path == p.path[:len(p.path)-1]
	}
	return path == p.path
}

// looksOf are the patterns of all dialects, the user's and the built-in ones, that ask for the bodies of successful answers.
func looksOf(mine []Dialect) (looks []pattern) {
	for i := range mine {
		if mine[i].Body {
			looks = append(looks, patternOf(mine[i].Match))
		}
	}
	for i := range dialects {
		for match := range strings.FieldsSeq(dialects[i].match) {
			looks = append(looks, patternOf(match))
		}
	}
	return looks
}

// validateDialects reports every mistake.
func validateDialects(mine []Dialect) (mistakes []error) {
	for i, d := range mine {
		if d.Read == nil {
			mistakes = append(mistakes, fmt.Errorf("heed: Dialects[%d] %q has no Read; give the function that reads an answer", i, d.Name))
		}
		p := patternOf(d.Match)
		if strings.ContainsAny(d.Match, "{}") || strings.Contains(strings.TrimPrefix(p.host, "*."), "*") || p.host == "" && p.path == "" && d.Match != "" {
			mistakes = append(mistakes, fmt.Errorf("heed: Dialects[%d] %q: Match %q is no pattern; write \"host/path\", \"*.domain/\" or \"/path\"", i, d.Name, d.Match))
		}
	}
	return mistakes
}

// answerOf is the answer without its body.
func answerOf(resp *http.Response, now time.Time) Answer {
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Now: now}
	if resp.Request != nil {
		a.Method, a.URL = resp.Request.Method, resp.Request.URL
	}
	return a
}

var timeZero = time.Unix(0, 0)

// rectify puts right what a dialect of a user's has made of a Feedback.
func rectify(fb *Feedback, now time.Time) {
	clamp := func(at time.Time) time.Time {
		if at.IsZero() {
			return at
		}
		return now.Add(min(max(at.Sub(now), 0), maxWait))
	}
	fb.RetryAt = clamp(fb.RetryAt)
	for i := range fb.Readings {
		r := &fb.Readings[i]
		r.Reset = clamp(r.Reset)
		if !(r.Remaining >= 0) {
			r.Remaining = 0
		}
		if !(r.Limit.Quota >= 0) {
			r.Limit.Quota, r.Has = 0, r.Has&^HasQuota
		}
	}
}

// readDialects reads the body, if there is one, and goes through the table.
func readDialects(a *Answer, ev *evidence, fb *Feedback, said bool) {
	var f facts
	if len(a.Body) > 0 {
		f = readFacts(a.Body)
		f.evidence(ev, fb)
	}
	for i := range dialects {
		d := &dialects[i]
		if d.applies(a, &f, ev) {
			d.apply(a, &f, ev, fb)
		}
	}
	f.hints(ev)
	if ev.hasBody || ev.refused || ev.kind != KindNone || ev.scope != "" || len(a.Body) > 0 || a.Status >= 400 {
		f.guess(ev, fb)
		ev.verdict(fb, said || len(a.Body) > 0)
	}
}

// evidence takes the waits, codes and quoted fields of a body.
func (f *facts) evidence(ev *evidence, fb *Feedback) {
	if f.inner != nil {
		var fields []field
		for name, lines := range f.inner {
			if hinted(name) {
				fields = insert(fields, field{name, lines})
			}
		}
		if len(fields) > 0 {
			readFields(fields, ev, fb)
		}
	}
	ev.weigh(f)
}

// hints takes the wait that the body of a refusal names.
func (f *facts) hints(ev *evidence) {
	if ev.hasBody || ev.status < 400 && !ev.refused {
		return
	}
	if f.waits {
		ev.body, ev.hasBody = f.wait, true
	} else if t, ok := proseWait(f.text, ev.base); ok {
		ev.body, ev.hasBody, ev.prose = t, true, true
	}
}

// guess takes a rate that a sentence names, when the answer reports no limit otherwise.
func (f *facts) guess(ev *evidence, fb *Feedback) {
	if len(fb.Readings) > 0 || !ev.refused && !ev.refusing() {
		return
	}
	if quota, window, ok := proseRate(f.text); ok {
		fb.Readings = append(fb.Readings, Reading{Limit: Limit{Quota: quota, Window: window}, Has: HasQuota | HasRemaining, From: "body", momentary: true})
	}
}
