package heed

import (
	"net/http"
	"net/url"
)

// outgoing is the request of one send. For a Base that might write to it, URL
// and header values are its own: were they the caller's, the next attempt would
// differ, or be counted in another scope.
type outgoing struct {
	request http.Request
	url     url.URL
	values  [4]string
}

// copy makes o the request for a send on behalf of c.
func (o *outgoing) copy(c *call, req *http.Request, deep bool) *http.Request {
	o.request = *req.WithContext(c)
	if deep {
		o.url = *req.URL
		o.request.URL = &o.url
		o.request.Header = deepHeader(req.Header, o.values[:])
	}
	if o.request.Header == nil {
		o.request.Header = make(http.Header)
	}
	return &o.request
}

// deepHeader is Header.Clone in one pass: values go to room while there is any.
func deepHeader(h http.Header, room []string) http.Header {
	if len(h) == 0 {
		return nil
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
