package heed

import (
	"errors"
	"net/http"
	"time"
)

// learnLayer reads every raw answer, those that Retry swallows too, and leaves
// what it says in the call, for the throttle to book. It never changes an answer.
type learnLayer struct {
	base  http.RoundTripper
	watch *watch
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
		c.feedback.Readings = c.readings[:0]
		c.feedback.parse(resp.StatusCode, resp.Header, lain, c.received)
	}
	l.watch.answered(c, req, resp, nil)
	return resp, nil
}
