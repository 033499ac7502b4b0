package heed

import (
	"net/http"
	"strings"
)

// path is the way of a request through the cache.
type path uint8

const (
	pathCache  path = iota // GET or HEAD that an entry may answer
	pathBypass             // straight through
	pathWrite              // straight through, and what it changed is forgotten
)

// ask is what a request asks of the cache.
type ask struct {
	path        path
	head        bool
	conditional bool // the caller validates what it has itself
	want        directives
}

// asks reads a request. Its field names are canonical.
func asks(req *http.Request) (a ask) {
	switch req.Method {
	case "", http.MethodGet:
	case http.MethodHead:
		a.head = true
	case http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY":
		a.path = pathBypass
		return a
	default: // a method not known to be safe is unsafe (RFC 9111, 4.4)
		a.path = pathWrite
		return a
	}
	if lines := req.Header["Cache-Control"]; len(lines) > 0 {
		a.want = parseDirectives(lines)
	} else if pragma := req.Header["Pragma"]; len(pragma) > 0 {
		a.want.noCache = parseDirectives(pragma).noCache // RFC 9111, 5.4
	}
	a.conditional = len(req.Header["If-None-Match"]) > 0 || len(req.Header["If-Modified-Since"]) > 0
	if passesBy(req) || a.want.noStore {
		a.path = pathBypass
	}
	return a
}

// passesBy says that no entry can answer a GET or HEAD: it wants a part, a
// stream or another protocol, has a condition that only the server can judge
// (RFC 9111, 4.3.2), or a body of no defined meaning.
func passesBy(req *http.Request) bool {
	if req.Body != nil && req.Body != http.NoBody {
		return true
	}
	h := req.Header
	for _, name := range [...]string{"Upgrade", "Range", "If-Range", "If-Match", "If-Unmodified-Since"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	for _, line := range h["Accept"] {
		if streams(line) {
			return true
		}
	}
	return false
}

// streams says that a media type, or one of a list, is that of an endless stream.
func streams(types string) bool {
	const stream = "text/event-stream"
	for i := 0; i+len(stream) <= len(types); i++ {
		if (types[i] == 't' || types[i] == 'T') && strings.EqualFold(types[i:i+len(stream)], stream) {
			return true
		}
	}
	return false
}

// unchanged evaluates the caller's own conditions against a stored answer
// (RFC 9111, 4.3.2; RFC 9110, 13.1): true says that a 304 tells it all.
func unchanged(req *http.Request, e *entry) bool {
	if e.status < 200 || e.status > 299 {
		return false
	}
	if lines := req.Header["If-None-Match"]; len(lines) > 0 {
		return matchesAny(lines, e.etag())
	}
	lines := req.Header["If-Modified-Since"]
	if len(lines) != 1 {
		return false
	}
	since, ok := cacheDate(lines[0], e.policy.date)
	if !ok {
		return false
	}
	modified, ok := dateOf(e.header, "Last-Modified", e.policy.date)
	if !ok {
		modified = e.policy.date
	}
	return !modified.After(since)
}

// matchesAny says that a list of entity tags has tag among it, by weak
// comparison (RFC 9110, 8.8.3.2 and 13.1.2), or is "*".
func matchesAny(lines []string, tag string) bool {
	for _, line := range lines {
		for line = strings.Trim(line, " \t,"); line != ""; line = strings.TrimLeft(line, " \t,") {
			if line[0] == '*' {
				return true
			}
			rest := strings.TrimPrefix(line, "W/")
			if rest[:min(1, len(rest))] != `"` {
				return false
			}
			end := strings.IndexByte(rest[1:], '"')
			if end < 0 {
				return false
			}
			if opaque(tag) == rest[:end+2] {
				return true
			}
			line = rest[end+2:]
		}
	}
	return false
}

// opaque is an entity tag without its mark of weakness.
func opaque(tag string) string { return strings.TrimPrefix(tag, "W/") }
