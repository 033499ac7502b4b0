package heed

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"
)

// facts is what a body says, read once: codes, sentences, waits.
type facts struct {
	tree  any      // JSON, as far as it could be read
	codes []string // values of code, type, error, reason and their like
	text  string   // all sentences, in lower case
	plain bool     // the body is text, not JSON
	wait  told
	waits bool
	inner http.Header // header fields that the body quotes
}

// Bounds of reading a body.
const (
	maxDepth = 12
	maxNodes = 4096
	maxCodes = 32
	maxText  = 4096
)

// readFacts reads JSON, the JSON of a first server-sent event, XML or text.
func readFacts(body []byte) (f facts) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return f
	}
	if data := eventData(body); data != nil {
		body = data
	}
	if body[0] == '{' || body[0] == '[' {
		f.tree = parseJSON(body)
	}
	if f.tree != nil {
		nodes := maxNodes
		f.walk("", "", f.tree, 0, &nodes)
		return f
	}
	f.plain = true
	s := string(body[:min(len(body), maxText)])
	if body[0] == '<' {
		for _, tag := range [...]string{"Code", "code", "faultcode"} {
			if _, rest, ok := strings.Cut(s, "<"+tag+">"); ok {
				if code, _, ok := strings.Cut(rest, "</"); ok {
					f.code(code)
				}
			}
		}
	}
	f.say(s)
	return f
}

// eventData gives the data of the first event of a text/event-stream that looks like JSON.
func eventData(body []byte) []byte {
	if !bytes.HasPrefix(body, []byte("event:")) && !bytes.HasPrefix(body, []byte("data:")) {
		return nil
	}
	for line := range bytes.Lines(body) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if data = bytes.TrimSpace(data); len(data) > 0 {
				return data
			}
		}
	}
	return nil
}

func (f *facts) code(s string) {
	if _, problem, ok := strings.Cut(s, "problem-types#"); ok {
		s = "problem " + problem // RFC 9457 types of the IETF draft
	}
	if s = trim(s); s != "" && len(s) <= maxName && len(f.codes) < maxCodes {
		if i := strings.LastIndexByte(s, '#'); i >= 0 { // AWS: "namespace#Code"; problem types: "…#code"
			s = s[i+1:]
		}
		if i := strings.Index(s, ":http"); i > 0 { // AWS: "Code:http://…"
			s = s[:i]
		}
		f.codes = append(f.codes, s)
	}
}

func (f *facts) say(s string) {
	if room := maxText - len(f.text); room > 0 {
		s = s[:min(len(s), room)]
		if !utf8.ValidString(s) {
			s = strings.ToValidUTF8(s, " ")
		}
		f.text += strings.ToLower(s) + "\n"
	}
}

// squash leaves the letters and digits of a key or code, in lower case.
func squash(s string) string {
	plain := true
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			b.WriteByte(c | 0x20)
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteByte(c)
		}
	}
	return b.String()
}

// walk visits every value once. key is squashed, within is that of the parent.
func (f *facts) walk(key, within string, v any, depth int, nodes *int) {
	if *nodes--; *nodes < 0 || depth > maxDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if key == "headers" {
			f.quote(v)
		}
		for _, k := range sortedKeys(v) {
			name := squash(k)
			if name == "batchitemresponse" || name == "data" && depth == 0 {
				continue // answers of their own
			}
			f.walk(name, key, v[k], depth+1, nodes)
		}
	case []any:
		for _, one := range v {
			f.walk(key, within, one, depth+1, nodes)
		}
	case string:
		f.word(key, v)
	case json.Number:
		f.count(key, v.String())
	}
}

// word takes a string value.
func (f *facts) word(key, v string) {
	if ms := waitKey(key); ms != 0 {
		f.count(key, v)
		return
	}
	switch key {
	case "type", "code", "error", "errors", "reason", "status", "errorcode", "errortype", "id", "ecode", "errcode", "tag",
		"serviceerrorcode", "policyname", "statuscode", "name", "ratelimitreason", "kind", "errorname", "subcode":
		if strings.Count(v, " ") <= 3 || strings.Contains(v, "#") {
			f.code(v)
		}
		if strings.ContainsRune(v, ' ') {
			f.say(v)
		}
	case "message", "msg", "errormessage", "errordescription", "description", "detail", "details", "info", "title",
		"faultstring", "note", "information", "errorsummary", "err", "statusmessage", "documentationurl", "text":
		f.say(v)
	}
}

// waitKey tells whether a key names a wait, and in what unit.
func waitKey(key string) float64 {
	switch key {
	case "retryafter", "retryafterseconds", "retryafterinseconds", "retryafters", "retryin", "retryinseconds", "retrydelay", "retryafterdelay",
		"retrydelayseconds", "retryaftersec", "waitseconds", "secondsuntilreset", "resetsinseconds", "resetinseconds", "cooldown", "retryafterdate", "retryat", "nextretryat":
		return 1
	case "retryafterms", "retryaftermillis", "retryaftermilliseconds", "retryinms", "retrydelayms", "waitms", "resetinms":
		return 1e-3
	}
	return 0
}

// count takes a number, or a string where a number may stand.
func (f *facts) count(key, v string) {
	unit := waitKey(key)
	if unit == 0 {
		switch key {
		case "code", "errorcode", "status", "statuscode":
			f.code(v)
		}
		return
	}
	n, ok := number(v)
	switch {
	case ok && unit < 1:
		f.hint(told{delta: seconds(n * unit)})
	default:
		if t, ok := when(v, 0, timeZero); ok {
			f.hint(t)
		}
	}
}

func (f *facts) hint(t told) {
	if !f.waits || t.wait(timeZero) > f.wait.wait(timeZero) {
		f.wait, f.waits = t, true
	}
}

// quote takes header fields that the body carries (OpenRouter quotes its upstream's).
func (f *facts) quote(v map[string]any) {
	for _, k := range sortedKeys(v) {
		text := ""
		switch one := v[k].(type) {
		case string:
			text = one
		case json.Number:
			text = one.String()
		}
		if text != "" && len(f.inner) < maxFields {
			if f.inner == nil {
				f.inner = make(http.Header)
			}
			f.inner.Set(k, text)
		}
	}
}

// at finds a value by its path of keys: "error.status".
func (f *facts) at(path string) any {
	v := f.tree
	for path != "" {
		var key string
		key, path, _ = strings.Cut(path, "/")
		switch node := v.(type) {
		case map[string]any:
			v = node[key]
		case []any:
			if len(node) == 0 {
				return nil
			}
			v = node[0]
			if m, ok := v.(map[string]any); ok && key != "0" {
				v = m[key]
			}
		default:
			return nil
		}
	}
	return v
}

// float gives the number at a path.
func (f *facts) float(path string) (float64, bool) {
	switch v := f.at(path).(type) {
	case json.Number:
		return number(v.String())
	case string:
		return number(v)
	}
	return 0, false
}

func (f *facts) str(path string) string {
	s, _ := f.at(path).(string)
	return s
}

// coded says whether the body has a code, whatever its punctuation and case.
func (f *facts) coded(code string) bool {
	for _, c := range f.codes {
		if c == code || squash(c) == squash(code) {
			return true
		}
	}
	return false
}
