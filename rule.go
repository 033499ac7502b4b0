package heed

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/heedhttp/heed/limiter"
)

// Rule is what is known of a server beforehand, from its documentation. A
// request must satisfy every rule that it matches and every limit learned from
// answers: the tighter wins.
type Rule struct {
	// Match is a pattern in the syntax of net/http.ServeMux:
	// "GET api.example.com/items/{id}". It has no scheme and no port, and a host
	// is followed by a path: "api.example.com/" is all of a host, on every port.
	Match string
	// Limits are spent together by each matching request, all or none, per scope.
	Limits []Limit
	// Concurrency is how many matching requests of one scope may be under way,
	// until the response body is read to its end or closed. Zero or negative: no such limit.
	Concurrency int
	// Cost is what one matching request spends. Zero: one request. Call.Cost wins.
	Cost Cost
}

// rules are compiled Rules.
type rules []compiledRule

type compiledRule struct {
	Rule
	mux *http.ServeMux
}

// compileRules checks all rules and reports every mistake at once.
func compileRules(in []Rule) (rules, error) {
	var out rules
	var mistakes []error
	for i, r := range in {
		bad := func(format string, args ...any) {
			mistakes = append(mistakes, fmt.Errorf("heed: Throttle.Rules[%d]: %s", i, fmt.Sprintf(format, args...)))
		}
		mux := http.NewServeMux()
		host, pattern := lowerHost(r.Match)
		if err := handle(mux, pattern); err != nil {
			bad("Match %q is no ServeMux pattern such as %q: %v", r.Match, "GET api.example.com/items/{id}", err)
		} else if strings.Contains(r.Match, "://") {
			bad("Match %q names a scheme; leave it out, as in %q", r.Match, "api.example.com/")
		} else if strings.Contains(host, ":") {
			bad("Match %q names a port and would match nothing; leave the port out, which matches all ports", r.Match)
		}
		for j, l := range r.Limits {
			if !(l.Quota > 0) || math.IsInf(l.Quota, 0) {
				bad("Limits[%d].Quota is %v; give the number of units per Window", j, l.Quota)
			}
			if l.Window <= 0 {
				bad("Limits[%d].Window is %v; give the span that Quota is for", j, l.Window)
			}
			if !(l.Burst >= 0) || math.IsInf(l.Burst, 0) {
				bad("Limits[%d].Burst is %v; give a number of units, or 0 for Quota", j, l.Burst)
			}
			if l.Algorithm > AlgorithmLeakyBucket {
				bad("Limits[%d].Algorithm is %d, which does not exist", j, l.Algorithm)
			}
		}
		if !r.Cost.valid() {
			bad("Cost %+v has a part that is negative or not a number", r.Cost)
		}
		r.Limits = append([]Limit(nil), r.Limits...)
		out = append(out, compiledRule{r, mux})
	}
	return out, errors.Join(mistakes...)
}

// lowerHost puts the host of a pattern, which ServeMux compares as it stands, in lower case.
func lowerHost(pattern string) (host, lowered string) {
	begin := strings.LastIndexAny(pattern[:max(0, strings.IndexByte(pattern, '/'))], " \t") + 1
	host, _, _ = strings.Cut(pattern[begin:], "/")
	lower := strings.ToLower(host)
	return lower, pattern[:begin] + lower + pattern[begin+len(host):]
}

// handle registers pattern; ServeMux panics on a bad one.
func handle(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(strings.TrimPrefix(fmt.Sprint(p), "http: "))
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// match gives the indexes of the rules that a request matches, as a bit set is too small for some.
func (rs rules) match(req *http.Request) (hit []int) {
	if len(rs) == 0 {
		return nil
	}
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	path := req.URL.Path
	if path == "" {
		path = "/"
	}
	method := req.Method
	if method == "" {
		method = http.MethodGet
	}
	probe := &http.Request{Method: method, Host: strings.ToLower(host), URL: &url.URL{Path: path, RawPath: req.URL.RawPath}, RequestURI: path}
	for i := range rs {
		if _, pattern := rs[i].mux.Handler(probe); pattern != "" {
			hit = append(hit, i)
		}
	}
	return hit
}

// meter counts one known limit: pure, fed with the instant.
type meter struct {
	limit  Limit
	bucket *rate.Limiter // token arithmetic only: its queue leaves holes after a cancel
	core   limiter.Core
}

func newMeter(l Limit) *meter {
	m := &meter{limit: l}
	burst := l.Burst
	if burst == 0 {
		burst = l.Quota
	}
	perSecond := l.Quota / l.Window.Seconds()
	switch {
	case l.Algorithm == AlgorithmTokenBucket || l.Algorithm == AlgorithmUnknown && l.Burst > 0:
		m.bucket = rate.NewLimiter(rate.Limit(perSecond), int(min(max(burst, 1), maxUnits, math.MaxInt)))
	case l.Algorithm == AlgorithmFixedWindow:
		m.core = &limiter.FixedWindow{Limit: l.Quota, Window: l.Window}
	case l.Algorithm == AlgorithmSlidingCounter:
		m.core = &limiter.SlidingCounter{Limit: l.Quota, Window: l.Window}
	case l.Algorithm == AlgorithmLeakyBucket:
		m.core = &limiter.LeakyBucket{Rate: perSecond, Queue: l.Burst}
	default:
		m.core = &limiter.SlidingLog{Limit: l.Quota, Window: l.Window}
	}
	return m
}

// wait is how long the cost must wait; impossible: it can never fit.
func (m *meter) wait(now time.Time, cost Cost) (d time.Duration, impossible bool) {
	n := cost.of(m.limit.Unit)
	if n == 0 {
		return 0, false
	}
	if m.core != nil {
		r := m.core.Peek(now, n)
		switch {
		case r.Allowed:
			return 0, false
		case r.RetryAfter == limiter.Never:
			return 0, true
		}
		return max(r.RetryAfter, 1), false
	}
	n = math.Ceil(n)
	if n > float64(m.bucket.Burst()) {
		return 0, true
	}
	missing := n - m.bucket.TokensAt(now)
	if missing <= 0 {
		return 0, false
	}
	return seconds(missing / float64(m.bucket.Limit())), false
}

// whole says that nothing is spent.
func (m *meter) whole(now time.Time) bool {
	if m.core != nil {
		r := m.core.Peek(now, 0)
		return r.Remaining >= r.Limit
	}
	return m.bucket.TokensAt(now) >= float64(m.bucket.Burst())
}

// spend takes the cost. What turned out to cost more than is left makes a debt
// where the algorithm knows debts, and takes all that is left where not.
func (m *meter) spend(now time.Time, cost Cost) {
	n := cost.of(m.limit.Unit)
	switch {
	case n == 0:
	case m.core == nil:
		m.bucket.ReserveN(now, int(min(math.Ceil(n), float64(m.bucket.Burst()))))
	case !m.core.Take(now, n).Allowed:
		m.core.Take(now, m.core.Peek(now, 0).Remaining)
	}
}

// refund gives back what was taken for a send that provably never happened. A
// bucket takes it at once; a window keeps it charged until it has passed, which
// errs on the side of the server.
func (m *meter) refund(now time.Time, cost Cost) {
	if n := cost.of(m.limit.Unit); n > 0 && m.bucket != nil {
		m.bucket.ReserveN(now, -int(math.Ceil(n)))
	}
}
