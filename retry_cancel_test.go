package heed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// errWhy is a caller's own reason to cancel.
var errWhy = errors.New("the user pressed stop")

func TestACancelDuringAnyWaitEndsItAtOnceAndKeepsTheLastStatus(t *testing.T) {
	for _, x := range []struct {
		name   string
		first  reply
		status int
		cause  error // of the failure before the wait
	}{
		{"a pause", answer(503), 503, nil},
		{"a named wait after a refusal", answer(429, "Retry-After: 30"), 429, nil},
		{"a refusal without a wait", answer(429), 429, nil},
		{"an overload", answer(503, "Retry-After: 30"), 503, nil},
		{"a pause after an error", breaks(errReset), 0, errReset},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := script(append(repeated(3, x.first), answer(200))...)
				ctx, cancel := context.WithCancelCause(t.Context())
				start := time.Now()
				time.AfterFunc(200*time.Millisecond, func() { cancel(errWhy) })
				_, err := fetch(t, ctx, &Transport{Base: base})
				if d := time.Since(start); d != 200*time.Millisecond || base.count() != 1 {
					t.Errorf("returned after %v and %d sends, want 200ms and 1", d, base.count())
				}
				if !errors.Is(err, context.Canceled) || !errors.Is(err, errWhy) || x.cause != nil && !errors.Is(err, x.cause) {
					t.Errorf("error %v, want Canceled, its cause, and the failure before", err)
				}
				if i := InfoOfError(err); i.Status != x.status || i.Stopped != StopCancelled || i.Attempts != 1 || i.Waited() != 200*time.Millisecond {
					t.Errorf("info %+v, want status %d and 200ms waited", i, x.status)
				}
				if x.status != 0 && !strings.Contains(err.Error(), fmt.Sprint(x.status)) {
					t.Errorf("the text does not tell the status: %v", err)
				}
				if n := base.open(t); n != 0 {
					t.Errorf("%d bodies left open", n)
				}
			})
		})
	}
}

func TestACancelDuringALaterSendKeepsWhatCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(503), late(time.Hour, answer(200)))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Second, func() { cancel(errWhy) })
		start := time.Now()
		_, err := fetch(t, ctx, &Transport{Base: base})
		if time.Since(start) != 10*time.Second || !errors.Is(err, context.Canceled) || !errors.Is(err, errWhy) {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		var before *statusError
		if i := InfoOfError(err); i.Status != 503 || i.Attempts != 2 || !errors.As(err, &before) {
			t.Errorf("info %+v, error %v; want the 503 before", i, err)
		}
		if n := strings.Count(err.Error(), errWhy.Error()); n != 1 {
			t.Errorf("the cause stands %d times in: %v", n, err)
		}
	})
}

func TestADeadContextSendsNothingAndClosesTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cache := range []*Cache{nil, NewCache(1 << 20)} {
			base := script(answer(200))
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errWhy)
			body := &callerBody{Reader: strings.NewReader("x")}
			req := newRequest(t, ctx, "PUT", "")
			req.Body = body
			_, err := roundTrip(t, &Transport{Base: base, Cache: cache}, req)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, errWhy) || base.count() != 0 || body.closes.Load() != 1 {
				t.Errorf("cache %v: %v after %d sends, body closed %d times", cache != nil, err, base.count(), body.closes.Load())
			}
		}
	})
}

func TestADeadlineThatEndsDuringASendIsATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(late(time.Hour, answer(200)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := fetch(t, ctx, &Transport{Base: base})
		var timeout interface{ Timeout() bool }
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || base.count() != 1 {
			t.Errorf("%v after %d sends, want a timeout after 1", err, base.count())
		}
		_, err = (&http.Client{Transport: &Transport{Base: base}, Timeout: time.Second}).Get("http://api.test/")
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("through http.Client: %v, want a timeout", err)
		}
	})
}

func TestACancelInTheQueueOfARuleSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := script(answer(200))
		tr := &Transport{Base: base}
		tr.Throttle.Rules = []Rule{{Match: "api.test/", Limits: []Limit{{Quota: 1, Window: time.Minute}}}}
		resp, err := fetch(t, t.Context(), tr)
		if err != nil {
			t.Fatal(err)
		}
		content(t, resp)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err = fetch(t, ctx, tr)
		if !errors.Is(err, context.Canceled) || time.Since(start) != time.Second || base.count() != 1 {
			t.Errorf("%v after %v and %d sends", err, time.Since(start), base.count())
		}
		if i := InfoOfError(err); i.Stopped != StopCancelled || i.Attempts != 0 || i.Waited() != time.Second {
			t.Errorf("info %+v", i)
		}
	})
}

// openBody is a body that never ends. What ends a Read that waits is the test's choice.
type openBody struct {
	read   func(closed <-chan struct{}, p []byte) (int, error)
	closed chan struct{}
	bytes  int
}

func (b *openBody) Read(p []byte) (int, error) {
	n, err := b.read(b.closed, p)
	b.bytes += n
	return n, err
}

func (b *openBody) Close() error {
	select {
	case <-b.closed:
	default:
		close(b.closed)
	}
	return nil
}

func TestTheDrainOfAnUnwantedAnswerIsBoundedInBytesAndTime(t *testing.T) {
	for _, x := range []struct {
		name string
		read func(closed <-chan struct{}, p []byte) (int, error)
		took time.Duration
	}{
		{"that flows for ever", func(_ <-chan struct{}, p []byte) (int, error) { return len(p), nil }, 0},
		{"that waits until it is closed", func(closed <-chan struct{}, _ []byte) (int, error) {
			<-closed
			return 0, io.ErrClosedPipe
		}, drainTime},
		{"that trickles and ignores a close", func(_ <-chan struct{}, p []byte) (int, error) {
			time.Sleep(40 * time.Millisecond)
			return 1, nil
		}, drainTime},
		{"that panics", func(<-chan struct{}, []byte) (int, error) { panic("broken body") }, 0},
		{"that ends", func(_ <-chan struct{}, p []byte) (int, error) { return 3, io.EOF }, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body := &openBody{read: x.read, closed: make(chan struct{})}
				base := script(func(r *http.Request) (*http.Response, error) {
					// no words, or Learn would wait for them too
					h := http.Header{"Content-Type": {"application/octet-stream"}}
					return &http.Response{StatusCode: 503, Header: h, Body: body, ContentLength: -1}, nil
				}, answer(200))
				resp, err := fetch(t, t.Context(), &Transport{Base: base, Rand: lowest})
				if err != nil || resp.StatusCode != 200 {
					t.Fatal(resp, err)
				}
				content(t, resp)
				if at := base.times()[1]; at != x.took+500*time.Millisecond {
					t.Errorf("sent again after %v, want the pause of 500ms and %v of reading", at, x.took)
				}
				if n := base.open(t); n != 0 {
					t.Error("the body was not closed before the next send was over")
				}
				synctest.Wait()
				if body.bytes > drainBytes {
					t.Errorf("%d bytes were read", body.bytes)
				}
			})
		})
	}
}

func TestAnUnwantedAnswerIsClosedBeforeTheWait(t *testing.T) {
	for name, first := range map[string]reply{"a pause": answer(503), "a hold": answer(429, "Retry-After: 30"), "an overload": answer(503, "Retry-After: 30")} {
		synctest.Test(t, func(t *testing.T) {
			base := script(first, answer(200))
			done := make(chan struct{})
			go func() {
				defer close(done)
				resp, err := fetch(t, t.Context(), &Transport{Base: base})
				if err == nil {
					content(t, resp)
				}
			}()
			synctest.Wait()
			if n := base.open(t); n != 0 || base.count() != 1 {
				t.Errorf("%s: %d bodies open during the wait after %d sends", name, n, base.count())
			}
			<-done
		})
	}
}

func TestACallThatIsCancelledWhileAnAnswerIsDrainedEndsAsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &openBody{read: func(closed <-chan struct{}, _ []byte) (int, error) { <-closed; return 0, io.ErrClosedPipe }, closed: make(chan struct{})}
		base := script(func(*http.Request) (*http.Response, error) {
			h := http.Header{"Content-Type": {"application/octet-stream"}} // no words, or Learn would read first
			return &http.Response{StatusCode: 503, Header: h, Body: body, ContentLength: -1}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		start := time.Now()
		_, err := fetch(t, ctx, &Transport{Base: base})
		if !errors.Is(err, context.Canceled) || time.Since(start) > drainTime || base.count() != 1 {
			t.Errorf("%v after %v and %d sends", err, time.Since(start), base.count())
		}
	})
}

func TestACancelInAnyWaitOfTheThrottleEndsItAtOnce(t *testing.T) {
	for _, x := range []struct {
		name string
		tr   *Transport
	}{
		{"for a slot", &Transport{Throttle: Throttle{Rules: []Rule{{Match: "/", Concurrency: 1}}}}},
		{"for a first answer", &Transport{}},
		{"for a Budget", &Transport{Budget: &strictBudget{from: time.Now().Add(100 * 365 * 24 * time.Hour)}, Throttle: Throttle{MaxWait: -1}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := x.tr.Clone()
				base := script(late(time.Minute, answer(200)))
				tr.Base = base
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for range 2 { // the first is under way or waits, the second waits behind it
					go func() {
						if resp, err := tr.RoundTrip(newRequest(t, ctx, "GET", "")); err == nil {
							resp.Body.Close()
						}
					}()
					synctest.Wait()
				}
				sends := base.count()
				mine, leave := context.WithCancelCause(t.Context())
				time.AfterFunc(50*time.Millisecond, func() { leave(errWhy) })
				start := time.Now()
				_, err := fetch(t, mine, tr)
				if !errors.Is(err, context.Canceled) || !errors.Is(err, errWhy) || time.Since(start) != 50*time.Millisecond {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				if i := InfoOfError(err); i.Stopped != StopCancelled || i.Attempts != 0 || base.count() != sends || i.Waited() != 50*time.Millisecond {
					t.Errorf("info %+v, %d more sends", i, base.count()-sends)
				}
				cancel()
				synctest.Wait()
				conserved(t, tr)
			})
		})
	}
}
