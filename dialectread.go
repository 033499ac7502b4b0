package heed

import (
	"strings"
	"time"
)

// The rows of the table that need more than data.

func awsErrorType(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	var named facts
	named.code(a.Header["X-Amzn-Errortype"][0])
	for _, c := range named.codes {
		c, _, _ = strings.Cut(c, ":")
		if kind, refused := codeKind(c); refused {
			ev.refused = true
			ev.rule(kind)
		} else if squash(c) == "limitexceededexception" && ev.refusing() {
			ev.rule(KindQuota)
		}
	}
}

func atlassianQuota(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	for _, scope := range [...]string{"global", "tenant"} {
		if strings.Contains(ev.reason, scope) {
			ev.scope = first(ev.scope, scope)
		}
	}
	ev.kind, ev.firm = KindPrimary, true
}

// sentry reads "60:error;transaction:key, 2700:default:organization": a wait,
// the categories it is for (none: all), and the scope.
func sentry(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	for it := items(a.Header["X-Sentry-Rate-Limits"]); ; {
		s, ok := it.next()
		if !ok {
			return
		}
		parts := strings.SplitN(s, ":", 4)
		n, ok := number(trim(parts[0]))
		if !ok {
			continue
		}
		categories, scope := "", ""
		if len(parts) > 1 {
			categories = trim(parts[1])
		}
		if len(parts) > 2 {
			scope = named(trim(parts[2]))
		}
		for range maxItems {
			var category string
			category, categories, ok = strings.Cut(categories, ";")
			fb.add(Reading{
				Limit: Limit{Name: named(trim(category)), Partition: scope}, Has: HasRemaining,
				Reset: told{delta: seconds(n)}.local(ev.now, ev.base), From: "X-Sentry-Rate-Limits",
			})
			if !ok {
				break
			}
		}
	}
}

// add appends a reading of a limit that only refusals name, within bounds.
func (fb *Feedback) add(r Reading) {
	if len(fb.Readings) < maxReadings {
		r.momentary = true
		fb.Readings = append(fb.Readings, r)
	}
}

// meta reads the codes of the Graph API: 4 the app's calls, 17 a user's, 32 a
// page's, 613 a custom limit, 80000 to 80014 those of business use cases.
func meta(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	code, ok := f.float("error/code")
	if !ok || f.str("error/type") != "OAuthException" && a.Header["X-App-Usage"] == nil && a.Header["X-Business-Use-Case-Usage"] == nil {
		return
	}
	scope := ""
	switch {
	case code == 4:
		scope = "global"
	case code == 17:
		scope = "user"
	case code == 32:
		scope = "page"
	case code == 613:
		scope = "account"
	case code >= 80000 && code <= 80014:
		scope = "account"
	default:
		return
	}
	ev.refused = true
	ev.scope = first(ev.scope, scope)
	ev.rule(KindPrimary)
}

// strava reads two figures a field, of windows that end with the quarter hour and the UTC day.
func strava(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	windows := [...]struct {
		name string
		span time.Duration
	}{{"15min", 15 * time.Minute}, {"daily", 24 * time.Hour}}
	seen := make(map[string]int)
	for i := range fb.Readings {
		r := &fb.Readings[i]
		if !strings.HasSuffix(familyOf(r.From), "atelimit") || r.Limit.Window != 0 {
			continue
		}
		k := seen[r.From+r.Limit.Name]
		if seen[r.From+r.Limit.Name]++; k >= len(windows) {
			continue
		}
		if r.Limit.Name != "" {
			r.Limit.Name += ":"
		}
		r.Limit.Name += windows[k].name
		r.Limit.Window = windows[k].span
		end := ev.base.UTC().Truncate(windows[k].span).Add(windows[k].span)
		r.Reset, r.absolute = told{at: end}.local(ev.now, ev.base), true
	}
}

func hackmd(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	if a.Header["X-Ratelimit-Clientlimit"] == nil { // which Imgur sends beside it
		ev.rule(KindQuota)
	}
}

func linkedin(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	message := f.str("message")
	_, rest, ok := strings.Cut(message, "throttle ")
	name, _, good := strings.Cut(rest, " limit")
	if ok && good && name != "" {
		fb.add(Reading{Limit: Limit{Name: named(name), Window: windowIn(strings.ToLower(name))}, Has: HasRemaining, From: "body"})
	}
}

// graphqlCost reads extensions.cost: a bucket of points that refills at restoreRate a second.
func graphqlCost(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	const at = "extensions/cost/"
	quota, ok1 := f.float(at + "throttleStatus/maximumAvailable")
	left, ok2 := f.float(at + "throttleStatus/currentlyAvailable")
	rate, ok3 := f.float(at + "throttleStatus/restoreRate")
	if !ok1 || !ok2 || !ok3 || rate <= 0 || quota > maxUnits {
		return
	}
	fb.Readings = append(fb.Readings, Reading{
		Limit: Limit{Name: "graphql", Unit: UnitPoints, Quota: quota, Window: seconds(quota / rate), Algorithm: AlgorithmTokenBucket},
		Has:   HasQuota | HasRemaining, Remaining: left, From: "body",
	})
	if spent, ok := f.float(at + "actualQueryCost"); ok {
		fb.Cost.add(UnitPoints, spent)
	}
	if wants, ok := f.float(at + "requestedQueryCost"); ok && ev.refused && wants > left {
		ev.body, ev.hasBody = told{delta: seconds((wants - left) / rate)}, true
		ev.kind, ev.firm = KindPrimary, true
	}
}

func monday(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	fb.add(Reading{Limit: Limit{Name: "complexity", Unit: UnitPoints}, Has: HasRemaining, From: "body"})
}

func notion(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	ev.scope = first(ev.scope, named(f.str("additional_data/rate_limit_reason")))
}

func xero(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	switch problem := strings.ToLower(ev.reason); problem {
	case "day":
		ev.rule(KindQuota)
	case "concurrent":
		ev.rule(KindConcurrency)
	}
}

// googleRPC reads the details of a google.rpc.Status.
func googleRPC(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	details, _ := f.at("error/details").([]any)
	for _, one := range details[:min(len(details), maxItems)] {
		detail, _ := one.(map[string]any)
		violations, _ := detail["violations"].([]any)
		for _, v := range violations[:min(len(violations), maxItems)] {
			violation, _ := v.(map[string]any)
			id, _ := violation["quotaId"].(string)
			if id == "" {
				continue
			}
			r := Reading{Limit: Limit{Name: named(id), Window: windowIn(id)}, Has: HasRemaining, From: "body"}
			if strings.Contains(id, "Token") {
				r.Limit.Unit = UnitTokens
			}
			if s, ok := violation["quotaValue"].(string); ok {
				if n, ok := number(s); ok && n <= maxUnits {
					r.Limit.Quota = n
					r.Has |= HasQuota
				}
			}
			fb.add(r)
		}
	}
}

func docusign(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	if strings.Contains(f.str("errorCode"), "APIINVOCATION_LIMIT") {
		ev.scope = first(ev.scope, "account")
	}
}

func sendgrid(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	errors, _ := f.at("errors").([]any)
	if first, ok := errors[0].(map[string]any); ok {
		if _, ok := first["field"]; ok && ev.scope == "" {
			ev.scope = "route"
		}
	}
}

// spikeArrest reads "Allowed rate : 5ps" and "MessageRate{messagesPerPeriod=5, periodInMicroseconds=1000000, …}".
func spikeArrest(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	r := Reading{Limit: Limit{Name: "spike-arrest"}, Has: HasQuota, From: "body"}
	figure := func(after string) (float64, string, bool) {
		_, rest, ok := strings.Cut(f.text, after)
		rest = trim(rest)
		i := 0
		for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
			i++
		}
		n, good := number(rest[:i])
		return n, rest[i:], ok && good && n <= maxUnits
	}
	if n, _, ok := figure("messagesperperiod="); ok {
		r.Limit.Quota = n
		if us, _, ok := figure("periodinmicroseconds="); ok {
			r.Limit.Window = seconds(us / 1e6)
		}
	} else if n, rest, ok := figure("allowed rate :"); ok {
		r.Limit.Quota = n
		switch {
		case strings.HasPrefix(rest, "ps"):
			r.Limit.Window = time.Second
		case strings.HasPrefix(rest, "pm"):
			r.Limit.Window = time.Minute
		}
	} else {
		return
	}
	fb.add(r)
}

// envoy: Envoy itself sends no Retry-After; the edge of Wikimedia does, and counts by user agent.
func envoy(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	if ev.hasCoarse && len(fb.Readings) == 0 && len(a.Body) == 0 {
		ev.scope = first(ev.scope, "user-agent")
	}
}

func ncbi(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	count, ok1 := f.float("count")
	limit, ok2 := f.float("limit")
	if ok1 && ok2 && count <= maxUnits && limit <= maxUnits {
		r := Reading{Limit: Limit{Quota: limit, Window: time.Second}, Used: count, Has: HasQuota | HasUsed, From: "body"}
		r.infer()
		fb.add(r)
	}
}

func openMeteo(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	name, _, _ := strings.Cut(f.text, " ")
	if w := unitSpan(name); w > 0 {
		fb.add(Reading{Limit: Limit{Name: named(name), Window: w}, Has: HasRemaining, From: "body"})
	}
}

func tmdb(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	_, rest, _ := strings.Cut(f.text, "over the allowed limit of (")
	num, _, _ := strings.Cut(rest, ")")
	if n, ok := number(num); ok && n <= maxUnits {
		fb.add(Reading{Limit: Limit{Quota: n}, Has: HasQuota | HasRemaining, From: "body"})
	}
}

// alphaVantage: the free tiers are named in a sentence.
func alphaVantage(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	quota, window, ok := proseRate(f.text)
	if !ok {
		return
	}
	fb.add(Reading{Limit: Limit{Quota: quota, Window: window}, Has: HasQuota | HasRemaining, From: "body"})
	if window >= 24*time.Hour {
		ev.rule(KindQuota)
	}
}

func trading212(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	if a.Header["X-Ratelimit-Used"] != nil {
		ev.scope = first(ev.scope, "route")
	}
}

func twitch(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	for i := range fb.Readings {
		if r := &fb.Readings[i]; r.absolute && r.Limit.Quota == 800 && r.Limit.Name == "" && r.Limit.Unit == "" {
			r.Limit.Unit = UnitPoints
		}
	}
}

// eve: the limit is "600/15m", and what is "used" is this call's cost.
func eve(a *Answer, f *facts, ev *evidence, fb *Feedback) {
	if quota := a.Header["X-Ratelimit-Limit"]; len(quota) == 0 || !strings.ContainsRune(quota[0], '/') {
		return
	}
	for i := range fb.Readings {
		if r := &fb.Readings[i]; r.Has&HasUsed != 0 && r.Has&HasRemaining != 0 {
			fb.Cost.add(UnitTokens, r.Used)
			r.Used, r.Has = 0, r.Has&^HasUsed
		}
	}
}
