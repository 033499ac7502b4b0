package heed

import (
	"strings"
	"time"
)

// role is what a field says of its limit. Where a name holds several field
// words the strongest decides: "Limit-User-Remaining" is a remaining.
type role uint8

const (
	roleNone    role = iota // no field word: the value tells
	roleGlobal              // a flag
	roleScope               // who shares the limit that refused
	roleType                // a second part of the name
	roleName                // the limit's name
	roleLimit               // the quota
	roleInfo                // used/limit pairs
	rolePolicy              // the quota and its window
	roleWindow              // the span of the quota
	roleFill                // units that come back per interval
	roleUsed                // units spent
	roleUtil                // the share that is spent, 0 to 1
	roleStatus              // "allowed" or "rejected"
	roleLeft                // units that remain
	roleReset               // when the quota is whole again
	roleAfter               // the same as a delta, and finer
	roleReason              // why, or which limit refused
	roleCost                // what this call cost
	roleRetry               // the wait that the server asks for
	roleIgnored             // says nothing that is counted here
)

// fieldWord gives the role of a word, or of two words that belong together
// (both true). Noise has the role roleNone and ok true.
func fieldWord(word, next string) (r role, both, ok bool) {
	switch word {
	case "limit", "limits", "total", "max", "maximum", "quota", "allowed":
		return roleLimit, false, true
	case "capacity":
		return roleLimit, false, true
	case "burst":
		if next == "capacity" {
			return roleLimit, true, true
		}
	case "remaining", "remain", "left", "available":
		return roleLeft, false, true
	case "used", "usage", "observed", "consumed":
		return roleUsed, false, true
	case "count":
		return roleUsed, false, true
	case "reset", "resets":
		switch next {
		case "after", "in":
			return roleAfter, true, true
		case "time", "at", "date", "timestamp", "epoch":
			return roleReset, true, true
		}
		return roleReset, false, true
	case "resetafter", "resetsin":
		return roleAfter, false, true
	case "resettime", "resetat", "resetdate", "next":
		return roleReset, false, true
	case "interval", "period", "window", "renewalperiod":
		return roleWindow, false, true
	case "renewal":
		if next == "period" {
			return roleWindow, true, true
		}
	case "policy":
		return rolePolicy, false, true
	case "fillrate":
		return roleFill, false, true
	case "fill", "refill", "replenish", "restore", "replenishment":
		if next == "rate" {
			return roleFill, true, true
		}
	case "utilization", "utilisation":
		return roleUtil, false, true
	case "status":
		return roleStatus, false, true
	case "info":
		return roleInfo, false, true
	case "name", "bucket", "resource", "group", "category":
		return roleName, false, true
	case "type":
		return roleType, false, true
	case "scope":
		return roleScope, false, true
	case "global":
		return roleGlobal, false, true
	case "reason", "problem":
		return roleReason, false, true
	case "error":
		if next == "code" {
			return roleReason, true, true
		}
	case "cost", "charge", "requested", "currentrequest":
		return roleCost, false, true
	case "current":
		if next == "request" {
			return roleCost, true, true
		}
	case "retry":
		if next == "after" || next == "in" {
			return roleRetry, true, true
		}
	case "retryafter", "retryin":
		return roleRetry, false, true
	case "nearlimit", "near", "active", "source", "should", "enabled", "warning", "tier", "delay", "message", "url", "docs", "version":
		return roleIgnored, false, true
	case "this", "per", "time", "in", "current-window":
		return roleNone, false, true
	}
	return roleNone, false, false
}

// unitOf tells what is counted by a word of a limit's name.
func unitOf(word string) (Unit, bool) {
	switch word {
	case "tokens", "ratelimitbysize":
		return UnitTokens, true
	case "complexity", "points", "credits", "weight":
		return UnitPoints, true
	case "bytes", "bandwidth":
		return UnitBytes, true
	case "concurrent", "concurrency":
		return UnitConcurrent, true
	case "requests", "request", "req", "calls", "call", "queries", "orders", "order", "reads", "writes", "qps":
		return "", true
	}
	return "", false
}

// scopeOf tells who shares a limit by a word of its name.
func scopeOf(word string) string {
	switch word {
	case "global":
		return "global"
	case "route", "method", "endpoint", "operation", "userendpoint":
		return "route"
	case "user", "app", "application", "client", "org", "organization", "tenant", "account", "ip", "project", "team", "workspace", "shop", "key", "token":
		return word
	}
	return ""
}

// nameWord says whether a word before the "ratelimit" names the limit rather than its vendor.
func nameWord(word string) bool {
	if scopeOf(word) != "" || spanWord(word) != 0 {
		return true
	}
	if _, ok := unitOf(word); ok {
		return true
	}
	switch word {
	case "read", "write", "search", "upload", "download", "burst", "daily", "monthly", "api", "endpoint":
		return word != "api"
	}
	return false
}

// vendorWord is a word that names no limit where no "ratelimit" divides the name.
func vendorWord(word string) bool {
	switch word {
	case "x", "mbx", "ms", "amz", "amzn", "twilio", "toggl", "shopify", "sforce", "discourse", "stripe", "goog", "fb":
		return true
	}
	return strings.HasSuffix(word, "api") && word != "api"
}

// spanWord gives the window that a word of a name stands for: "minute",
// "daily", "today", "24hour", "5h", "1m", and fused ones such as "appmin".
func spanWord(word string) time.Duration {
	switch word {
	case "", "s", "m", "h", "d", "w", "ms", "us", "ns", "mo":
		return 0 // too short to be a word of its own
	case "today":
		return 24 * time.Hour
	case "qps":
		return time.Second
	}
	i := 0
	for i < len(word) && word[i] >= '0' && word[i] <= '9' {
		i++
	}
	if i == 0 {
		return unitSpan(word)
	}
	unit := unitSpan(word[i:])
	n, ok := number(word[:i])
	if unit < time.Second || !ok || n <= 0 || n > 1e6 {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxWait)))
}

// windowOf reads a window as a value: "15m", "60s", "minute", "1 MINUTE".
func windowOf(s string) time.Duration {
	s = trim(s)
	if len(s) > 32 {
		return 0
	}
	if d := unitSpan(s); d >= time.Second {
		return d
	}
	if d, ok := duration(s); ok {
		return d
	}
	lower := strings.ToLower(s)
	if d := unitSpan(lower); d >= time.Second {
		return d
	}
	d, _ := duration(lower)
	return d
}

// windowIn finds a window within a server's own name for a limit:
// "user_api_key_limiter_1_day", "DeleteVMScaleSet30Min",
// "GenerateRequestsPerDayPerProject", "Daily-limit", "QPS".
func windowIn(name string) time.Duration {
	if len(name) > maxName {
		return 0
	}
	var word, before string
	for rest := name; rest != ""; {
		word, rest = nextWord(rest)
		lower := strings.ToLower(word)
		if d := spanWord(lower); d >= time.Second {
			if n, ok := number(before); ok && n > 0 && n < 1e6 {
				return time.Duration(min(n*float64(d), float64(maxWait)))
			}
			return d
		}
		before = lower
	}
	return 0
}

// nextWord cuts a name at case changes, digits and punctuation.
func nextWord(s string) (word, rest string) {
	kind := func(c byte) int {
		switch {
		case c >= '0' && c <= '9':
			return 1
		case c >= 'a' && c <= 'z':
			return 2
		case c >= 'A' && c <= 'Z':
			return 3
		}
		return 0
	}
	i := 0
	for i < len(s) && kind(s[i]) == 0 {
		i++
	}
	from := i
	for i++; i < len(s); i++ {
		a, b := kind(s[i-1]), kind(s[i])
		if b == 0 || a != b && !(a == 3 && b == 2) {
			break
		}
	}
	if from >= len(s) {
		return "", ""
	}
	return s[from:min(i, len(s))], s[min(i, len(s)):]
}
