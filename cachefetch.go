package heed

import (
	"errors"
	"net/http"
	"time"
)

// fetch asks the server, with the entry's validators where it has some, and
// keeps what may be kept of the answer.
func (l *cacheLayer) fetch(c *call, q *lookup) (*http.Response, error) {
	if q.conditional { // forwarded as it is
		c.info.Cache = cacheBypass
	}
	req := q.sent
	if e := q.entry; e != nil && !q.conditional {
		req = e.validating(c, req)
	}
	q.since = l.cache.epoch()
	resp, err := l.next.roundTrip(c, req)
	if err == nil && req != q.sent {
		if resp.StatusCode == http.StatusNotModified {
			if h, _ := canonicalHeader(resp.Header); q.entry.confirmedBy(h) {
				return l.revalidated(c, q, resp, h), nil
			}
			// It speaks of an answer that is not here (RFC 9111, 4.3.4). The caller needs one.
			discard(resp)
			l.cache.drop(q.entry)
			q.entry, q.since = nil, l.cache.epoch()
			resp, err = l.next.roundTrip(c, q.sent)
		}
		if err == nil {
			resp.Request = q.sent.WithContext(c) // without our condition
		}
	}
	if age, ok := l.excused(c, q, resp, err); ok {
		discard(resp)
		return l.hit(c, q, age), nil
	}
	if err != nil {
		return nil, err
	}
	l.keep(c, q, resp)
	return resp, nil
}

// validating gives req with the entry's validators as conditions (RFC 9111,
// 4.3.1): req itself when there are none.
func (e *entry) validating(c *call, req *http.Request) *http.Request {
	tag, modified := e.etag(), e.lastModified()
	if tag == "" && modified == "" {
		return req
	}
	r := req.WithContext(c)
	if r.Header = req.Header.Clone(); r.Header == nil {
		r.Header = make(http.Header, 2)
	}
	if tag != "" {
		r.Header["If-None-Match"] = []string{tag}
	}
	if modified != "" {
		r.Header["If-Modified-Since"] = []string{modified}
	}
	return r
}

// excused says that the stale entry stands in for a failure of the server, and
// how old it is. It never does for a caller that went away, or for a refusal of
// ours to send.
func (l *cacheLayer) excused(c *call, q *lookup, resp *http.Response, err error) (time.Duration, bool) {
	switch {
	case q.entry == nil || c.over() != nil:
		return 0, false
	case err != nil && (errors.Is(err, ErrLimited) || errors.Is(err, errScheme)):
		return 0, false
	case err == nil && !excusable(resp.StatusCode):
		return 0, false
	}
	age := q.entry.age(l.cache.line.now())
	return age, q.entry.policy.usableAfterError(&q.want, age)
}

// receipt is when the answer at hand was asked for and came. What a call waited
// before it was sent is not part of the answer's age.
func (q *lookup) receipt(c *call, now instant) receipt {
	delay := time.Duration(now.mono - q.began.mono)
	if c.sent != (instant{}) {
		delay = min(delay, max(0, time.Duration(now.wall-c.sent.wall)))
	}
	return receipt{at: now.time(), delay: delay}
}

// revalidated answers from the entry that a 304 confirmed, with the news that
// came with it (RFC 9111, 4.3.4). Cookies are for this caller alone.
func (l *cacheLayer) revalidated(c *call, q *lookup, resp *http.Response, h http.Header) *http.Response {
	fresh := l.refresh(c, q, h)
	discard(resp)
	c.info.Cache = cacheRevalidated
	answer := fresh.response(q.sent.WithContext(c), fresh.policy.initial, q.head)
	if len(h["Age"]) == 0 {
		delete(answer.Header, "Age") // the server spoke just now (5.1)
	}
	if cookies := h["Set-Cookie"]; len(cookies) > 0 {
		answer.Header["Set-Cookie"] = cookies
	}
	return answer
}

// refresh replaces the entry by one with the given fields in it, and gives that one.
func (l *cacheLayer) refresh(c *call, q *lookup, h http.Header) *entry {
	now := l.cache.line.now()
	fresh, d := q.entry.freshened(h, q.receipt(c, now), now)
	names, ok := parseVary(fresh.header["Vary"])
	if !ok || !storable(fresh.status, fresh.header, &d, &fresh.policy) {
		l.cache.drop(q.entry)
		return fresh
	}
	l.index(fresh, names, q)
	if l.cache.put(fresh, q.since) && fresh.id != q.entry.id {
		l.cache.drop(q.entry)
	}
	return fresh
}

// index says what the entry is found by: how its request was where the answer
// varies, or where the newest of its siblings does.
func (l *cacheLayer) index(e *entry, names []string, q *lookup) {
	if len(names) == 0 {
		names = newestVary(q.found)
	}
	e.vary, e.id.variant = names, l.cache.keys.variant(names, q.read.Header)
}

// keep stores the answer, at once or as its body is read, if it may be stored.
func (l *cacheLayer) keep(c *call, q *lookup, resp *http.Response) {
	h, _ := canonicalHeader(resp.Header)
	if q.head && q.entry != nil && !q.entry.id.head && resp.StatusCode == http.StatusOK && q.entry.describedBy(resp) {
		l.refresh(c, q, h) // RFC 9111, 4.3.5
		c.info.Cache = cacheStored
		return
	}
	if resp.StatusCode == http.StatusNotModified || failing(resp.StatusCode) && q.entry != nil {
		return // what is stored is as good as it was
	}
	now := l.cache.line.now()
	d := parseDirectives(h["Cache-Control"])
	p := policyOf(resp.StatusCode, h, &d, q.receipt(c, now))
	if failing(resp.StatusCode) {
		var fb Feedback // of the header alone: the body is the caller's
		a := answerOf(resp, now.time())
		lain, _ := age(resp.Header)
		fb.parse(&a, lain, nil)
		if again := fb.RetryAt; !again.IsZero() {
			p.lifetime = min(p.lifetime, again.Sub(now.time())) // then the server wants to be asked
		}
	}
	names, ok := parseVary(h["Vary"])
	if ok && storable(resp.StatusCode, h, &d, &p) && resp.Trailer == nil && !endless(h) {
		e := newEntry(entryID{key: q.key, head: q.head}, resp, h, p, now)
		l.index(e, names, q)
		if l.cache.take(resp, e, q.since) {
			c.info.Cache = cacheStored
			return
		}
	}
	if q.entry != nil {
		l.cache.drop(q.entry) // the server has another answer now
	}
}

// endless says that the answer is a stream of events.
func endless(h http.Header) bool {
	for _, line := range h["Content-Type"] {
		if streams(line) {
			return true
		}
	}
	return false
}

// take stores an answer without a body, and has one with a body fill the entry
// as it is read. false: it cannot be stored.
func (c *Cache) take(resp *http.Response, e *entry, since uint64) bool {
	if e.id.head {
		return c.put(e, since)
	}
	limit := c.maxEntry() - e.headSize()
	length := resp.ContentLength
	if resp.Body == http.NoBody {
		return length <= 0 && c.put(e, since)
	}
	if length == 0 {
		length = -1 // of a base that does not say
	}
	if length > limit || limit <= 0 {
		return false
	}
	resp.Body = &fill{below: resp.Body, store: c, resp: resp, entry: e, since: since, limit: limit, length: length}
	return true
}
