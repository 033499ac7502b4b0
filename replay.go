package heed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// idempotent says that sending req twice is the same as sending it once: by its
// method (RFC 9110, 9.2.2, and QUERY), or because it carries a key that lets the
// server tell. A key with no value marks the request without sending anything,
// as in net/http.
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete, "QUERY":
		return true
	}
	for _, key := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if _, ok := req.Header[key]; ok {
			return true
		}
	}
	return false
}

// permanent says that err will be the same next time, by its type alone.
func permanent(err error) bool {
	var dns *net.DNSError
	var host x509.HostnameError
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return dns.IsNotFound
	case errors.As(err, &host), errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &verify):
		return true
	case errors.Is(err, context.Canceled), errors.Is(err, http.ErrSkipAltProtocol), errors.Is(err, errScheme):
		return true
	}
	return false
}

// errScheme is a URL that no transport can send.
var errScheme = errors.New("the URL has no host, or a scheme that is neither http nor https; give a full URL")

// unsent says that err proves that no byte of the request reached the server.
func unsent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" || errors.Is(err, errScheme)
}

// Bounds of reading an answer that is thrown away, so that its connection can be used again.
const (
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
)

// discard reads a little of an unwanted answer and closes it. Beyond the bounds the connection is given up instead.
func discard(resp *http.Response) {
	if resp == nil || resp.Body == nil {
		return
	}
	var once sync.Once
	end := func() { once.Do(func() { resp.Body.Close() }) }
	if resp.ContentLength == 0 || resp.ContentLength > drainBytes {
		end()
		return
	}
	timer := time.AfterFunc(drainTime, end)
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)
	timer.Stop()
	end()
}

// closeBody closes a body that will not be sent.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
