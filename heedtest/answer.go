package heedtest

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/heedhttp/heed/internal/memnet"
)

// bufferedAnswer is how much of a body is held back before its header goes
// out, so that a short answer has a Content-Length: the same as net/http's.
const bufferedAnswer = 2048

var errGone = errors.New("heedtest: the client is gone")

// answer is the http.ResponseWriter of RoundTrip. The handler writes into it
// from its own goroutine, as on a server; the response goes out when it
// flushes, when the body grows past bufferedAnswer, or when it returns.
type answer struct {
	head    http.Header // the handler's
	noBody  bool        // HEAD
	interim func(int, textproto.MIMEHeader) error
	stream  *memnet.Stream

	status   int
	sent     http.Header // head as it was when the status was chosen
	declared int64       // Content-Length that the handler set; -1: none
	wrote    int64
	isOut    bool

	out     chan struct{} // closed when what is below is ready
	length  int64
	trailer http.Header // names known before the body
	err     error       // instead of a response
}

func newAnswer(r *http.Request) *answer {
	a := &answer{
		head: make(http.Header), noBody: r.Method == http.MethodHead,
		stream: memnet.NewStream(0), out: make(chan struct{}), declared: -1,
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		a.interim = trace.Got1xxResponse
	}
	return a
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.head }

// WriteHeader implements http.ResponseWriter. As with net/http, only the first
// final status counts.
func (a *answer) WriteHeader(status int) {
	switch {
	case a.status != 0:
		return
	case status < 100 || status > 999:
		panic("heedtest: invalid WriteHeader code " + strconv.Itoa(status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		if a.interim != nil {
			_ = a.interim(status, textproto.MIMEHeader(a.head.Clone())) // its error would abort a transport, which has no part here
		}
		return
	}
	a.status, a.sent = status, a.head.Clone()
	for name := range a.sent {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(a.sent, name)
		}
	}
	if n, err := strconv.ParseInt(a.sent.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		a.declared = n
	} else {
		delete(a.sent, "Content-Length")
	}
}

func (a *answer) bodyAllowed() bool {
	return a.status >= 200 && a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

// Write implements io.Writer. It blocks while the client does not read and
// 64 KiB are under way.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case !a.bodyAllowed():
		return 0, http.ErrBodyNotAllowed
	case a.declared >= 0 && a.wrote+int64(len(p)) > a.declared:
		return 0, http.ErrContentLength
	}
	if _, set := a.sent["Content-Type"]; !set && !a.isOut && a.wrote == 0 && len(p) > 0 && a.sent.Get("Content-Encoding") == "" {
		a.sent.Set("Content-Type", http.DetectContentType(p))
	}
	a.wrote += int64(len(p))
	if !a.isOut && a.wrote > bufferedAnswer {
		a.send(-1)
	}
	if a.noBody {
		return len(p), nil
	}
	return a.stream.Write(p)
}

// WriteString implements io.StringWriter.
func (a *answer) WriteString(s string) (int, error) { return a.Write([]byte(s)) }

// Flush implements http.Flusher.
func (a *answer) Flush() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.isOut {
		a.send(-1)
	}
}

// FlushError is what http.ResponseController prefers to Flush.
func (a *answer) FlushError() error { a.Flush(); return nil }

// send lets the response go. length is that of a body that is already whole.
func (a *answer) send(length int64) {
	a.isOut = true
	maps.DeleteFunc(a.sent, func(_ string, values []string) bool { return len(values) == 0 })
	if !a.noBody {
		a.announce()
	}
	switch {
	case !a.bodyAllowed():
		length = 0
		delete(a.sent, "Content-Length")
	case a.declared >= 0:
		length = a.declared
	case len(a.sent["Trailer"]) > 0 || a.trailer != nil || a.noBody && a.wrote == 0: // chunked, or not known
		length = -1
	case length >= 0:
		a.sent.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	if a.noBody && a.sent.Get("Content-Length") == "" {
		length = -1
	}
	a.length = length
	close(a.out)
}

// announce moves the names of the trailers to where a client finds them.
func (a *answer) announce() {
	for _, names := range a.sent["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			if a.trailer == nil {
				a.trailer = make(http.Header)
			}
			a.trailer[http.CanonicalHeaderKey(strings.TrimSpace(name))] = nil
		}
	}
	delete(a.sent, "Trailer")
}

// finish ends the answer after the handler has returned.
func (a *answer) finish() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.isOut {
		a.send(a.wrote)
	}
	if a.declared > a.wrote && !a.noBody && a.bodyAllowed() {
		a.stream.CloseWrite(io.ErrUnexpectedEOF)
		return
	}
	a.stream.CloseWrite(io.EOF)
}

// cut ends the answer as a lost connection does, with err if the response was
// not out yet.
func (a *answer) cut(err error) {
	if a.isOut {
		a.stream.CloseWrite(io.ErrUnexpectedEOF)
		return
	}
	a.isOut, a.err = true, err
	close(a.out)
}

// trailers are what the handler has set of the names that it announced, and
// under http.TrailerPrefix; nil when there are none. It is for after the end.
func (a *answer) trailers() http.Header {
	all := a.trailer
	for name := range all {
		all[name] = a.head[name]
	}
	for name, values := range a.head {
		if rest, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			if all == nil {
				all = make(http.Header)
			}
			all[http.CanonicalHeaderKey(rest)] = values
		}
	}
	return all
}
