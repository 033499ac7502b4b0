package heed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var (
	errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	errNoHost  = &net.DNSError{Err: "no such host", Name: "api.test", IsNotFound: true}
	errNoDNS   = &net.DNSError{Err: "server misbehaving", Name: "api.test", IsTemporary: true}
)

func TestJudgeDecidesByMethodOutcomeAndCount(t *testing.T) {
	read := traits{idempotent: true, replayable: true}
	write := traits{replayable: true}
	for _, x := range []struct {
		name           string
		retry          Retry
		t              traits
		o              outcome
		counted, sends int
		want           Stop
	}{
		{"a read after 503", Retry{}, read, outcome{status: 503}, 1, 1, ""},
		{"a read after its seventh failure", Retry{}, read, outcome{status: 503}, 7, 7, StopAttempts},
		{"a read after its sixth failure and ten refusals", Retry{}, read, outcome{status: 503}, 6, 16, ""},
		{"a read after a hundred refusals", Retry{}, read, outcome{status: 429, limited: true}, 0, 100, ""},
		{"a set bound counts refusals", Retry{MaxAttempts: 3}, read, outcome{status: 429, limited: true}, 0, 3, StopAttempts},
		{"a set bound is not reached early", Retry{MaxAttempts: 3}, read, outcome{status: 429, limited: true}, 0, 2, ""},
		{"one attempt is one send", Retry{MaxAttempts: 1}, read, outcome{status: 503}, 1, 1, StopAttempts},
		{"a negative bound is off", Retry{MaxAttempts: -1}, read, outcome{status: 429, limited: true}, 0, 1, StopOff},
		{"a write after 503", Retry{}, write, outcome{status: 503}, 1, 1, StopMethod},
		{"a write after 503 that named a wait", Retry{}, write, outcome{status: 503, held: true, told: time.Second}, 1, 1, StopMethod},
		{"a write after a refusal", Retry{}, write, outcome{status: 429, limited: true}, 0, 1, ""},
		{"a write after a reset", Retry{}, write, outcome{err: errReset}, 1, 1, StopMethod},
		{"a write that was never sent", Retry{}, write, outcome{err: errRefused, unsent: true}, 1, 1, ""},
		{"a refused write whose body is gone", Retry{}, traits{}, outcome{status: 429, limited: true}, 0, 1, StopBody},
		{"a read whose body is gone", Retry{}, traits{idempotent: true}, outcome{status: 503}, 1, 1, StopBody},
		{"a malformed read", Retry{}, traits{idempotent: true, replayable: true, misfit: true}, outcome{err: io.EOF}, 1, 1, StopFinal},
		{"a status of one's own", Retry{Statuses: []int{404}}, read, outcome{status: 404}, 1, 1, ""},
		{"a list of one's own is the whole list", Retry{Statuses: []int{404}}, read, outcome{status: 503}, 1, 1, StopFinal},
		{"a refusal is retried whatever the list", Retry{Statuses: []int{404}}, read, outcome{status: 429, limited: true}, 0, 1, ""},
		{"a body that was too large", Retry{}, read, outcome{status: 413}, 1, 1, StopFinal},
		{"a body that is too large for now", Retry{}, read, outcome{status: 413, told: time.Second}, 1, 1, ""},
	} {
		if got := x.retry.judge(x.t, x.o, x.counted, x.sends); got != x.want {
			t.Errorf("%s: judge says %q, want %q", x.name, got, x.want)
		}
	}
}

func TestTheZeroTransportSendsSevenTimesWithPausesThatDoubleFromOneSecondToThirty(t *testing.T) {
	for _, x := range []struct {
		name   string
		random func() float64
		want   string
	}{
		{"least jitter", lowest, "0s 500ms 1.5s 3.5s 7.5s 15.5s 30.5s"},
		{"most jitter", highest, "0s 1s 3s 7s 15s 31s 1m1s"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := script(answer(503))
				resp, err := fetch(t, t.Context(), &Transport{Base: base, Rand: x.random})
				if err != nil {
					t.Fatal(err)
				}
				var at []string
				for _, d := range base.times() {
					at = append(at, d.Round(time.Millisecond).String())
				}
				if got := strings.Join(at, " "); got != x.want {
					t.Errorf("sent at %s, want %s", got, x.want)
				}
				if i := InfoOf(resp); i.Attempts != 7 || i.Stopped != StopAttempts || i.Status != 503 {
					t.Errorf("info %+v, want 7 sends stopped by their number", i)
				}
				if got := content(t, resp); got != "body of 503" {
					t.Errorf("the last answer reads %q", got)
				}
				if n := base.open(t); n != 0 {
					t.Errorf("%d bodies were left open", n)
				}
			})
		})
	}
}

func TestTheJitterOfAZeroTransportStaysInTheUpperHalfAndSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(map[time.Duration]bool)
		for range 20 {
			base := script(answer(503), answer(200))
			resp, err := fetch(t, t.Context(), &Transport{Base: base})
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			pause := base.times()[1]
			if pause < 500*time.Millisecond || pause > time.Second {
				t.Errorf("the first pause is %v, want within [500ms, 1s]", pause)
			}
			seen[pause] = true
		}
		if len(seen) < 15 {
			t.Errorf("20 calls made %d different pauses", len(seen))
		}
	})
}

func TestRefusalsDoNotCountAgainstTheDefaultButDoAgainstASetBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(append(repeated(12, answer(429, "Retry-After: 1")), answer(200))...)
		resp, err := fetch(t, t.Context(), &Transport{Base: base})
		if err != nil || resp.StatusCode != 200 || base.count() != 13 {
			t.Errorf("%v, %v after %d sends; want 200 after 13", resp, err, base.count())
		}
		base = script(answer(429, "Retry-After: 1"))
		tr := &Transport{Base: base, Retry: Retry{MaxAttempts: 5}}
		resp, err = fetch(t, t.Context(), tr)
		if err != nil || resp.StatusCode != 429 || base.count() != 5 || InfoOf(resp).Stopped != StopAttempts {
			t.Errorf("%v, %v after %d sends; want 429 after 5", resp, err, base.count())
		}
		if got := content(t, resp); got != "body of 429" {
			t.Errorf("the last answer reads %q", got)
		}
	})
}

func TestMaxAttemptsOfOneAndBelowZeroSendOnce(t *testing.T) {
	for _, most := range []int{1, -1} {
		synctest.Test(t, func(t *testing.T) {
			base := script(answer(503))
			resp, err := fetch(t, t.Context(), &Transport{Base: base, Retry: Retry{MaxAttempts: most}})
			if err != nil || base.count() != 1 || content(t, resp) != "body of 503" {
				t.Errorf("MaxAttempts %d: %d sends, error %v", most, base.count(), err)
			}
		})
	}
}

func TestEachStatusIsSentAgainOrNotByTheMethod(t *testing.T) {
	const all = 7
	for _, x := range []struct {
		name      string
		answer    reply
		get, post int // sends
	}{
		{"200", answer(200), 1, 1},
		{"202 that names a wait", answer(202, "Retry-After: 5"), 1, 1},
		{"301", answer(301, "Location: /x", "Retry-After: 5"), 1, 1},
		{"400", answer(400), 1, 1},
		{"401", answer(401), 1, 1},
		{"403", answer(403), 1, 1},
		{"404 that names a wait", answer(404, "Retry-After: 5"), 1, 1},
		{"408", answer(408), all, 1},
		{"409", answer(409), 1, 1},
		{"413", answer(413), 1, 1},
		{"413 that names a wait", answer(413, "Retry-After: 1"), all, 1},
		{"425", answer(425), all, 1},
		{"500", answer(500), all, 1},
		{"501", answer(501), 1, 1},
		{"502", answer(502), all, 1},
		{"503", answer(503), all, 1},
		{"503 that names a wait", answer(503, "Retry-After: 1"), all, 1},
		{"504", answer(504), all, 1},
		{"505", answer(505), 1, 1},
		{"509", answer(509), all, 1},
		{"529", answer(529), all, 1},
	} {
		for method, want := range map[string]int{"GET": x.get, "POST": x.post} {
			synctest.Test(t, func(t *testing.T) {
				base := script(x.answer)
				resp, err := roundTrip(t, &Transport{Base: base}, newRequest(t, t.Context(), method, ""))
				if err != nil || base.count() != want {
					t.Errorf("%s, %s: %d sends, want %d (error %v)", x.name, method, base.count(), want, err)
				}
				resp.Body.Close()
				if n := base.open(t); n != 0 {
					t.Errorf("%s, %s: %d bodies left open", x.name, method, n)
				}
			})
		}
	}
}

func TestEachFailureIsSentAgainOrNotByTheMethod(t *testing.T) {
	const all = 7
	for _, x := range []struct {
		name      string
		err       error
		get, post int // sends
	}{
		{"connection refused", errRefused, all, all},
		{"connection refused by the proxy", &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errRefused}, all, all},
		{"a name server that fails", errNoDNS, all, all},
		{"a name that does not exist", errNoHost, 1, 1},
		{"a name that does not exist, while dialling", &net.OpError{Op: "dial", Net: "tcp", Err: errNoHost}, 1, 1},
		{"connection reset", errReset, all, 1},
		{"the end of the stream", io.ErrUnexpectedEOF, all, 1},
		{"a timeout of the base's own", context.DeadlineExceeded, all, 1},
		{"a cancellation below, with a living caller", context.Canceled, 1, 1},
		{"another certificate", x509.HostnameError{Certificate: new(x509.Certificate), Host: "api.test"}, 1, 1},
		{"an unknown authority", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, 1, 1},
		{"HTTP where TLS was expected", http.ErrSchemeMismatch, 1, 1},
		{"a refusal of a heed below", &LimitError{Reason: ReasonQueue}, 1, 1},
		{"something unknown", errors.New("boom"), all, 1},
	} {
		for method, want := range map[string]int{"GET": x.get, "POST": x.post} {
			synctest.Test(t, func(t *testing.T) {
				base := script(breaks(fmt.Errorf("wrapped: %w", x.err)))
				resp, err := roundTrip(t, &Transport{Base: base}, newRequest(t, t.Context(), method, ""))
				if resp != nil || !errors.Is(err, x.err) {
					t.Fatalf("%s, %s: error %v does not hold the failure", x.name, method, err)
				}
				if base.count() != want {
					t.Errorf("%s, %s: %d sends, want %d", x.name, method, base.count(), want)
				}
				if i := InfoOfError(err); i.Attempts != want || i.Stopped == "" {
					t.Errorf("%s, %s: info %+v", x.name, method, i)
				}
			})
		}
	}
}

func TestARequestThatNoTransportSendsIsNotTriedTwice(t *testing.T) {
	for name, spoil := range map[string]func(*http.Request){
		"a scheme that the base does not speak": func(r *http.Request) { r.URL.Scheme = "gopher" },
		"a field name with a space":             func(r *http.Request) { r.Header["No Name"] = []string{"x"} },
		"a field value with a line break":       func(r *http.Request) { r.Header["Name"] = []string{"a\r\nb"} },
		"a method with a space":                 func(r *http.Request) { r.Method = "GE T"; r.Header["Idempotency-Key"] = nil },
		"a URL without a host":                  func(r *http.Request) { r.URL.Host = "" },
		"a URL without a scheme":                func(r *http.Request) { r.URL.Scheme = "" },
		"no URL":                                func(r *http.Request) { r.URL = nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var sends int
			tr := &Transport{Base: new(http.Transport), Observer: &Observer{Sent: func(Event) { sends++ }}}
			req := newRequest(t, t.Context(), http.MethodGet, "")
			spoil(req)
			start := time.Now()
			_, err := roundTrip(t, tr, req)
			if err == nil || sends > 1 || time.Since(start) != 0 {
				t.Errorf("%s: %d sends in %v, error %v", name, sends, time.Since(start), err)
			}
		})
	}
}

func TestAnIdempotencyKeyMakesAnyMethodRetryable(t *testing.T) {
	for name, mark := range map[string]func(*http.Request) *http.Request{
		"a key":                    func(r *http.Request) *http.Request { r.Header.Set("Idempotency-Key", "k1"); return r },
		"a key with the old name":  func(r *http.Request) *http.Request { r.Header.Set("X-Idempotency-Key", "k1"); return r },
		"a key that sends nothing": func(r *http.Request) *http.Request { r.Header["Idempotency-Key"] = []string{}; return r },
		"a word in the Call": func(r *http.Request) *http.Request {
			return r.WithContext(WithCall(r.Context(), Call{Idempotent: true}))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := script(answer(503), breaks(errReset), answer(200))
			req := mark(newRequest(t, t.Context(), http.MethodPost, "payload"))
			key := req.Header.Clone()
			resp, err := roundTrip(t, &Transport{Base: base}, req)
			if err != nil || resp.StatusCode != 200 || base.count() != 3 {
				t.Fatalf("%s: %v, %v after %d sends, want 200 after 3", name, resp, err, base.count())
			}
			for i, s := range base.sends {
				if fmt.Sprint(s.header["Idempotency-Key"], s.header["X-Idempotency-Key"]) != fmt.Sprint(key["Idempotency-Key"], key["X-Idempotency-Key"]) {
					t.Errorf("%s: send %d carries another key: %v", name, i+1, s.header)
				}
			}
		})
	}
}

func TestTheMethodsThatMayBeSentTwiceAreThoseOfTheStandard(t *testing.T) {
	for method, want := range map[string]int{
		"": 2, "GET": 2, "HEAD": 2, "OPTIONS": 2, "TRACE": 2, "PUT": 2, "DELETE": 2, "QUERY": 2,
		"POST": 1, "PATCH": 1, "LOCK": 1, "get": 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			base := script(answer(503), answer(200))
			req := newRequest(t, t.Context(), "GET", "")
			req.Method = method
			resp, err := roundTrip(t, &Transport{Base: base}, req)
			if err != nil || base.count() != want {
				t.Errorf("%q: %d sends, want %d (error %v)", method, base.count(), want, err)
			}
			resp.Body.Close()
		})
	}
}

func TestAWriteThatARateLimitRefusedIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(429, "Retry-After: 2"), answer(403, "Retry-After: 3"), answer(201))
		resp, err := roundTrip(t, &Transport{Base: base, Rand: lowest}, newRequest(t, t.Context(), "POST", "payload"))
		if err != nil || resp.StatusCode != 201 {
			t.Fatal(resp, err)
		}
		if got := fmt.Sprint(base.times()); got != "[0s 2s 5s]" {
			t.Errorf("sent at %s, want [0s 2s 5s]", got)
		}
	})
}

func TestThePausesOfALongFailureNeverOverflowAndNeverPassTheCap(t *testing.T) {
	for _, x := range []struct{ base, cap time.Duration }{
		{100 * time.Millisecond, 10 * time.Second}, {10 * time.Second, time.Hour}, {1, math.MaxInt64}, {math.MaxInt64, math.MaxInt64},
	} {
		for _, random := range []float64{0, 0.5, highest(), math.Inf(1), math.NaN(), -1} {
			r := Retry{BaseDelay: x.base, MaxDelay: x.cap}
			pauses := r.curve(func() float64 { return random })
			last := time.Duration(0)
			for n := range 2000 {
				d := pauses.NextBackOff()
				if d < 0 || d > x.cap || d < last {
					t.Fatalf("base %v cap %v random %v: pause %d is %v after %v", x.base, x.cap, random, n, d, last)
				}
				last = d
			}
			if last < x.cap/2 {
				t.Errorf("base %v cap %v random %v: settles at %v", x.base, x.cap, random, last)
			}
		}
	}
}

func TestManyClientsAtTheCapDoNotGatherOnOneInstant(t *testing.T) {
	slots := make(map[time.Duration]int)
	r := Retry{MaxDelay: time.Minute}
	for range 1000 {
		pauses := r.curve(source(nil))
		var d time.Duration
		for range 20 {
			d = pauses.NextBackOff()
		}
		slots[d.Truncate(time.Second)]++
	}
	if len(slots) < 27 { // 30 seconds of range
		t.Errorf("1000 clients use %d seconds of the 30 of the range", len(slots))
	}
	for s, n := range slots {
		if n > 100 {
			t.Errorf("%d of 1000 clients come at %v", n, s)
		}
	}
}

func TestMistakesInRetryAreAllReported(t *testing.T) {
	tr := &Transport{Retry: Retry{BaseDelay: -1, MaxDelay: -1, Reserve: math.NaN(), Statuses: []int{200, 99, 1000}}}
	err := tr.Validate()
	for _, word := range []string{"BaseDelay", "MaxDelay", "Reserve", "Statuses[1]", "Statuses[2]"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s is not reported in: %v", word, err)
		}
	}
	if strings.Contains(err.Error(), "Statuses[0]") {
		t.Errorf("200 is reported: %v", err)
	}
	closed := &callerBody{Reader: strings.NewReader("x")}
	req := newRequest(t, t.Context(), "POST", "")
	req.Body = closed
	if _, again := roundTrip(t, tr, req); again == nil || again.Error() != err.Error() {
		t.Errorf("RoundTrip says %v, Validate %v", again, err)
	}
	if closed.closes.Load() != 1 {
		t.Errorf("the body was closed %d times", closed.closes.Load())
	}
}
