package heed

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestARefusalThatTimeDoesNotEndIsFinalUnlessItNamesAWait(t *testing.T) {
	refusal := func(status int, body, retry string) reply {
		return func(*http.Request) (*http.Response, error) {
			h := http.Header{"Content-Type": {"application/json"}}
			if retry != "" {
				h.Set("Retry-After", retry)
			}
			return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, nil
		}
	}
	const spent = `{"error":{"code":"insufficient_quota"}}`
	for name, x := range map[string]struct {
		first reply
		sends int
		stop  Stop
		took  time.Duration
	}{
		"an allowance that only money restores": {refusal(429, spent, ""), 1, StopFinal, 0},
		"a hint of nothing":                     {refusal(429, spent, "0"), 1, StopFinal, 0},
		"an allowance that names a wait":        {refusal(429, spent, "5"), 2, "", 5 * time.Second},
		"a ban that names a wait":               {refusal(418, "", "5"), 2, "", 5 * time.Second},
		"a limit like any other":                {refusal(429, `{"error":{"code":"rate_limit_exceeded"}}`, ""), 2, "", 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base := script(x.first, answer(200))
				start := time.Now()
				resp, err := fetch(t, t.Context(), &Transport{Base: base, Rand: lowest})
				if err != nil {
					t.Fatal(err)
				}
				info, took := InfoOf(resp), time.Since(start)
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if info.Attempts != x.sends || info.Stopped != x.stop || took != x.took {
					t.Errorf("%d sends in %v, stopped %q; want %d in %v, %q", info.Attempts, took, info.Stopped, x.sends, x.took, x.stop)
				}
				if x.stop == StopFinal && string(text) != spent {
					t.Errorf("the body reads %q", text)
				}
				if n := base.open(t); n != 0 {
					t.Errorf("%d bodies left open", n)
				}
			})
		})
	}
}

func TestAnAllowanceOrABanWithoutAWaitIsNotSentAgain(t *testing.T) {
	all := traits{idempotent: true, replayable: true}
	for _, o := range []outcome{{status: 429, limited: true}, {status: 429, limited: true, final: true}} {
		want := Stop("")
		if o.final {
			want = StopFinal
		}
		if got := (&Retry{}).judge(all, o, 0, 1); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}
