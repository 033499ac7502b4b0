package heedtest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

var _ http.RoundTripper = (*Server)(nil)

// RoundTrip implements http.RoundTripper without a network: the request
// travels for Latency and a jitter, is decided, answered, and the answer
// travels back. It keeps what a base transport promises: the request is not
// changed and its body is always closed (after as much of it was read as
// net/http's server reads); the end of the request's context ends every wait,
// with its error; the response is as one that was parsed from a connection,
// with Date on the server's clock, and its Request is the one that was given.
//
// A Handler runs in a goroutine of its own, which ends when the handler
// returns; its request's context ends when the client gives up or closes the
// body, and carries none of the client's values. The response returns when
// the handler has flushed, has written more than 2 KiB, or has returned. A
// panic cuts the connection: an error that is ErrCut and io.EOF before the
// header, io.ErrUnexpectedEOF in the body after it. A connection cannot be
// hijacked here; Network can do that.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) { return s.roundTrip(r, true) }

// Respond is RoundTrip without latency and jitter. The method value
// srv.Respond is a Responder for github.com/jarcoal/httpmock.
func (s *Server) Respond(r *http.Request) (*http.Response, error) { return s.roundTrip(r, false) }

func (s *Server) roundTrip(r *http.Request, far bool) (*http.Response, error) {
	ctx := r.Context()
	up := newUpload(r)
	if err := check(r); err != nil {
		up.shut()
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		up.shut()
		return nil, err
	}
	free := context.AfterFunc(ctx, up.shut)
	defer free()
	resp, v, err := s.attend(r, up, far)
	if err == nil && far {
		_, err = sleep(ctx, s.way())
	}
	if err == nil {
		v.delivery()
		return resp, nil
	}
	if resp != nil {
		_ = resp.Body.Close() // of memory; it cannot fail
	}
	up.shut()
	return nil, err
}

// attend is the way there, the decision and the answer.
func (s *Server) attend(r *http.Request, up *upload, far bool) (*http.Response, *visit, error) {
	in := inbound(r, up)
	v := s.departure(in, 0, "")
	way := time.Duration(0)
	if far {
		way = s.way()
	}
	if err := s.travel(r.Context(), v, way); err != nil {
		return nil, v, err
	}
	resp := &http.Response{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r}
	if v.event.Rejected || s.Handler == nil {
		err := up.finish()
		if !v.event.Rejected {
			v.leave(http.StatusOK)
		}
		if err != nil {
			return nil, v, cmp.Or(r.Context().Err(), err)
		}
		v.plain(resp)
		return resp, v, nil
	}
	a := newAnswer(r)
	v.head(a.head)
	server, end := context.WithCancel(context.Background())
	go v.serve(a, in.WithContext(server), up, end)
	select {
	case <-a.out:
	case <-r.Context().Done():
		end()
		a.stream.CloseRead(errGone)
		return nil, v, r.Context().Err()
	}
	if a.err != nil {
		return nil, v, cmp.Or(r.Context().Err(), a.err)
	}
	resp.StatusCode, resp.Header, resp.ContentLength, resp.Trailer = a.status, a.sent, a.length, a.trailer
	resp.Status = statusLine(a.status)
	if a.length < 0 && !a.noBody {
		resp.TransferEncoding = []string{"chunked"}
	}
	if a.noBody || !a.bodyAllowed() || a.length == 0 && a.trailer == nil {
		resp.Body = http.NoBody
		return resp, v, nil
	}
	b := &download{answer: a, up: up, resp: resp, ctx: r.Context(), end: end}
	b.free = context.AfterFunc(r.Context(), b.abandon)
	resp.Body = b
	return resp, v, nil
}

// plain is the answer that needs no handler: a refusal, or the default one.
func (v *visit) plain(resp *http.Response) {
	status, body := cmp.Or(v.notice.status, http.StatusOK), cmp.Or(v.notice.body, bodyAccepted)
	resp.StatusCode, resp.Status = status, statusLine(status)
	resp.Header = make(http.Header, len(v.notice.fields)+3)
	v.head(resp.Header)
	resp.Header.Set("Content-Type", "application/json")
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.ContentLength = int64(len(body))
	resp.Body = http.NoBody
	if resp.Request.Method != http.MethodHead {
		resp.Body = io.NopCloser(strings.NewReader(body))
	}
}

// serve runs the handler as a server does.
func (v *visit) serve(a *answer, in *http.Request, up *upload, end context.CancelFunc) {
	returned := false
	defer func() {
		cause := recover()
		end()
		if returned {
			return
		}
		if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			cause = nil
		} else if cause != nil {
			log.Printf("heedtest: panic serving %s: %v\n%s", v.event.Path, cause, debug.Stack())
		}
		up.shut()
		v.leave(0)
		a.cut(&cutError{cause})
	}()
	v.s.Handler.ServeHTTP(a, in)
	returned = true
	err := up.finish()
	v.leave(cmp.Or(a.status, http.StatusOK))
	if err != nil {
		a.cut(err)
		return
	}
	a.finish()
}

// check refuses what a real transport refuses.
func check(r *http.Request) error {
	switch {
	case r.URL == nil:
		return errors.New("heedtest: the request has no URL: set Request.URL")
	case r.Header == nil:
		return errors.New("heedtest: the request has no header map: set Request.Header, or use http.NewRequest")
	case r.URL.Host == "":
		return errors.New("heedtest: the request's URL has no host: a client needs an absolute URL")
	}
	return nil
}

// inbound is the request as a server sees it: the header is its own, and
// nothing of it leads back to the caller's request.
func inbound(r *http.Request, up *upload) *http.Request {
	in := &http.Request{
		Method: cmp.Or(r.Method, http.MethodGet),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        r.Header.Clone(),
		Body:          http.NoBody,
		Host:          cmp.Or(r.Host, r.URL.Host),
		RequestURI:    r.URL.RequestURI(),
		RemoteAddr:    "192.0.2.1:1234", // kept for documentation (RFC 5737)
		ContentLength: 0,
	}
	in.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}
	if in.URL.Path == "" {
		in.URL.Path = "/"
	}
	if !up.end {
		in.Body, in.ContentLength = up, up.declared
	}
	if _, set := in.Header["User-Agent"]; !set {
		in.Header.Set("User-Agent", "Go-http-client/1.1")
	}
	return in
}

func statusLine(status int) string {
	code := strconv.Itoa(status)
	return code + " " + cmp.Or(http.StatusText(status), "status code "+code)
}

// download is the body of a response while its handler may still write.
type download struct {
	answer *answer
	up     *upload
	resp   *http.Response
	ctx    context.Context
	end    context.CancelFunc // the handler's context
	free   func() bool        // of the client's context
}

// Read implements io.Reader; the trailers are there at io.EOF.
func (d *download) Read(p []byte) (int, error) {
	n, err := d.answer.stream.Read(p)
	switch err {
	case nil:
		return n, nil
	case io.EOF:
		d.free()
		d.resp.Trailer = d.answer.trailers()
	case io.ErrClosedPipe:
		err = cmp.Or(d.ctx.Err(), http.ErrBodyReadAfterClose)
	}
	return n, err
}

// Close implements io.Closer; a handler that still writes is told.
func (d *download) Close() error {
	d.free()
	d.abandon()
	return nil
}

func (d *download) abandon() {
	d.end()
	d.answer.stream.CloseRead(errGone)
	d.up.shut()
}
