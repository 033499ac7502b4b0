package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/heedhttp/heed"
)

var (
	errTimeout   = errors.New("the time for this URL is over")
	errStalled   = errors.New("the server sent nothing for too long")
	errRedirects = errors.New("too many redirects")
)

// statusError is an answer that is not what was asked for.
type statusError struct {
	status int
	info   heed.Info
}

// Error says what the server answered, and what to do about it.
func (e *statusError) Error() string {
	s := fmt.Sprintf("HTTP %d", e.status)
	if text := http.StatusText(e.status); text != "" {
		s += " " + strings.ToLower(text)
	}
	if e.info.Attempts > 1 {
		s += fmt.Sprintf(" after %d tries", e.info.Attempts)
	}
	if flag := map[heed.Stop]string{heed.StopWait: "--max-wait", heed.StopDeadline: "--timeout"}[e.info.Stopped]; flag != "" {
		wait := "the wait before the next try is longer than " + flag
		if e.info.Asked > 0 {
			wait = "the server asks for a wait of " + showSpan(e.info.Asked)
		}
		return fmt.Sprintf("%s, and %s; raise %s, or run again later", s, wait, flag)
	}
	switch {
	case e.status == http.StatusNotFound || e.status == http.StatusGone:
		return s + "; check the address"
	case e.status == http.StatusUnauthorized || e.status == http.StatusForbidden:
		return s + "; the server wants a right that this request does not have"
	case e.status == http.StatusTooManyRequests:
		return s + "; run again later"
	case e.status >= 500:
		return s + "; the trouble is the server's, so run again later"
	case e.status < 400:
		return s + ", which has no body to fetch; check the address"
	default:
		return s + "; the server does not take this request"
	}
}

// truncated is a body that ended before its end.
type truncated struct {
	got int64
	err error
}

func (e *truncated) Error() string {
	return fmt.Sprintf("the body broke off after %s: %s; run again", showBytes(e.got), cause(e.err))
}

func (e *truncated) Unwrap() error { return e.err }

// limits are the flags that errors speak of.
type limits struct {
	timeout, maxWait, stall time.Duration
}

// explain says in one line why an item failed and what to do, without secrets.
// ended is why the item's context ended, nil when it did not.
func explain(err, ended error, l limits) string {
	var status *statusError
	var output *outputError
	var limited *heed.LimitError
	var cut *truncated
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &output):
		return output.Error()
	case errors.As(err, &limited):
		return tooLong(limited, l)
	case errors.Is(ended, errTimeout):
		s := fmt.Sprintf("not finished within --timeout %v", l.timeout)
		if waited := heed.InfoOfError(err).Waited(); waited >= 10*time.Millisecond {
			s += fmt.Sprintf(", %s of which it waited", showSpan(waited))
		}
		return s + "; raise --timeout"
	case errors.Is(ended, errStalled):
		return fmt.Sprintf("the server sent nothing for %v; run again", l.stall)
	case errors.Is(err, errRedirects):
		return "the server redirects without end; check the address"
	case errors.As(err, &cut):
		return cut.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("no such host %q; check the spelling", printable(dns.Name))
	case errors.As(err, &dns):
		return fmt.Sprintf("the name server gave no answer for %q; check the network and run again", printable(dns.Name))
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused; check that the server runs, and its port"
	case errors.As(err, &cert):
		return fmt.Sprintf("the server's certificate is not good: %s; check the address and this machine's clock", cause(cert.Err))
	case errors.As(err, &record):
		return "the server does not speak TLS; try http:// in place of https://"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection" + tries(err) + "; run again later"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "the server did not answer in time" + tries(err) + "; run again later"
	}
	return cause(err) + tries(err) + "; check the address, or run again later"
}

// tooLong speaks of a request that was not sent because of a wait.
func tooLong(e *heed.LimitError, l limits) string {
	flag := fmt.Sprintf("--max-wait %v", l.maxWait)
	if e.Timeout() {
		flag = fmt.Sprintf("--timeout %v", l.timeout)
	}
	name, _, _ := strings.Cut(flag, " ")
	var s string
	if left := time.Until(e.RetryAt); left > 0 {
		s = fmt.Sprintf("not sent: it would wait %s (%s), longer than %s; raise %s, or run again after %s",
			showSpan(left), e.Reason, flag, name, e.RetryAt.Local().Format(time.TimeOnly))
	} else {
		s = fmt.Sprintf("not sent: it would wait longer than %s (%s); raise %s, or run again later", flag, e.Reason, name)
	}
	return s
}

func tries(err error) string {
	if n := heed.InfoOfError(err).Attempts; n > 1 {
		return fmt.Sprintf(" (%d tries)", n)
	}
	return ""
}

// cause is the core of an error: without the URL, path or address that the
// layers above it put around, which the message has already or must not have.
func cause(err error) string {
	for {
		var at *url.Error
		var call *heed.CallError
		var path *fs.PathError
		var link *os.LinkError
		var op *net.OpError
		switch {
		case errors.As(err, &at):
			err = at.Err
		case errors.As(err, &call):
			err = call.Err
		case errors.As(err, &path):
			err = path.Err
		case errors.As(err, &link):
			err = link.Err
		case errors.As(err, &op) && op.Err != nil:
			err = op.Err
		default:
			return showError(err)
		}
	}
}
