package heed

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// entry is one stored answer. It never changes: validating it makes another
// that shares its body.
type entry struct {
	id   entryID
	vary []string // canonical names, sorted; those that its variant is about

	status        int
	statusLine    string // "200 OK"
	proto         string
	major, minor  int
	header        http.Header // neither connection fields nor cookies nor Age
	body          []byte
	contentLength int64 // of the Response: -1 when it was not known beforehand
	uncompressed  bool

	policy   policy
	received instant
	bytes    int64 // its size, once it is stored
}

// entryID tells entries apart.
type entryID struct {
	key     resourceKey
	variant digest // zero: the answer did not vary
	head    bool   // an answer to HEAD, which answers no GET
}

// newEntry makes the entry of an answer with the header h, without its body.
func newEntry(id entryID, resp *http.Response, h http.Header, p policy, received instant) *entry {
	e := &entry{
		id:     id,
		status: resp.StatusCode, statusLine: resp.Status, proto: resp.Proto, major: resp.ProtoMajor, minor: resp.ProtoMinor,
		header: make(http.Header, len(h)), contentLength: resp.ContentLength, uncompressed: resp.Uncompressed,
		policy: p, received: received,
	}
	update(e.header, h, nil)
	if len(e.header["Date"]) == 0 {
		e.setDate()
	}
	return e
}

// setDate records when an answer came that does not say when it was made (RFC 9110, 6.6.1).
func (e *entry) setDate() {
	e.header["Date"] = []string{e.policy.date.UTC().Format(http.TimeFormat)}
}

// update puts the fields of from that may be stored in place of those in h,
// apart from the exceptions (RFC 9111, 3.1 and 3.2).
func update(h, from http.Header, except func(name string) bool) {
	named := from["Connection"]
	for name, values := range from {
		if perConnection(name) || len(named) > 0 && namedBy(named, name) || except != nil && except(name) {
			continue
		}
		h[name] = slices.Clone(values)
	}
}

// perConnection says that a field is about one connection or one exchange, not about the answer.
func perConnection(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Authentication-Info",
		"Set-Cookie", "Set-Cookie2", "Age":
		return true
	}
	return false
}

// namedBy says that Connection lists the field (RFC 9110, 7.6.1).
func namedBy(connection []string, name string) bool {
	for _, line := range connection {
		for item := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(item, " \t"), name) {
				return true
			}
		}
	}
	return false
}

// describesBody says that a field is about the stored bytes themselves, which a
// 304 does not replace.
func describesBody(name string) bool {
	switch name {
	case "Content-Length", "Content-Encoding", "Content-Range", "Content-Md5", "Content-Digest":
		return true
	}
	return false
}

// freshened is the entry with the header that came with a 304, or with the
// answer to a HEAD, put into it (RFC 9111, 3.2, 4.3.4 and 4.3.5). ok is false
// when the answer may no longer be stored.
func (e *entry) freshened(from http.Header, r receipt, received instant) (f *entry, d directives) {
	copied := *e
	f = &copied
	f.header = e.header.Clone()
	delete(f.header, "Date") // not that of the answer before
	update(f.header, from, describesBody)
	d = parseDirectives(f.header["Cache-Control"])
	aged := f.header
	if lines := from["Age"]; len(lines) > 0 {
		aged = f.header.Clone()
		aged["Age"] = lines
	}
	f.policy, f.received = policyOf(f.status, aged, &d, r), received
	if len(f.header["Date"]) == 0 {
		f.setDate()
	}
	return f, d
}

func (e *entry) etag() string {
	if lines := e.header["Etag"]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

func (e *entry) lastModified() string {
	if lines := e.header["Last-Modified"]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// confirmedBy says that a 304 speaks of this entry (RFC 9111, 4.3.4): what
// validators it has are the entry's own. Entity tags are compared weakly, as
// If-None-Match was by the server: one that compression made weak on the way
// comes back strong in the 304 of common servers.
func (e *entry) confirmedBy(from http.Header) bool {
	if lines := from["Etag"]; len(lines) > 0 && lines[0] != "" {
		return opaque(lines[0]) == opaque(e.etag())
	}
	if lines := from["Last-Modified"]; len(lines) > 0 {
		return lines[0] == e.lastModified()
	}
	return true
}

// describedBy says that the answer to a HEAD is about the same content (RFC 9111, 4.3.5).
func (e *entry) describedBy(resp *http.Response) bool {
	if tag := resp.Header["Etag"]; len(tag) > 0 && tag[0] != e.etag() {
		return false
	}
	if at := resp.Header["Last-Modified"]; len(at) > 0 && at[0] != e.lastModified() {
		return false
	}
	return e.uncompressed || resp.ContentLength < 0 || resp.ContentLength == int64(len(e.body))
}

// age is the entry's current age.
func (e *entry) age(now instant) time.Duration { return e.policy.age(resident(e.received, now)) }

// size is how many bytes the entry takes, about.
func (e *entry) size() int64 { return e.headSize() + int64(cap(e.body)) }

// headSize is the part of size that is known before the body. The constants
// are what the allocator takes for an entry, its place in the lists, and a field.
func (e *entry) headSize() int64 {
	n := int64(1200 + len(e.statusLine))
	for name, values := range e.header {
		n += int64(80 + len(name))
		for _, v := range values {
			n += int64(24 + len(v))
		}
	}
	for _, name := range e.vary {
		n += int64(16 + len(name))
	}
	return n
}

// hit is an answer out of an entry, and its body, in one allocation.
type hit struct {
	http.Response
	body stored
}

// response makes an answer out of the entry for one caller.
func (e *entry) response(req *http.Request, age time.Duration, head bool) *http.Response {
	h := &hit{Response: http.Response{
		Status: e.statusLine, StatusCode: e.status, Proto: e.proto, ProtoMajor: e.major, ProtoMinor: e.minor,
		Header: e.header.Clone(), ContentLength: e.contentLength, Uncompressed: e.uncompressed, Request: req,
	}}
	h.Header["Age"] = []string{strconv.FormatInt(int64(age/time.Second), 10)}
	if head || e.id.head || len(e.body) == 0 {
		h.Body = http.NoBody
	} else {
		h.body.left = e.body
		h.Body = &h.body
	}
	return &h.Response
}

// notModified makes the 304 that tells a caller that what it has is current
// (RFC 9110, 15.4.5).
func (e *entry) notModified(req *http.Request, age time.Duration) *http.Response {
	h := make(http.Header, 8)
	for _, name := range [...]string{"Cache-Control", "Content-Location", "Date", "Etag", "Expires", "Last-Modified", "Vary"} {
		if lines, ok := e.header[name]; ok {
			h[name] = slices.Clone(lines)
		}
	}
	h["Age"] = []string{strconv.FormatInt(int64(age/time.Second), 10)}
	return bodiless(req, http.StatusNotModified, h)
}

// bodiless makes an answer of our own.
func bodiless(req *http.Request, status int, h http.Header) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: http.NoBody, Request: req,
	}
}
