package heedtest

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/heedhttp/heed/limiter"
)

// A Dialect is the way in which a server tells its limits. The zero value
// tells nothing.
type Dialect int

const (
	// Silent refuses with a bare 429 (RFC 6585, section 4) and says nothing
	// more, ever.
	Silent Dialect = iota
	// RetryAfter refuses with 429 and Retry-After in delta-seconds, rounded
	// up (RFC 9110, section 10.2.3).
	RetryAfter
	// XRateLimit puts X-RateLimit-Limit, -Remaining and -Reset on every
	// answer. Reset is in epoch seconds of the server's clock, rounded up. A
	// refusal is a 429 without Retry-After. The fields were never
	// standardized; this is their most common reading.
	XRateLimit
	// RateLimit puts RateLimit-Limit, -Remaining and -Reset on every answer,
	// Reset in delta-seconds, rounded up, and Retry-After on a 429
	// (draft-ietf-httpapi-ratelimit-headers-02 to -06).
	RateLimit
	// Draft10 puts the structured fields RateLimit-Policy and RateLimit on
	// every answer, and Retry-After on a 429
	// (draft-ietf-httpapi-ratelimit-headers-10).
	Draft10
	// GitHub is XRateLimit with X-RateLimit-Used and -Resource; a refusal is
	// a 403 with a JSON message, one by MaxConcurrent a 429 that speaks of a
	// secondary limit (GitHub's REST documentation, "Rate limits").
	GitHub
)

var dialectNames = [...]string{"Silent", "RetryAfter", "XRateLimit", "RateLimit", "Draft10", "GitHub"}

// String is the name of the constant.
func (d Dialect) String() string {
	if d < 0 || int(d) >= len(dialectNames) {
		return "Dialect(" + strconv.Itoa(int(d)) + ")"
	}
	return dialectNames[d]
}

// ruling is what the server has found about one request.
type ruling struct {
	limited bool           // there is a limiter, and result is its word
	result  limiter.Result // of Take, or of Peek when crowded
	window  time.Duration  // of the limiter; 0: not known
	crowded bool           // refused by MaxConcurrent
}

func (r ruling) accepted() bool { return !r.crowded && (!r.limited || r.result.Allowed) }

// notice is a ruling in the words of a dialect, and what these words ask of
// the client.
type notice struct {
	status int // 0: accepted, the handler chooses
	fields []field
	body   string // of a refusal; JSON

	hold  time.Duration // the wait told by Retry-After
	shows bool          // the answer says how much remains
	reset time.Duration // the wait told by a reset after nothing remaining; 0: none told
}

type field struct{ name, value string }

// told is the wait that the answer as a whole asks for: Retry-After goes
// before a reset (RateLimit draft, section 5).
func (n notice) told() time.Duration {
	if n.hold > 0 {
		return n.hold
	}
	return n.reset
}

const (
	bodyAccepted  = `{"message":"ok"}` + "\n"
	bodyLimited   = `{"message":"rate limit exceeded"}` + "\n"
	bodyCrowded   = `{"message":"too many concurrent requests"}` + "\n"
	bodySecondary = `{"message":"You have exceeded a secondary rate limit."}` + "\n"
	bodyGitHub    = `{"message":"API rate limit exceeded."}` + "\n"
)

// put says the ruling in the dialect, at the instant now of the server's
// clock. It is a pure function.
func (d Dialect) put(r ruling, now time.Time) (n notice) {
	refused := r.limited && !r.result.Allowed && !r.crowded
	switch {
	case r.crowded:
		n.status, n.body = 429, bodyCrowded
		if d == GitHub {
			n.body = bodySecondary
		}
	case refused:
		n.status, n.body = 429, bodyLimited
		if d == GitHub {
			n.status, n.body = 403, bodyGitHub
		}
	}
	if !r.limited || math.IsInf(r.result.Limit, 1) {
		return n
	}
	limit, remaining := floor(r.result.Limit), floor(r.result.Remaining)
	known := r.result.Reset >= 0 // else it never resets, which no dialect can say
	var reset time.Duration
	add := func(name, value string) { n.fields = append(n.fields, field{name, value}) }
	switch d {
	case XRateLimit, GitHub:
		n.shows = true
		add("X-RateLimit-Limit", decimal(limit))
		add("X-RateLimit-Remaining", decimal(remaining))
		if known {
			at := ceilUnix(now.Add(r.result.Reset))
			reset = time.Unix(at, 0).Sub(now)
			add("X-RateLimit-Reset", strconv.FormatInt(at, 10))
		}
		if d == GitHub {
			add("X-RateLimit-Used", decimal(limit-remaining))
			add("X-RateLimit-Resource", "core")
		}
	case RateLimit, Draft10:
		n.shows = true
		delta := ceilSeconds(r.result.Reset)
		reset = time.Duration(delta) * time.Second
		if d == RateLimit {
			add("RateLimit-Limit", decimal(limit))
			add("RateLimit-Remaining", decimal(remaining))
			if known {
				add("RateLimit-Reset", strconv.FormatInt(delta, 10))
			}
			break
		}
		policy, state := `"default";q=`+decimal(limit), `"default";r=`+decimal(remaining)
		if r.window > 0 {
			policy += ";w=" + strconv.FormatInt(ceilSeconds(r.window), 10)
		}
		if known {
			state += ";t=" + strconv.FormatInt(delta, 10)
		}
		add("RateLimit-Policy", policy)
		add("RateLimit", state)
	}
	if refused && r.result.RetryAfter > 0 && (d == RetryAfter || d == RateLimit || d == Draft10) {
		delta := ceilSeconds(r.result.RetryAfter)
		n.hold = time.Duration(delta) * time.Second
		add("Retry-After", strconv.FormatInt(delta, 10))
	}
	if n.shows && remaining == 0 && n.hold == 0 {
		n.reset = max(reset, 0)
	}
	return n
}

// floor leaves whole units only: half a unit buys nothing, so that a server
// does not show it.
func floor(units float64) float64 { return max(0, math.Floor(units)) }

func decimal(units float64) string { return strconv.FormatFloat(units, 'f', 0, 64) }

// maxSeconds keeps deltas within what a time.Duration can hold.
const maxSeconds = int64(math.MaxInt64 / time.Second)

func ceilSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 && s < maxSeconds {
		s++
	}
	return max(s, 0)
}

func ceilUnix(t time.Time) int64 {
	s := t.Unix()
	if t.Nanosecond() > 0 {
		s++
	}
	return s
}

// windowOf is the time in which a limiter of the house gives its whole quota
// anew; 0 for any other.
func windowOf(core limiter.Core) time.Duration {
	refill := func(units, rate float64) time.Duration {
		if d := units / rate * float64(time.Second); d > 0 && d < math.MaxInt64 {
			return time.Duration(d)
		}
		return 0
	}
	window := func(d time.Duration) time.Duration { return max(cmp.Or(d, time.Second), 0) }
	switch c := core.(type) {
	case *limiter.FixedWindow:
		return window(c.Window)
	case *limiter.SlidingLog:
		return window(c.Window)
	case *limiter.SlidingCounter:
		return window(c.Window)
	case *limiter.TokenBucket:
		return refill(cmp.Or(c.Burst, 1), c.Rate)
	case *limiter.LeakyBucket:
		return refill(cmp.Or(c.Queue, 1), c.Rate)
	}
	return 0
}
