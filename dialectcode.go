package heed

import "strings"

// codeKind classifies an error code by its words: "userRateLimitExceeded",
// "RATE_LIMITED", "ThrottlingException", "insufficient_quota". refused: it says
// that a limit refused the call; a kind without it is trouble of another sort.
func codeKind(code string) (kind Kind, refused bool) {
	n := squash(code)
	if len(n) < 6 || len(n) > 64 {
		return KindNone, false
	}
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(n, w) {
				return true
			}
		}
		return false
	}
	switch {
	case n == "problemquotaexceeded": // of any window
		return KindPrimary, true
	case has("insufficientquota", "quotaexceeded", "quotaviolation", "quotaexhausted", "dailylimit", "monthlylimit", "billinglimit",
		"dailyquota", "usagelimitreached", "usagelimitexceeded", "outofquota", "creditsexhausted"):
		return KindQuota, true
	case has("concurren") && has("limit", "exceed", "toomany"):
		return KindConcurrency, true
	case has("ratelimit", "throttl", "toomanyrequest", "toomanywriteoperations", "requestlimitexceeded", "provisionedthroughputexceeded",
		"bandwidthlimitexceeded", "priorrequestnotcomplete", "transactioninprogressexception", "apiinvocationlimitexceeded",
		"activitylimitreached", "budgetexhausted", "resourceexhausted", "spikearrest", "tokenlimitexceeded", "keylimitexceeded", "floodwait"):
		return KindPrimary, true
	case n == "slowdown" || n == "requestthrottled" || n == "ec2throttledexception":
		return KindPrimary, true
	case has("temporarylockout", "ipbanned"):
		return KindBan, true
	case has("temporaryreducedcapacity"), n == "maxlag":
		return KindOverload, true
	case has("abnormalusagedetected"):
		return KindSecondary, true
	case has("overload", "serverbusy"):
		return KindOverload, false
	}
	return KindNone, false
}

// phrases are what refusals say in sentences, where no code does.
var phrases = [...]struct {
	text string
	kind Kind
}{
	{"secondary rate limit", KindSecondary},
	{"abuse detection", KindSecondary},
	{"error code: 1015", KindSecondary},
	{"out of call volume quota", KindQuota},
	{"exceeded your current quota", KindQuota},
	{"daily limit", KindQuota},
	{"monthly limit", KindQuota},
	{"too many concurrent", KindConcurrency},
	{"rate limit exceeded", KindPrimary},
	{"rate limit already exceeded", KindPrimary},
	{"rate limit is exceeded", KindPrimary},
	{"rate limit reached", KindPrimary},
	{"rate limited", KindPrimary},
	{"rate-limited", KindPrimary},
	{"throttle limit", KindPrimary},
	{"request limit reached", KindPrimary},
	{"request limit exceeded", KindPrimary},
	{"too many requests", KindPrimary},
	{"rate exceeded", KindPrimary},
	{"local_rate_limited", KindPrimary},
	{"throttleexceeded", KindPrimary},
}

// weigh takes what codes and sentences say as evidence. An answer that
// succeeded is a refusal only by a code, since sentences speak of limits in passing.
func (ev *evidence) weigh(f *facts) {
	for _, c := range f.codes {
		kind, refused := codeKind(c)
		if kind == KindNone || ev.status < 400 && !failed(f, c) {
			continue
		}
		if refused && (ev.status != 503 || kind != KindOverload || squash(c) != "maxlag") {
			ev.refused = true
		}
		ev.rule(kind)
	}
	if ev.status < 400 {
		if f.plain && len(f.text) < 64 && strings.HasPrefix(f.text, "error code: 1015") {
			ev.refused = true
			ev.rule(KindSecondary)
		}
		return
	}
	for _, p := range phrases {
		if strings.Contains(f.text, p.text) {
			if ev.refusable() {
				ev.refused = true
			}
			ev.rule(p.kind)
			break
		}
	}
	if strings.Contains(f.text, "your ip") || strings.Contains(f.text, "ip address") {
		ev.scope = first(ev.scope, "ip")
	}
	if ev.refusing() && (strings.Contains(f.text, "per day") || strings.Contains(f.text, " day limit") || strings.Contains(f.text, "daily")) {
		ev.rule(KindQuota)
	}
}

// rule takes a kind: what says more than "a limit" wins.
func (ev *evidence) rule(kind Kind) {
	if ev.firm || kind == KindPrimary {
		if ev.kind == KindNone {
			ev.kind = kind
		}
		return
	}
	ev.kind, ev.firm = kind, true
}

// refusable: statuses at which a sentence about limits is about this call.
func (ev *evidence) refusable() bool {
	switch ev.status {
	case 400, 402, 403, 418, 420, 429, 430, 500, 503, 509:
		return true
	}
	return false
}

// failed says whether a code in the body of a successful answer stands where
// errors stand: beside errors, error, ok:false or success:false.
func failed(f *facts, code string) bool {
	switch top := f.tree.(type) {
	case map[string]any:
		if v, ok := top["ok"].(bool); ok && !v {
			return true
		}
		if v, ok := top["success"].(bool); ok && !v {
			return true
		}
		for key := range top {
			switch squash(key) {
			case "error", "errors", "errorcode", "fault":
				return top[key] != nil && top[key] != false
			}
		}
		c, _ := top["code"].(string) // of a server-sent event
		return c == code && len(top) <= 4
	case []any:
		return false
	}
	return f.tree == nil
}
