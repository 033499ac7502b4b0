package heed

import (
	"errors"
	"net/http"
	"strings"
	"time"
)

// learnLayer reads every raw answer, those that Retry swallows too, and leaves
// what it says in the call, for the throttle to book. It never changes an answer.
type learnLayer struct {
	base     http.RoundTripper
	dialects []Dialect
	looks    []pattern // whose successful answers have their bodies looked at
	watch    *watch
}

func (l *learnLayer) name() string { return "Learn" }

var (
	errNothing = errors.New("heed: the Base transport returned neither a response nor an error; correct it")
)

func (l *learnLayer) roundTrip(c *call, req *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(req)
	c.received = time.Now()
	switch {
	case err != nil && resp != nil:
		// A faulty base. Exactly one of the two goes up.
		if resp.Body != nil {
			resp.Body.Close()
		}
		resp = nil
	case err == nil && resp == nil:
		err = errNothing
	}
	if err != nil {
		l.watch.answered(c, req, nil, err)
		return nil, err
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if lain, old := age(resp.Header); !old || resp.StatusCode == http.StatusTooManyRequests { // out of a cache it speaks of the past
		a := Answer{Method: req.Method, URL: req.URL, Status: resp.StatusCode, Header: resp.Header, Now: c.received}
		if l.looksAt(&a, req, resp) {
			a.Body = peek(resp, c.Done())
		}
		c.feedback.Readings = c.readings[:0]
		c.feedback.parse(&a, lain, l.dialects)
	}
	l.watch.answered(c, req, resp, nil)
	return resp, nil
}

// looksAt says whether the body of an answer is worth a look: at 2xx only
// where a dialect claims the request, at the statuses that may be refusals by a
// limit where the body may say more, and never at what is or may become a stream.
func (l *learnLayer) looksAt(a *Answer, req *http.Request, resp *http.Response) bool {
	switch {
	case resp.Body == http.NoBody || !readable(resp) || req.Method == http.MethodHead || req.Method == http.MethodConnect:
		return false
	case resp.StatusCode < 300:
		if !claimed(l.looks, req) {
			return false
		}
	case resp.StatusCode < 400:
		return false
	case !mayRefuse(resp.StatusCode) && !l.claims(a):
		return false
	}
	if len(req.Header["Upgrade"]) > 0 || len(resp.Header["Upgrade"]) > 0 {
		return false
	}
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		return true
	}
	kind = strings.ToLower(kind[:min(len(kind), maxName)])
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		return false
	case strings.Contains(kind, "json"), strings.Contains(kind, "xml"):
		return true
	case strings.HasPrefix(kind, "text/"):
		return resp.ContentLength <= peekBytes
	}
	return l.claims(a)
}

// claims says whether a dialect of the user's reads the answer.
func (l *learnLayer) claims(a *Answer) bool {
	for i := range l.dialects {
		if l.dialects[i].Match != "" && l.dialects[i].claims(a) {
			return true
		}
	}
	return false
}

// claimed says whether a request falls under any of the patterns.
func claimed(looks []pattern, req *http.Request) bool {
	for i := range looks {
		if looks[i].claims(req.Method, req.URL) {
			return true
		}
	}
	return false
}

// mayRefuse are the statuses with which servers refuse a call for its rate.
func mayRefuse(status int) bool {
	switch status {
	case 400, 402, 403, 418, 420, 429, 430, 500, 503, 509, 529, 598:
		return true
	}
	return false
}
