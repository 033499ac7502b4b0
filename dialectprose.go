package heed

import (
	"strings"
	"time"
)

// proseWait finds a wait in a sentence: "try again in 56 seconds", "retry after
// 2025-06-01T10:12:34Z", "replenished in 07:01:20", "in one minute". text is in lower case.
func proseWait(text string, now time.Time) (told, bool) {
	for _, lead := range [...]string{"try again in ", "try again after ", "retry after ", "retry in ", "replenished in ", "wait for ", "please wait ", "available in ", "resets in ", "reset in "} {
		_, rest, ok := strings.Cut(text, lead)
		if !ok {
			continue
		}
		rest = rest[:min(len(rest), 48)]
		if t, ok := leading(rest, now); ok {
			return t, true
		}
	}
	return told{}, false
}

// leading reads the wait that a text begins with.
func leading(s string, now time.Time) (told, bool) {
	words := strings.Fields(strings.NewReplacer("\n", " ", ",", " ", "\"", " ", ")", " ").Replace(s))
	if len(words) == 0 {
		return told{}, false
	}
	for i := range words {
		words[i] = strings.TrimRight(words[i], ".;!")
	}
	one := words[0]
	if one == "approximately" || one == "about" {
		if words = words[1:]; len(words) == 0 {
			return told{}, false
		}
		one = words[0]
	}
	if d, ok := timeSpan(one); ok {
		return told{delta: d}, true
	}
	if at, ok := date(strings.ToUpper(one), now); ok {
		return told{at: at}, true
	}
	if one == "one" {
		one = "1"
	}
	if n, ok := number(one); ok {
		if len(words) > 1 {
			if unit := unitSpan(words[1]); unit > 0 {
				return told{delta: seconds(n * unit.Seconds())}, true
			}
		}
		return magnitude(n)
	}
	if d, ok := duration(one); ok {
		return told{delta: d}, true
	}
	return told{}, false
}

// timeSpan reads "hh:mm:ss" and "d.hh:mm:ss", as .NET writes a TimeSpan.
func timeSpan(s string) (time.Duration, bool) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 || len(s) > 24 {
		return 0, false
	}
	days := 0.0
	if d, h, ok := strings.Cut(parts[0], "."); ok {
		n, ok := number(d)
		if !ok {
			return 0, false
		}
		days, parts[0] = n, h
	}
	h, ok1 := number(parts[0])
	m, ok2 := number(parts[1])
	s2, ok3 := number(parts[2])
	if !ok1 || !ok2 || !ok3 || m >= 60 || s2 >= 60 {
		return 0, false
	}
	return seconds(days*86400 + h*3600 + m*60 + s2), true
}

// proseRate finds a rate in a sentence: "5 calls per minute", "25 requests per
// day", "(1 request/ second)". text is in lower case.
func proseRate(text string) (quota float64, window time.Duration, ok bool) {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r == ' ' || r == '(' || r == ')' || r == '\n' || r == ',' || r == '/' || r == ':' || r == ';'
	})
	slash := strings.ContainsRune(text, '/')
	for i := 0; i+2 < len(words) && i < maxText; i++ {
		n, good := number(words[i])
		if !good || n <= 0 || n > maxUnits {
			continue
		}
		j := i + 1
		for j < len(words) && j < i+3 && words[j] != "per" {
			if _, known := unitOf(words[j]); !known && words[j] != "api" {
				break
			}
			j++
		}
		if j == i+1 && words[j] != "per" || j >= len(words) {
			continue
		}
		if words[j] == "per" || words[j] == "a" {
			j++
		} else if !slash {
			continue
		}
		if j >= len(words) {
			continue
		}
		times := 1.0
		if k, ok := number(words[j]); ok && j+1 < len(words) {
			times = k
			j++
		}
		if w := unitSpan(strings.TrimRight(words[j], ".;!")); w >= time.Second {
			return n, seconds(times * w.Seconds()), true
		}
	}
	return 0, 0, false
}
