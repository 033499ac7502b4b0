package heed

import (
	"math"
	"strings"
	"time"
)

// maxWait is the longest wait that a server can ask for: what is longer, or
// does not fit, is read as this ("very large"), never as nothing.
const maxWait = 10 * 365 * 24 * time.Hour

// maxItems bounds the list items read of one field, over all its lines, and maxValue
// the bytes of one item; maxLines bounds the lines of fields that are read line by line.
const (
	maxItems = 64
	maxLines = 16
	maxValue = 4096
	maxJSON  = 32 << 10
)

var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// number reads a non-negative decimal number with an optional plus, fraction
// and exponent, and nothing else: no hexadecimal, no digit separators, no
// words. Digits that do not fit give +Inf: very large is not malformed.
func number(s string) (v float64, ok bool) {
	if len(s) > 1 && s[0] == '+' {
		s = s[1:]
	}
	if s == "" || len(s) > maxValue || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	point, scale, i := false, 0, 0
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			if point {
				if scale == len(powers)-1 {
					continue // beyond what a float64 holds
				}
				scale++
			}
			v = v*10 + float64(c-'0')
		case c == '.' && !point && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9':
			point = true
		case c|0x20 == 'e' && i+1 < len(s):
			exp, ok := exponent(s[i+1:])
			if !ok {
				return 0, false
			}
			return bounded(v / powers[scale] * math.Pow10(exp)), true
		default:
			return 0, false
		}
	}
	return bounded(v / powers[scale]), true
}

func bounded(v float64) float64 {
	if !(v <= math.MaxInt64) { // 0 times 10^400 included
		return math.Inf(1)
	}
	return v
}

// exponent reads the digits after an e.
func exponent(s string) (int, bool) {
	sign := 1
	if s[0] == '+' || s[0] == '-' {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	if s == "" || len(s) > 4 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return sign * n, true
}

// seconds turns a number of seconds into a duration, rounded up to the
// nanosecond and at most maxWait.
func seconds(v float64) time.Duration {
	if v >= maxWait.Seconds() {
		return maxWait
	}
	d := v * 1e9
	// What is off by less than a rounding of the decimal fraction is exact.
	if r := math.Round(d); math.Abs(d-r) < 1e-3 {
		return time.Duration(r)
	}
	return time.Duration(math.Ceil(d))
}

// list walks the items of all lines of a field, so that it makes no difference
// how an intermediary splits or joins them.
type list struct {
	lines []string
	rest  string
	open  bool // rest belongs to a line that has begun
	left  int
	long  int // what an item may measure
}

func items(lines []string) list { return list{lines: lines, left: maxItems, long: maxValue} }

// firstItem is the value of a field that holds one.
func firstItem(lines []string) string {
	it := items(lines)
	s, _ := it.next()
	return s
}

// braced says whether a field's value is JSON.
func braced(lines []string) bool {
	for _, line := range lines {
		if line = trim(line); line != "" {
			return line[0] == '{'
		}
	}
	return false
}

// next gives the next item that is not empty and not too long.
func (l *list) next() (string, bool) {
	for l.left > 0 {
		if !l.open {
			if len(l.lines) == 0 {
				return "", false
			}
			l.rest, l.lines, l.open = l.lines[0], l.lines[1:], true
		}
		item := l.rest
		if i := comma(l.rest); i >= 0 {
			item, l.rest = l.rest[:i], l.rest[i+1:]
		} else {
			l.open = false
		}
		l.left--
		if item = trim(item); item != "" && len(item) <= l.long {
			return item, true
		}
	}
	return "", false
}

func trim(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// comma finds the comma that ends the first item of a list: outside quotes
// and brackets, and not the one of an HTTP-date.
func comma(s string) int {
	depth, quotes := 0, true
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			if !quotes {
				break
			}
			end := closing(s, i)
			if end < 0 {
				quotes = false // no quoted string, and none after it: each look to the end costs
				break
			}
			i = end
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 && !weekday(trim(s[:i])) {
				return i
			}
		}
	}
	return -1
}

// closing finds the quote that ends the string that begins at i, or -1.
func closing(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// weekday says whether s is the first word of an HTTP-date.
func weekday(s string) bool {
	switch s {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun",
		"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday":
		return true
	}
	return false
}

// item is one list item of a field that counts units.
type item struct {
	n         float64
	ok        bool // n is a count
	negative  bool
	unlimited bool
	rated     bool // "N/15m" or "N:S": the window is part of the value
	colon     bool // "N:S"
	params    bool // "N;w=S" and its like
	window    time.Duration
	used      float64 // of "used/limit"
	hasUsed   bool
	name      string
}

// readItem reads "N", "N;w=S;name=…", "name;N", "N:S", "N/15m", "N per minute"
// and "used/limit". What is none of them has ok false.
func readItem(s string) (it item) {
	head, params := s, ""
	if i := strings.IndexByte(s, ';'); i >= 0 {
		head, params = trim(s[:i]), s[i+1:]
	}
	head = unquote(head)
	if n, ok := number(head); ok {
		it.n, it.ok = n, n <= maxUnits
	} else if len(head) > 1 && head[0] == '-' {
		it.n, it.negative = number(head[1:])
		it.n = -it.n
		return it
	} else if !it.pair(head, params) {
		return it
	}
	for range maxItems {
		if params == "" {
			break
		}
		it.params = true
		i := semicolon(params)
		p := params
		if i >= 0 {
			p, params = params[:i], params[i+1:]
		} else {
			params = ""
		}
		key, value, _ := strings.Cut(trim(p), "=")
		switch key {
		case "w", "window":
			if n, ok := number(value); ok && n > 0 {
				it.window = seconds(n)
			}
		case "name":
			it.name = named(unquote(value))
		}
	}
	return it
}

// pair reads the items that are more than a number.
func (it *item) pair(head, params string) bool {
	switch head {
	case "unlimited", "Unlimited", "UNLIMITED", "infinite", "Infinity", "inf":
		it.unlimited = true
		return true
	}
	if n, ok := number(trim(params)); ok && n <= maxUnits && head != "" { // Azure: "policy;107"
		it.n, it.ok, it.name = n, true, named(head)
		it.window = windowIn(head)
		return true
	}
	if left, right, ok := strings.Cut(head, "/"); ok {
		n, ok := number(trim(left))
		if !ok || n > maxUnits {
			return false
		}
		if q, ok := number(trim(right)); ok {
			if q > maxUnits {
				return false
			}
			it.n, it.ok, it.used, it.hasUsed = q, true, n, true
			return true
		}
		if it.window = windowOf(right); it.window == 0 {
			return false
		}
		it.n, it.ok, it.rated = n, true, true
		return true
	}
	if left, right, ok := strings.Cut(head, ":"); ok {
		n, ok := number(trim(left))
		w, good := number(trim(right))
		if !ok || !good || n > maxUnits || w <= 0 {
			return false
		}
		it.n, it.ok, it.window, it.rated, it.colon = n, true, seconds(w), true, true
		return true
	}
	if left, right, ok := strings.Cut(head, " per "); ok {
		n, ok := number(trim(left))
		if it.window = windowOf(right); !ok || n > maxUnits || it.window == 0 {
			return false
		}
		it.n, it.ok, it.rated = n, true, true
		return true
	}
	return false
}

// semicolon finds the next one outside quotes, or -1.
func semicolon(s string) int {
	quotes := true
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			if !quotes {
				break
			}
			if end := closing(s, i); end >= 0 {
				i = end
			} else {
				quotes = false
			}
		case ';':
			return i
		}
	}
	return -1
}

// unquote takes the quotes off.
func unquote(s string) string {
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return s[1 : len(s)-1]
	}
	return s
}

// maxName bounds the names of limits, which live as long as their ledger.
const maxName = 128

// named gives a server's name for a limit, or nothing when it is too long.
func named(s string) string {
	if len(s) > maxName {
		return ""
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
