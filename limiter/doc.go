// Package limiter holds the five classic rate limiters as pure cores, and the shells that make them safe to share.
//
// A [Core] is a decision apart from effects: from its state, an instant and a cost it tells whether the cost is allowed, what
// remains, how long to wait and when all is back. It has no lock, no clock and no goroutine, so a test can put any instant to it.
// [New] puts a lock and a clock around one; [Keyed] keeps one for each key within a bound.
//
//	l := limiter.New(&limiter.TokenBucket{Rate: 10, Burst: 20})
//	if r := l.Take(1); !r.Allowed {
//		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(r.RetryAfter.Seconds()), 'f', 0, 64))
//	}
//
// # Which one
//
// [FixedWindow] counts in windows that begin at round instants; it is cheapest, easiest to explain, and lets twice its limit through
// across an edge. [SlidingLog] is exact over every span and pays with memory. [SlidingCounter] approximates it with two counters: no
// better than FixedWindow against somebody who knows where the edges are, much better for ordinary traffic. [TokenBucket] limits
// the mean and grants a burst. [LeakyBucket] limits the mean the same way, and as a queue gives every accepted request its time, one
// after another at a constant rate.
//
// Below, each lets 100 units a minute through; TokenBucket holds 100, LeakyBucket 1. Memory is the core with all that it points at,
// after it has been at its limit. The next three columns are the most units that one client got through at one instant, within a
// millisecond, and in any span of one minute, whatever it tried: everything at once, all the time, and just before and just after
// an edge.
//
// The rest is how precise the window is, over random traffic of half to twice the limit, held against an exact recount of the last
// minute at each request: how far the count was off, as a share of the limit, on average and at most; how often a request was let
// through though the minute was full (over), and how often it was refused though there was room (under). For the buckets neither
// is an error, since they do not count by the minute.
//
//	algorithm       memory  at once  in 1 ms  in 1 min  off by  (most)    over   under  ns/decision
//	FixedWindow       56 B      100      200       200   38.0%  100.0%   32.1%    0.0%           69
//	SlidingLog      1664 B      100      100       100    0.0%    0.0%    0.0%    0.0%           90
//	SlidingCounter    40 B      100      100       199    3.7%   38.5%   12.9%   13.6%           79
//	TokenBucket       56 B      100      100       199       -       -   41.5%    0.0%           83
//	LeakyBucket       56 B        1        1       100       -       -    0.0%   62.9%           83
//
//	Times: 2026-12-01, go1.26.8, linux/amd64, 2 cores, AMD EPYC.
//
// # Exactness
//
// Nothing here is a running sum of floating-point numbers. Units are counted in whole billionths, so ten costs of 0.1 are one unit
// and the thousand millionth decision is as exact as the first; a cost is rounded to the nearest billionth, and what is not zero is
// at least one. (Limits above 4,294,967,296 units are counted in millionths, a thousand times larger ones in thousandths, again
// a thousand times larger ones in ones, and from about 4e18 on there is no limit.) Rates are taken as fractions, so 100 a minute is
// exactly 5/3 a second, and instants are whole nanoseconds. RetryAfter is therefore the first nanosecond at which the same cost is
// allowed if nobody else spends: not a nanosecond earlier, and at that instant for certain.
//
// # Edge cases
//
// Where a number makes no sense, nothing is let through. A limit or capacity that is negative or NaN admits only costs of 0, and so does a
// limit of 0; a Burst or Queue of 0 is 1. A negative window admits nothing; one of 0 is a second. A rate that is 0, negative or NaN brings
// nothing back. An infinite rate, limit or capacity is no limit. A cost above the capacity is refused with RetryAfter [Never], and so
// is a cost that is negative or NaN. An instant earlier than the last spending counts as that instant: time that goes back creates no
// units.
package limiter
