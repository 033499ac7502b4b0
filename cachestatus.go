package heed

import "net/http"

// understood says that the cache implements all that its specification says of
// caching a final answer with this status. 206 and 226 it does not, and a 304 is no answer of its own.
func understood(status int) bool {
	switch status {
	case http.StatusPartialContent, http.StatusIMUsed, http.StatusNotModified:
		return false
	}
	return status >= 200 && http.StatusText(status) != ""
}

// heuristic says that a freshness lifetime may be guessed for the status (RFC
// 9110, 15.1). Not for 501: a guess must not prolong a failure.
func heuristic(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414:
		return true
	}
	return false
}

// failing says that the status tells of the server's state, not of the
// resource: the stored answer is as good as before.
func failing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// excusable says that a stale answer may stand in for the status (RFC 5861, 4).
func excusable(status int) bool {
	switch status {
	case 500, 502, 503, 504:
		return true
	}
	return false
}

// storable says that an answer may be stored, and is worth it (RFC 9111, 3).
func storable(status int, h http.Header, d *directives, p *policy) bool {
	if !understood(status) || d.noStore && !d.mustUnderstand {
		return false
	}
	fresh := p.lifetime > p.initial
	if failing(status) {
		return fresh && !p.noCache // never a guess, see heuristic
	}
	if !p.explicit && !d.public && !d.private && !heuristic(status) {
		return false
	}
	if len(h["Etag"]) > 0 || len(h["Last-Modified"]) > 0 {
		return true
	}
	return !p.noCache && (fresh || p.staleIfError > 0)
}
