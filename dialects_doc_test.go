package heed

import (
	"os"
	"strings"
	"testing"
)

const dialectsHead = `# Dialects

How heed reads rate limits without being told whose they are. Generated from the table in ` + "`dialecttable.go`" + `:
run ` + "`go test -run TestTheDocumentedTableIsTheTableInTheCode -update .`" + ` after a change.

## What the grammar reads

Names are split at dashes and read word by word; the strongest field word decides what the value is, window, unit and
scope words tell the limit, and what is left of the name is the limit's own. Before ` + "`ratelimit`" + ` stands the vendor, whoever it is.

| part | words |
|---|---|
| quota | limit, total, max, quota, capacity, allowed |
| what remains | remaining, remain, left, available |
| what is used | used, usage, count, observed, consumed, utilization |
| reset | reset, resets, reset-after, resets-in, resettime, next |
| window | interval, period, window, renewalperiod; second, minutely, day, 1m, 10s, 24hour, 5h … within the name; fill rates |
| name | name, bucket, resource, group, category, type, reason |
| wait | retry-after, retryafter, retry-in, on any prefix |
| unit | tokens, complexity, points, credits, weight, bytes, concurrent |

Values: bare numbers by magnitude (seconds below ten years, else epoch seconds, ms, µs, ns), unit suffixes of the name, Go and
ISO 8601 durations, ` + "`30 seconds`" + `, RFC 3339 with or without seconds and zone, all HTTP-dates; lists, ` + "`N;w=S`, `N:S`, `N/15m`, `used/limit`" + `,
` + "`key=value`" + ` pairs, JSON; RateLimit and RateLimit-Policy of every generation of draft-ietf-httpapi-ratelimit-headers. Absolute instants are
measured against the answer's own Date. A field that cannot be read is dropped alone.

Bodies: error codes and sentences that speak of rate limits, waits (` + "`retry_after`, `retry_in_seconds`, `retryDelay`" + ` and their kin), quoted header
fields. The Transport looks at bodies of 400, 402, 403, 418, 420, 429, 430, 500, 503, 509, 529 and 598, and of successful answers where
the table below says so: at most 64 KiB and a second, restored byte for byte.

## What no grammar can know

| server | what is known of it | bodies of successful answers | source |
|---|---|---|---|
`

const dialectsTail = `
## A dialect of your own

A dialect is a name, a pattern and a function. It is called after the header has been read and before the built-in table:

` + "```go\n"

// dialectsPage is docs/dialects.md.
func dialectsPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(dialectsHead)
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, d := range dialects {
		looks := ""
		for match := range strings.FieldsSeq(d.match) {
			if looks != "" {
				looks += ", "
			}
			looks += "`" + match + "`"
		}
		b.WriteString("| " + cell.Replace(d.name) + " | " + cell.Replace(d.says) + " | " + looks + " | " + cell.Replace(d.source) + " |\n")
	}
	b.WriteString(dialectsTail)
	example, err := os.ReadFile("dialects_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(string(example), "func ExampleDialect() {\n")
	body, _, end := strings.Cut(body, "\n\t// Output:")
	if !ok || !end {
		t.Fatal("dialects_example_test.go has no ExampleDialect with an output")
	}
	for line := range strings.Lines(body + "\n") {
		if !strings.Contains(line, "answering(") { // the server of the example
			b.WriteString(strings.TrimPrefix(line, "\t"))
		}
	}
	b.WriteString("```\n\nSet `Body: true` to have the bodies of successful answers looked at as well.\n")
	return b.String()
}

func TestTheDocumentedTableIsTheTableInTheCode(t *testing.T) {
	const path = "docs/dialects.md"
	want := dialectsPage(t)
	if *updateGolden {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table says; run go test -run %s -update .", path, t.Name())
	}
}

func TestEveryRowOfTheTableHasAMarkAWordAndASource(t *testing.T) {
	for _, d := range dialects {
		if d.name == "" || d.says == "" || d.source == "" {
			t.Errorf("%q says %q, after %q", d.name, d.says, d.source)
		}
		if d.header == "" && d.code == "" && d.path == "" && d.text == "" {
			t.Errorf("%q would apply to every answer", d.name)
		}
		if d.text != strings.ToLower(d.text) || d.value != strings.ToLower(d.value) {
			t.Errorf("%q: texts and values are compared in lower case", d.name)
		}
	}
}
