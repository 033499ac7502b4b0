package heed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
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
	var noTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &dns):
		return dns.IsNotFound
	case errors.As(err, &host), errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &verify),
		errors.As(err, &noTLS):
		return true
	case errors.Is(err, context.Canceled), errors.Is(err, http.ErrSkipAltProtocol), errors.Is(err, http.ErrSchemeMismatch),
		errors.Is(err, errScheme), errors.Is(err, ErrLimited):
		return true
	}
	return false
}

// misfit says that err comes from the request itself, for which net/http has
// no types: a method or a field that the protocol does not allow, or a scheme that Base does not speak.
func misfit(req *http.Request, err error) bool {
	if req.Method != "" && !isToken(req.Method) {
		return true
	}
	for _, h := range [...]http.Header{req.Header, req.Trailer} {
		for name, values := range h {
			if !isToken(name) || slices.ContainsFunc(values, controls) {
				return true
			}
		}
	}
	if req.URL.Scheme == "http" || req.URL.Scheme == "https" {
		return false
	}
	var network net.Error
	return !errors.As(err, &network) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// isToken is the syntax of methods and field names (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// controls says that a field value holds what it must not (RFC 9110, 5.5).
func controls(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

// errScheme is a URL that no transport can send.
var errScheme = errors.New("the URL has no host, or a scheme that is neither http nor https; give a full URL")

// unsent says that err proves that no byte of the request reached the server.
func unsent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	if errors.As(err, &op) {
		switch op.Op {
		case "dial", "proxyconnect", "socks connect":
			return true
		}
	}
	return errors.As(err, &dns) || errors.Is(err, errScheme)
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
	if resp.ContentLength == 0 || resp.ContentLength > drainBytes {
		resp.Body.Close()
		return
	}
	// In a goroutine of its own, since a Read may ignore a Close, and a Close may wait for a Read.
	end := sync.OnceFunc(func() { resp.Body.Close() })
	late := make(chan struct{})
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer end()
		defer func() { _ = recover() }() // nobody wants the answer, so nobody dies of it
		drain(resp.Body, late)
	}()
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		close(late)
		go end()
	}
}

// drain reads until the end or a bound; once it is late no further Read is begun.
func drain(body io.Reader, late <-chan struct{}) {
	var buf [4 << 10]byte
	for left := drainBytes; left > 0; {
		select {
		case <-late:
			return
		default:
		}
		n, err := body.Read(buf[:min(left, len(buf))])
		if err != nil {
			return
		}
		left -= max(n, 1)
	}
}

// closeBody closes a body that will not be sent.
func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}
