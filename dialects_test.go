package heed

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"sort"
	"strings"
	"testing"
	"time"
)

// sample is one recorded or documented answer and how it must be read.
type sample struct {
	ID         string              `json:"id"`
	Vendor     string              `json:"vendor"`
	Source     string              `json:"source"`
	ReceivedAt time.Time           `json:"received_at"`
	Status     int                 `json:"status"`
	Headers    map[string][]string `json:"headers"`
	Body       string              `json:"body"`
	Tag        string              `json:"tag"`
	Expect     struct {
		Rejected   bool          `json:"rejected"`
		RetryAfter *float64      `json:"retry_after_s"`
		Limits     []sampleLimit `json:"limits"`
		Kind       string        `json:"kind"`
		Scope      string        `json:"scope"`
	} `json:"expect"`
}

type sampleLimit struct {
	Name      string   `json:"name"`
	Partition string   `json:"partition"`
	Limit     *float64 `json:"limit"`
	Remaining *float64 `json:"remaining"`
	Used      *float64 `json:"used"`
	Window    *float64 `json:"window_s"`
	Reset     *float64 `json:"reset_s"`
	Unit      string   `json:"unit"`
}

// disputed are samples whose expectation is judged wrong, with the reason.
var disputed = map[string]string{}

func samples(t testing.TB) []sample { return samplesIn(t, "testdata/dialects.jsonl") }

func samplesIn(t testing.TB, path string) (all []sample) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// response makes the answer as net/http would give it.
func (s *sample) response() *http.Response {
	resp := &http.Response{StatusCode: s.Status, Header: make(http.Header), Body: http.NoBody}
	for name, lines := range s.Headers {
		for _, v := range lines {
			resp.Header.Add(name, v)
		}
	}
	if s.Body != "" {
		resp.Body = io.NopCloser(strings.NewReader(s.Body))
		resp.ContentLength = int64(len(s.Body))
	}
	return resp
}

func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.5g", math.Round(*v*1000)/1000)
}

func (l sampleLimit) String() string {
	return fmt.Sprintf("%q/%q limit %s remaining %s used %s window %s reset %s %s", l.Name, l.Partition,
		figure(l.Limit), figure(l.Remaining), figure(l.Used), figure(l.Window), figure(l.Reset), l.Unit)
}

// told puts a Feedback into the words of the samples.
func (s *sample) told(fb Feedback) (limits []string) {
	for _, r := range fb.Readings {
		l := sampleLimit{Name: r.Limit.Name, Partition: r.Limit.Partition, Unit: string(r.Limit.Unit)}
		if l.Unit == "" {
			l.Unit = "requests"
		}
		if r.Has&HasQuota != 0 {
			l.Limit = &r.Limit.Quota
		}
		if r.Has&HasRemaining != 0 {
			l.Remaining = &r.Remaining
		}
		if r.Has&HasUsed != 0 {
			l.Used = &r.Used
		}
		if r.Limit.Window > 0 {
			w := r.Limit.Window.Seconds()
			l.Window = &w
		}
		if !r.Reset.IsZero() {
			d := r.Reset.Sub(s.ReceivedAt).Seconds()
			l.Reset = &d
		}
		limits = append(limits, l.String())
	}
	sort.Strings(limits)
	return limits
}

func TestEverySampleIsReadAsItsServerMeansIt(t *testing.T) {
	readAll(t, samples(t))
}

// What the grammar was not made from: further vendors, and shapes that none is known to send.
func TestAnswersOfUnknownServersAreReadByTheSameRules(t *testing.T) {
	readAll(t, samplesIn(t, "testdata/unseen.jsonl"))
}

func readAll(t *testing.T, all []sample) {
	right := 0
	for i := range all {
		s := &all[i]
		t.Run(s.ID, func(t *testing.T) {
			if why := disputed[s.ID]; why != "" {
				t.Skip(why)
			}
			fb := ParseFeedback(s.response(), s.ReceivedAt)
			var want []string
			for _, l := range s.Expect.Limits {
				want = append(want, l.String())
			}
			sort.Strings(want)
			if got := s.told(fb); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("limits:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if fb.Limited != s.Expect.Rejected {
				t.Errorf("Limited is %v", fb.Limited)
			}
			retry := "-"
			if !fb.RetryAt.IsZero() {
				d := fb.RetryAt.Sub(s.ReceivedAt).Seconds()
				retry = figure(&d)
			}
			if want := figure(s.Expect.RetryAfter); retry != want {
				t.Errorf("RetryAt is in %s s, want %s", retry, want)
			}
			if s.Expect.Kind != "" && fb.Kind.String() != s.Expect.Kind {
				t.Errorf("Kind is %v, want %s", fb.Kind, s.Expect.Kind)
			}
			if s.Expect.Scope != "" && fb.Scope != s.Expect.Scope {
				t.Errorf("Scope is %q, want %q", fb.Scope, s.Expect.Scope)
			}
			if !t.Failed() {
				right++
			}
		})
	}
	t.Logf("%d of %d samples are read right", right, len(all))
}
