package heed

import (
	"net/http"
	"testing"
	"time"
)

func TestPointsThatNobodyDeclaredAreOneACall(t *testing.T) {
	for _, x := range []struct{ in, want Cost }{
		{Cost{}, Cost{}},
		{Cost{Requests: 1}, Cost{Requests: 1, Points: 1}},
		{Cost{Requests: 1, Points: 7}, Cost{Requests: 1, Points: 7}},
		{Cost{Tokens: 500}, Cost{Tokens: 500, Points: 1}},
		{Cost{Bytes: 9}, Cost{Bytes: 9, Points: 1}},
	} {
		if got := x.in.counted(); got != x.want {
			t.Errorf("%+v counts as %+v, want %+v", x.in, got, x.want)
		}
	}
}

// pointsAnswer reports a limit in points as Twitch does, and what else is given.
func pointsAnswer(now time.Time, more ...string) Feedback {
	h := headerOf(append(more, "X-Ratelimit-Complexity-Limit", "800", "X-Ratelimit-Complexity-Remaining", "3", "X-Ratelimit-Complexity-Reset", "60")...)
	return ParseFeedback(&http.Response{StatusCode: http.StatusOK, Header: h}, now)
}

func TestALimitInPointsIsNotOverrunByCallsThatDeclareNone(t *testing.T) {
	const most = 20
	for name, x := range map[string]struct {
		cost   Cost
		beside []string
		want   int // calls that may go at once
	}{
		"a bare call":                          {Cost{Requests: 1}, nil, 3},
		"a call of three points":               {Cost{Requests: 1, Points: 3}, nil, 1},
		"a call beside a limit in requests":    {Cost{Requests: 1}, []string{"X-Ratelimit-Limit", "900", "X-Ratelimit-Remaining", "800"}, most},
		"points beside a limit in requests":    {Cost{Requests: 1, Points: 1}, []string{"X-Ratelimit-Limit", "900", "X-Ratelimit-Remaining", "800"}, 3},
		"a call beside a limit in tokens only": {Cost{Requests: 1}, []string{"X-Ratelimit-Limit-Tokens", "900", "X-Ratelimit-Remaining-Tokens", "0"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			l := new(ledger)
			now := newTimeline().at(june)
			fb := pointsAnswer(june, x.beside...)
			if !fb.reports(UnitPoints) || fb.reports(UnitRequests) != (x.want == most || x.cost.Points == 1) {
				t.Fatalf("the answer says %+v", fb.Readings)
			}
			l.learn(now, now, &fb, 0)
			l.ramp = -1
			sent := 0
			for ; sent < most; sent++ {
				v := l.decide(now, nil, x.cost, 0)
				if v.wait > 0 && v.reason != ReasonPace {
					break
				}
				l.spend(now, nil, x.cost, false)
			}
			if sent != x.want {
				t.Errorf("%d calls went, want %d", sent, x.want)
			}
			for range sent {
				l.land(now, nil, x.cost, true)
			}
			if l.inflight != (Cost{}) {
				t.Errorf("%+v is still under way", l.inflight)
			}
		})
	}
}
