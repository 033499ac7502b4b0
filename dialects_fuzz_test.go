package heed

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Fuzz targets of the whole parser and of each grammar of values. Their seeds
// are the samples of testdata/dialects.jsonl.

var fuzzNow = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// block writes a header as lines of "Name: value", sorted by nothing: a header is a map.
func block(h map[string][]string) string {
	var b strings.Builder
	for name, lines := range h {
		for _, v := range lines {
			b.WriteString(name + ": " + v + "\n")
		}
	}
	return b.String()
}

// unblock reads what block writes.
func unblock(s string) http.Header {
	h := make(http.Header)
	for line := range strings.SplitSeq(s, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			h.Add(strings.TrimSpace(name), strings.TrimPrefix(value, " "))
		}
	}
	return h
}

// sane checks what holds of every Feedback.
func sane(t *testing.T, fb Feedback, now time.Time) {
	t.Helper()
	within := func(what string, at time.Time) {
		if !at.IsZero() && (at.Before(now) || at.After(now.Add(maxWait))) {
			t.Errorf("%s is %v, now %v", what, at, now)
		}
	}
	within("RetryAt", fb.RetryAt)
	if len(fb.Readings) > 2*maxReadings {
		t.Errorf("%d readings", len(fb.Readings))
	}
	for _, r := range fb.Readings {
		within("a reset", r.Reset)
		if !(r.Remaining >= 0) || !(r.Used >= 0) || !(r.Limit.Quota >= 0) || r.Limit.Window < 0 || r.Remaining > 2*maxUnits {
			t.Errorf("figures of %+v", r)
		}
		if len(r.Limit.Name) > 2*maxName+64 || len(r.Limit.Partition) > 2*maxName {
			t.Errorf("a name of %d bytes", len(r.Limit.Name))
		}
	}
	if fb.Limited != (fb.Kind != KindNone && fb.Limited) || fb.Kind == KindNone && fb.Limited {
		t.Errorf("Limited %v with kind %v", fb.Limited, fb.Kind)
	}
	if !fb.Cost.valid() {
		t.Errorf("cost %+v", fb.Cost)
	}
}

// balanced says whether a value's quotes and brackets close within it, and no
// date is cut: then it makes no difference how a list is split into lines.
func balanced(s string) bool {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			end := closing(s, i)
			if end < 0 {
				return false
			}
			i = end
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	last := s
	for i := comma(last); i >= 0; i = comma(last) {
		last = last[i+1:]
	}
	return depth == 0 && !weekday(trim(last)) && len(s) <= maxValue
}

// joined puts all lines of each field into one, as an intermediary may.
func joined(h http.Header) (http.Header, bool) {
	out := make(http.Header)
	for name, lines := range h {
		for _, line := range lines {
			if !balanced(line) || braced(lines) {
				return nil, false
			}
		}
		if name == "Date" || name == "Age" || name == "Content-Type" || name == "Content-Encoding" {
			out[name] = lines
			continue
		}
		out[name] = []string{strings.Join(lines, ", ")}
	}
	return out, true
}

// split puts every list item on a line of its own.
func split(h http.Header) http.Header {
	out := make(http.Header)
	for name, lines := range h {
		if name == "Date" || name == "Age" || name == "Content-Type" || name == "Content-Encoding" || braced(lines) {
			out[name] = lines
			continue
		}
		for _, line := range lines {
			for i := comma(line); i >= 0; i = comma(line) {
				out[name] = append(out[name], line[:i])
				line = line[i+1:]
			}
			out[name] = append(out[name], line)
		}
	}
	return out
}

func FuzzDialects(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.Status, block(s.Headers), s.Body)
	}
	f.Fuzz(func(t *testing.T, status int, header, body string) {
		h := unblock(header)
		read := func(h http.Header) Feedback {
			resp := &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}
			before := h.Clone()
			fb := ParseFeedback(resp, fuzzNow)
			if !reflect.DeepEqual(before, h) {
				t.Fatal("the header was changed")
			}
			if got, err := io.ReadAll(resp.Body); string(got) != body || err != nil {
				t.Fatalf("the body is %d bytes, %v, want %d", len(got), err, len(body))
			}
			return fb
		}
		fb := read(h)
		sane(t, fb, fuzzNow)
		if again := read(h); !reflect.DeepEqual(fb, again) {
			t.Fatalf("read once more it says\n%+v\nnot\n%+v", again, fb)
		}
		one, ok := joined(h)
		if !ok {
			return
		}
		if other := read(one); !reflect.DeepEqual(fb, other) {
			t.Fatalf("with its lines joined it says\n%+v\nnot\n%+v", other, fb)
		}
		if other := read(split(h)); !reflect.DeepEqual(fb, other) {
			t.Fatalf("with its lines split it says\n%+v\nnot\n%+v", other, fb)
		}
	})
}

// values gives all header values of the samples as seeds.
func values(f *testing.F) {
	for _, s := range samples(f) {
		for _, lines := range s.Headers {
			for _, v := range lines {
				f.Add(v)
			}
		}
	}
}

func FuzzNumber(f *testing.F) {
	values(f)
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := number(s); ok && !(v >= 0) {
			t.Errorf("%q is %v", s, v)
		}
	})
}

func FuzzWhen(f *testing.F) {
	values(f)
	f.Fuzz(func(t *testing.T, s string) {
		for _, scale := range []time.Duration{0, time.Millisecond, time.Second, time.Minute} {
			w, ok := when(s, scale, fuzzNow)
			if at := w.local(fuzzNow, fuzzNow); ok && (at.Before(fuzzNow) || at.After(fuzzNow.Add(maxWait))) {
				t.Errorf("%q is %v", s, at)
			}
		}
	})
}

func FuzzItem(f *testing.F) {
	values(f)
	f.Fuzz(func(t *testing.T, s string) {
		for it, n := items([]string{s}), 0; ; n++ {
			one, ok := it.next()
			if !ok {
				break
			}
			got := readItem(one)
			if got.ok && (!(got.n >= 0) || got.n > maxUnits) || got.window < 0 || len(got.name) > 3*maxName {
				t.Errorf("%q is %+v", one, got)
			}
			if n > maxItems {
				t.Fatal("more items than allowed")
			}
		}
	})
}

func FuzzPolicy(f *testing.F) {
	values(f)
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" {
			return
		}
		q, ok := readPolicy(s)
		if ok && (!(q.quota >= 0) || !(q.left >= 0) || q.window < 0 || len(q.name) > maxName || len(q.partition) > maxName) {
			t.Errorf("%q is %+v", s, q)
		}
	})
}

func FuzzFieldName(f *testing.F) {
	for _, s := range samples(f) {
		for name := range s.Headers {
			f.Add(name)
		}
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, ok := parseName(name)
		if ok && (len(n.limit) > maxFieldName+1 || n.window < 0 || n.window > maxWait) {
			t.Errorf("%q is %+v", name, n)
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, s := range samples(f) {
		if s.Body != "" {
			f.Add(s.Body)
		}
	}
	f.Fuzz(func(t *testing.T, body string) {
		facts := readFacts([]byte(body))
		if len(facts.codes) > maxCodes || len(facts.text) > 4*maxText {
			t.Errorf("%d codes, %d bytes of text", len(facts.codes), len(facts.text))
		}
		if w, ok := proseWait(facts.text, fuzzNow); ok {
			if at := w.local(fuzzNow, fuzzNow); at.Before(fuzzNow) || at.After(fuzzNow.Add(maxWait)) {
				t.Errorf("the sentence asks for %v", at)
			}
		}
		if quota, window, ok := proseRate(facts.text); ok && (quota <= 0 || window <= 0) {
			t.Errorf("the sentence names %v in %v", quota, window)
		}
	})
}

// The hand path of the draft's fields reads what the grammar reads.
func FuzzPlainDraft(f *testing.F) {
	f.Add(`"a";r=1;t=2`, `"a";q=10;w=60`)
	f.Add(`"a";r=1;t=2, "b";r=5`, `"b";q=10;w=60;pk=:YQ==:, "a";q=7;qu="content-bytes", "c";q=1`)
	for _, s := range samples(f) {
		if h := s.response().Header; h["Ratelimit"] != nil {
			f.Add(h.Get("Ratelimit"), h.Get("Ratelimit-Policy"))
		}
	}
	f.Fuzz(func(t *testing.T, state, policy string) {
		fields := []field{{"Ratelimit", []string{state}}, {"Ratelimit-Policy", []string{policy}}}
		rs, ok := plainDraft(fields, fuzzNow, fuzzNow, nil)
		if !ok {
			return
		}
		var fb Feedback
		readFields(fields, &evidence{status: 200, now: fuzzNow, base: fuzzNow}, &fb)
		if !reflect.DeepEqual(fb.Readings, rs) {
			t.Errorf("the hand path reads %+v, the grammar %+v", rs, fb.Readings)
		}
	})
}

// The hand path of the usual trio reads what the grammar reads.
func FuzzPlainTrio(f *testing.F) {
	f.Add("100", "5", "60", "95", true)
	f.Add("5000", "4987", "1772361000", "", false)
	f.Fuzz(func(t *testing.T, limit, remaining, reset, used string, prefixed bool) {
		family := "Ratelimit"
		if prefixed {
			family = "X-Ratelimit"
		}
		var fields []field
		for _, v := range [...]struct{ name, value string }{{"-Limit", limit}, {"-Remaining", remaining}, {"-Reset", reset}, {"-Used", used}} {
			if v.value != "" && (v.name != "-Used" || prefixed) {
				fields = insert(fields, field{family + v.name, []string{v.value}})
			}
		}
		r, ok := plainTrio(fields, fuzzNow, fuzzNow)
		if !ok {
			return
		}
		var fb Feedback
		readFields(fields, &evidence{status: 200, now: fuzzNow, base: fuzzNow}, &fb)
		if len(fb.Readings) != 1 || !reflect.DeepEqual(fb.Readings[0], r) {
			t.Errorf("the hand path reads %+v, the grammar %+v", r, fb.Readings)
		}
	})
}
