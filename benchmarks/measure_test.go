package benchmarks

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTheMedianStandsInTheMiddle(t *testing.T) {
	for _, x := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(x.in); got != x.want {
			t.Errorf("the median of %v is %v, want %v", x.in, got, x.want)
		}
	}
}

func TestWhatIsAddedIsComparedRoundByRound(t *testing.T) {
	typical, best := added([]float64{100, 1000, 100}, []float64{150, 1060, 900})
	if typical != 60 || best != 50 {
		t.Errorf("added %v, at best %v; want 60ns and 50ns", typical, best)
	}
}

// twice sends everything two times.
type twice struct{ base http.RoundTripper }

func (c twice) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := c.base.RoundTrip(req); err != nil {
		return nil, err
	}
	return c.base.RoundTrip(req)
}

func TestAClientThatSendsTwiceAddsOneSend(t *testing.T) {
	clients := []Client{{"twice", func(base http.RoundTripper) http.RoundTripper { return twice{base} }}}
	rows, err := Measure(clients, new(Instant), Request("http://api.test/", true), Plan{Rounds: 3, Sends: 500})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Client != "twice" || rows[0].Allocs < 0.9 || rows[0].Allocs > 1.5 {
		t.Errorf("rows are %+v, want one of one allocation", rows)
	}
}

type broken struct{}

var errBroken = errors.New("broken")

func (broken) RoundTrip(*http.Request) (*http.Response, error) { return nil, errBroken }

func TestAMeasurementThatFailsSaysWhere(t *testing.T) {
	_, err := Measure(Clients(), broken{}, Request("http://api.test/", false), Plan{Rounds: 1, Sends: 1})
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "the base alone") {
		t.Errorf("error is %v", err)
	}
}

func TestTableHoldsEveryClientAndNoHostName(t *testing.T) {
	out, err := Tables(Plan{Rounds: 3, Sends: 200})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Clients() {
		if n := strings.Count(out, "| "+c.Name+" |"); n != 3 {
			t.Errorf("%s stands in %d tables, want 3:\n%s", c.Name, n, out)
		}
	}
	if !strings.Contains(out, time.Now().Format("2006-")) || !strings.Contains(out, Machine()) {
		t.Errorf("no date or machine class:\n%s", out)
	}
	t.Log("\n" + out)
}

func TestEveryClientGivesTheBasesAnswer(t *testing.T) {
	for _, c := range Clients() {
		resp, err := c.Over(new(Instant)).RoundTrip(Request("http://api.test/", true))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if resp.StatusCode != http.StatusOK || resp.Header.Get("X-RateLimit-Remaining") == "" {
			t.Errorf("%s: the answer is %d %v", c.Name, resp.StatusCode, resp.Header)
		}
		resp.Body.Close()
	}
}

func TestBothAnswersHaveTwelveFields(t *testing.T) {
	now := time.Now()
	if len(Plain(now)) != 12 || len(Answer(now)) != 12 {
		t.Errorf("%d and %d fields", len(Plain(now)), len(Answer(now)))
	}
}
