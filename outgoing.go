package heed

import (
	"net/http"
	"net/url"
)

// outgoing is the request of one send, with its own URL and header values, for
// a Base that might write to them: were they the caller's, the next attempt
// would differ, or be counted in another scope. It is one piece of memory,
// since nearly every send needs one.
type outgoing struct {
	request http.Request
	url     url.URL
	values  [4]string
}

// outgo copies req for a send on behalf of c.
func outgo(c *call, req *http.Request) *http.Request {
	o := &outgoing{request: *req.WithContext(c), url: *req.URL}
	o.request.URL = &o.url
	o.request.Header = deepHeader(req.Header, o.values[:])
	return &o.request
}

// deepHeader is Header.Clone in one pass: values go to room while there is any. The result is never nil.
func deepHeader(h http.Header, room []string) http.Header {
	if len(h) == 0 {
		return make(http.Header)
	}
	deep := make(http.Header, len(h))
	for name, values := range h {
		if values == nil { // it keeps net/http from adding a default
			deep[name] = nil
			continue
		}
		if len(values) > len(room) {
			room = make([]string, len(values)+len(h))
		}
		n := copy(room, values)
		deep[name] = room[:n:n]
		room = room[n:]
	}
	return deep
}
