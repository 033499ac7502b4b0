package heed

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

var updateGolden = flag.Bool("update", false, "write the files that tests compare anew")

// readErrors are the errors that people read.
func readErrors() []error {
	minute := Limit{Name: "core", Quota: 60, Window: time.Minute}
	at := june.Add(90 * time.Second)
	return []error{
		&LimitError{Scope: "https://api.test#1a2b3", Reason: ReasonHold, RetryAt: at, within: 90 * time.Second, bound: "the caller's deadline", deadline: true},
		&LimitError{Scope: "https://api.test", Reason: ReasonLimit, Limit: minute, RetryAt: at, within: 90*time.Second + 1234567, bound: "its bound (Throttle.MaxWait or Call.MaxWait)"},
		&LimitError{Scope: "https://api.test", Reason: ReasonPace, Limit: minute, bound: "its bound (Throttle.MaxWait or Call.MaxWait)"},
		&LimitError{Scope: "https://api.test", Reason: ReasonRule, Limit: Limit{Quota: 0.5, Window: time.Second, Unit: UnitTokens}, RetryAt: at, within: time.Second, bound: "the caller's deadline"},
		&LimitError{Scope: "https://api.test", Reason: ReasonLimit, RetryAt: at, within: time.Second, bound: "the caller's deadline"},
		&LimitError{Scope: "https://api.test", Reason: ReasonLimit, Limit: Limit{Name: "a\nb"}, RetryAt: at, within: time.Second, bound: "the caller's deadline"},
		&LimitError{Scope: "https://api.test", Reason: ReasonConcurrency, bound: "the caller's deadline"},
		&LimitError{Scope: "https://api.test", Reason: ReasonProbe, RetryAt: at, within: 500 * time.Millisecond, bound: "the caller's deadline"},
		&LimitError{Scope: "mine", Reason: ReasonQueue},
		&LimitError{Scope: "mine", Reason: ReasonImpossible, Limit: minute},
		&LimitError{Scope: "mine", Reason: ReasonHold, RetryAt: at},
		&LimitError{},
		&CallError{Err: errors.New("connection refused")},
		&CallError{Err: errors.New("connection refused"), Info: Info{Attempts: 1}},
		&CallError{Err: errors.New("connection refused"), Info: Info{Attempts: 7}},
		&CallError{},
		&statusError{503},
	}
}

func TestErrorsSayWhatHappenedWhyAndWhatToDo(t *testing.T) {
	var b strings.Builder
	for _, err := range readErrors() {
		fmt.Fprintln(&b, err)
	}
	const golden = "testdata/errors.golden"
	if *updateGolden {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("errors read\n%s\nwant\n%s", got, want)
	}
}

func TestEveryRefusalIsOneLineThatEndsWithAdvice(t *testing.T) {
	for _, reason := range []Reason{ReasonHold, ReasonLimit, ReasonPace, ReasonRule, ReasonConcurrency, ReasonProbe, ReasonBudget, ReasonQueue, ReasonBackoff, ReasonImpossible, ""} {
		for _, at := range []time.Time{{}, june} {
			for _, bound := range []string{"", "the caller's deadline"} {
				text := (&LimitError{Scope: "s", Reason: reason, RetryAt: at, bound: bound}).Error()
				what, next, ok := strings.Cut(text, "; ")
				if !ok || next == "" || strings.Contains(text, "\n") {
					t.Errorf("no advice in %q", text)
				}
				rest, ok := strings.CutPrefix(what, "heed: s: not sent: ")
				if !ok || rest == "" || rest[0] < 'a' || rest[0] > 'z' || strings.HasSuffix(what, " ") || strings.Contains(text, "past ;") {
					t.Errorf("a broken sentence: %q", text)
				}
			}
		}
	}
}

func TestARefusalIsErrLimitedAndATimeoutOnlyForADeadline(t *testing.T) {
	for _, deadline := range []bool{false, true} {
		err := fmt.Errorf("get: %w", &LimitError{Reason: ReasonHold, deadline: deadline})
		if !errors.Is(err, ErrLimited) || errors.Is(err, context.DeadlineExceeded) != deadline || errors.Is(err, context.Canceled) {
			t.Errorf("deadline %v: ErrLimited %v, DeadlineExceeded %v", deadline, errors.Is(err, ErrLimited), errors.Is(err, context.DeadlineExceeded))
		}
		var limited *LimitError
		if !errors.As(err, &limited) || limited.Timeout() != deadline {
			t.Errorf("deadline %v: Timeout says %v", deadline, limited.Timeout())
		}
	}
}

type slow struct{}

func (slow) Error() string { return "slow" }
func (slow) Timeout() bool { return true }

func TestACallErrorIsWhatItWraps(t *testing.T) {
	cause, last := errors.New("cause"), &statusError{503}
	err := fmt.Errorf("get: %w", &CallError{Err: errors.Join(context.Canceled, cause, last), Info: Info{Attempts: 3}})
	var status *statusError
	if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || !errors.As(err, &status) || status.status != 503 || errors.Is(err, ErrLimited) {
		t.Errorf("%v does not hold all that it should", err)
	}
	for _, x := range []struct {
		err  error
		want bool
	}{{cause, false}, {slow{}, true}, {fmt.Errorf("x: %w", slow{}), true}, {context.DeadlineExceeded, true}, {nil, false}} {
		if got := (&CallError{Err: x.err}).Timeout(); got != x.want {
			t.Errorf("Timeout of %v is %v", x.err, got)
		}
	}
}

func TestTheStoryOfACallIsFoundThroughAnyWrapping(t *testing.T) {
	info := Info{Scope: "s", Attempts: 4}
	for _, err := range []error{&LimitError{Info: info}, &CallError{Info: info}, fmt.Errorf("a: %w", fmt.Errorf("b: %w", &LimitError{Info: info}))} {
		if got := InfoOfError(err); got.Attempts != 4 || got.Scope != "s" {
			t.Errorf("of %v it is %+v", err, got)
		}
	}
	for _, err := range []error{nil, errors.New("other")} {
		if got := InfoOfError(err); got.Attempts != 0 || got.Scope != "" {
			t.Errorf("of %v it is %+v", err, got)
		}
	}
}
