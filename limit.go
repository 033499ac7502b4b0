package heed

import "time"

// Unit is what a limit counts. The zero value counts requests. A server's own
// unit keeps the server's own word.
type Unit string

// The units that servers and drafts name (draft-ietf-httpapi-ratelimit-headers, "Quota Unit").
const (
	UnitRequests Unit = "requests"
	UnitTokens   Unit = "tokens"
	UnitPoints   Unit = "points"
	UnitBytes    Unit = "bytes"
	// UnitConcurrent counts requests that are under way at once ("concurrent-requests" in the draft).
	UnitConcurrent Unit = "concurrent"
	// UnitPercent is a share of a quota that the server does not tell, as Meta's usage fields have it.
	UnitPercent Unit = "percent"
)

// Algorithm is how a server (or a [Rule]) counts a limit. The zero value means
// that it is not known: heed then assumes what is safe against all of them.
type Algorithm uint8

// The five algorithms of package limiter.
const (
	AlgorithmUnknown Algorithm = iota
	AlgorithmFixedWindow
	AlgorithmSlidingLog
	AlgorithmSlidingCounter
	AlgorithmTokenBucket
	AlgorithmLeakyBucket
)

// Limit is one quota: so many units per window.
//
// Limits are values: comparable, copied freely. In a [Rule] the zero Algorithm
// sends at most Quota units in any span of Window, which no server that keeps
// such a limit refuses; set Burst (or AlgorithmTokenBucket) for a bucket that
// refills at Quota per Window.
type Limit struct {
	// Name is the server's name for the limit, or yours in a Rule. Empty: unnamed.
	Name string
	// Partition tells apart ledgers of one limit (a partition key of the IETF draft).
	Partition string
	// Unit is what is counted; empty counts requests.
	Unit Unit
	// Quota is the number of units per Window. In a Rule it must be positive.
	Quota float64
	// Window is the span that Quota is for. Zero: the server did not say; in a Rule it must be positive.
	Window time.Duration
	// Burst is the capacity of a bucket in units: how many may go at once. Zero: Quota.
	Burst float64
	// Algorithm is how the units are counted.
	Algorithm Algorithm
}

// Has says which figures a [Reading] really holds.
type Has uint8

// What a server's answer may state of a limit. No bit set: nothing is known.
const (
	HasQuota Has = 1 << iota
	HasRemaining
	HasUsed
	// Unlimited: the server says that this limit does not bind.
	Unlimited
)

// Reading is what one answer says of one limit.
type Reading struct {
	Limit Limit
	// Has says which of Limit.Quota, Remaining and Used were stated (or follow from one another).
	Has Has
	// Remaining is the number of units left, never negative.
	Remaining float64
	// Used is the number of units spent in the current window.
	Used float64
	// Reset is when the quota is whole again, on the local clock. Zero: not said.
	Reset time.Time
	// From is the header field that the reading comes from, in canonical form, or "body".
	From string

	// absolute: the server gave an instant of its own clock, not a delta.
	absolute bool
	// momentary: only a refusal names the limit, so that no later answer will tell when it is free again.
	momentary bool
}

// Kind is what sort of refusal or trouble an answer speaks of.
type Kind uint8

// Kinds of answers.
const (
	// KindNone is an answer that was not refused by a limit.
	KindNone Kind = iota
	// KindPrimary is a refusal by a limit that the answer reports as spent, or by one that it does not report.
	KindPrimary
	// KindSecondary is a refusal although every reported limit has units left: another limiter refused.
	KindSecondary
	// KindQuota is a refusal by an allowance for a day or longer, or one that only money restores: to try again soon is useless.
	KindQuota
	// KindConcurrency is a refusal because too many requests were under way at once.
	KindConcurrency
	// KindOverload is a bare 503 or 529: the server is ill, which is not a limit, but its Retry-After holds the scope too.
	KindOverload
	// KindBan is a refusal of the client as such, for what it did before (Binance's 418, Kraken's lockout).
	KindBan
)

// String gives the kind in lower case.
func (k Kind) String() string {
	switch k {
	case KindPrimary:
		return "primary"
	case KindSecondary:
		return "secondary"
	case KindQuota:
		return "quota"
	case KindConcurrency:
		return "concurrency"
	case KindOverload:
		return "overload"
	case KindBan:
		return "ban"
	default:
		return "none"
	}
}

// Feedback is what one answer says about rate limits. The zero value says nothing.
type Feedback struct {
	// Limited: the request was refused by a rate limit and had no effect.
	Limited bool
	// Kind refines the verdict.
	Kind Kind
	// RetryAt is the instant, on the local clock, before which the server wants
	// no request. Zero: no hint. Equal to the instant of reading: the server
	// said 0 or a past date, which is no hint either.
	RetryAt time.Time
	// Readings are the limits that the answer reports.
	Readings []Reading
	// Scope is who shares the limit that refused, in one word of the server's or
	// its documentation's ("global", "route", "user", "ip", "bucket", "key" and
	// the like). Empty: not said, or not refused.
	Scope string
	// Cost is what the server says that this call cost. Zero: not said.
	Cost Cost
	// Date is the answer's Date field: the server's clock, whole seconds. Zero:
	// not sent, not readable, or of an answer that lay in a cache (Age), which tells no clock.
	Date time.Time
	// Sent is when the request was sent that the answer belongs to: answers
	// overtake each other. A Transport sets it for its Budget; zero: not known.
	Sent time.Time
}

// reports says whether the answer states a limit in u.
func (fb *Feedback) reports(u Unit) bool {
	for i := range fb.Readings {
		if r := &fb.Readings[i]; r.Limit.Unit == u || r.Limit.Unit == "" && u == UnitRequests {
			return true
		}
	}
	return false
}

// Cost is what one call spends, in each dimension. The zero Cost in a [Call]
// is what its [Rule] says, else one request; in [Budget.Settle] it means that
// nothing was sent.
type Cost struct {
	Requests, Tokens, Points, Bytes float64
}

// of gives the units of u that the cost holds; units that nobody declared cost nothing known.
func (c Cost) of(u Unit) float64 {
	switch u {
	case UnitRequests, "":
		return c.Requests
	case UnitTokens:
		return c.Tokens
	case UnitPoints:
		return c.Points
	case UnitBytes:
		return c.Bytes
	default:
		return 0
	}
}

// counted is how limits that answers report count the cost of a call: one that
// declares no points takes one, as it would of a limit in requests. What nobody
// declared of tokens and bytes stays unknown, and what was not sent nothing.
func (c Cost) counted() Cost {
	if c.Points == 0 && c != (Cost{}) {
		c.Points = 1
	}
	return c
}

// add counts n units of u; a unit of the server's own has no place here.
func (c *Cost) add(u Unit, n float64) {
	if !(n >= 0) || n > maxUnits {
		return
	}
	switch u {
	case UnitRequests, "":
		c.Requests += n
	case UnitTokens:
		c.Tokens += n
	case UnitPoints:
		c.Points += n
	case UnitBytes:
		c.Bytes += n
	}
}

func (c Cost) plus(d Cost) Cost {
	return Cost{c.Requests + d.Requests, c.Tokens + d.Tokens, c.Points + d.Points, c.Bytes + d.Bytes}
}

func (c Cost) minus(d Cost) Cost {
	return Cost{max(0, c.Requests-d.Requests), max(0, c.Tokens-d.Tokens), max(0, c.Points-d.Points), max(0, c.Bytes-d.Bytes)}
}

func (c Cost) valid() bool {
	for _, v := range [...]float64{c.Requests, c.Tokens, c.Points, c.Bytes} {
		if !(v >= 0) || v > maxUnits {
			return false
		}
	}
	return true
}

// maxUnits bounds every count: beyond it a float64 no longer counts by ones.
const maxUnits = 1 << 53
