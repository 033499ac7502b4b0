package heed

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRulesMatchByMethodHostAndPath(t *testing.T) {
	for _, x := range []struct {
		pattern, method, url string
		want                 bool
	}{
		{"api.test/", "GET", "https://api.test/a/b", true},
		{"api.test/", "GET", "https://api.test", true},
		{"api.test/", "GET", "https://api.test:8443/a", true},
		{"api.test/", "GET", "https://API.Test/a", true},
		{"API.Test/", "GET", "https://api.test/a", true},
		{"api.test/", "GET", "https://other.test/a", false},
		{"api.test/", "GET", "https://sub.api.test/a", false},
		{"/", "DELETE", "https://any.test/a", true},
		{"GET api.test/", "GET", "https://api.test/a", true},
		{"GET Api.Test/", "", "https://api.test/a", true},
		{"GET api.test/", "HEAD", "https://api.test/a", true},
		{"GET api.test/", "POST", "https://api.test/a", false},
		{"POST api.test/items", "POST", "https://api.test/items?q=1", true},
		{"api.test/items/{id}", "GET", "https://api.test/items/7", true},
		{"api.test/items/{id}", "GET", "https://api.test/items/a%2Fb", true},
		{"api.test/items/{id}", "GET", "https://api.test/items/7/parts", false},
		{"api.test/items/{id}", "GET", "https://api.test/items", false},
		{"api.test/items/{id}/parts/{rest...}", "GET", "https://api.test/items/7/parts/a/b", true},
		{"api.test/items/{$}", "GET", "https://api.test/items/", true},
		{"api.test/items/{$}", "GET", "https://api.test/items/7", false},
		{"api.test/{$}", "GET", "https://api.test", true},
		{"/Items", "GET", "https://api.test/items", false},
		{"api.test/a", "GET", "https://api.test/x/../a", true},
	} {
		rs, err := compileRules([]Rule{{Match: x.pattern}})
		if err != nil {
			t.Fatalf("%q: %v", x.pattern, err)
		}
		u, err := url.Parse(x.url)
		if err != nil {
			t.Fatal(err)
		}
		hit := rs.match(&http.Request{Method: x.method, URL: u})
		if (len(hit) == 1) != x.want {
			t.Errorf("%q matches %s %s: %v, want %v", x.pattern, x.method, x.url, len(hit) == 1, x.want)
		}
	}
}

func TestEveryRuleThatMatchesApplies(t *testing.T) {
	rs, err := compileRules([]Rule{{Match: "api.test/"}, {Match: "POST api.test/"}, {Match: "api.test/items/{id}"}, {Match: "/"}, {Match: "api.test/items/7"}})
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequest("GET", "http://api.test/items/7", nil)
	if got := rs.match(req); !slices.Equal(got, []int{0, 2, 3, 4}) {
		t.Errorf("rules %v match, want 0, 2, 3 and 4", got)
	}
	req.Host = "elsewhere.test"
	if got := rs.match(req); !slices.Equal(got, []int{3}) {
		t.Errorf("with another Host rules %v match, want 3", got)
	}
	if got := rules(nil).match(req); got != nil {
		t.Errorf("of no rules %v match", got)
	}
}

func TestAllMistakesOfAllRulesAreToldAtOnce(t *testing.T) {
	_, err := compileRules([]Rule{
		{Match: "api.test/", Limits: []Limit{{Quota: 5, Window: time.Second}}},
		{Match: ""},
		{Match: "GET"},
		{Match: "api.test:8080/"},
		{Match: "api.test/{id"},
		{Match: "/", Limits: []Limit{{}, {Quota: -1, Window: -1, Burst: -1, Algorithm: 99}, {Quota: math.NaN(), Window: 1, Burst: math.NaN()}, {Quota: math.Inf(1), Window: 1}}},
		{Match: "/", Cost: Cost{Tokens: -1}},
		{Match: "/", Cost: Cost{Points: math.NaN()}},
	})
	if err == nil {
		t.Fatal("no mistake was found")
	}
	text := err.Error()
	for _, want := range []string{
		"Rules[1]: Match \"\"", "Rules[2]: Match", "Rules[3]: Match \"api.test:8080/\" names a port", "Rules[4]: Match",
		"Rules[5]: Limits[0].Quota is 0", "Rules[5]: Limits[0].Window is 0s", "Rules[5]: Limits[1].Quota is -1", "Rules[5]: Limits[1].Window is -1ns",
		"Rules[5]: Limits[1].Burst is -1", "Rules[5]: Limits[1].Algorithm is 99", "Rules[5]: Limits[2].Quota is NaN", "Rules[5]: Limits[2].Burst is NaN",
		"Rules[5]: Limits[3].Quota is +Inf", "Rules[6]: Cost", "Rules[7]: Cost",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing is said of %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "Rules[0]") {
		t.Errorf("the good rule is blamed:\n%s", text)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "heed: Throttle.Rules[") {
			t.Errorf("a mistake does not say where: %s", line)
		}
	}
	if err := (&Transport{Throttle: Throttle{Rules: []Rule{{}, {Match: "x:1/"}}}}).Validate(); err == nil || strings.Count(err.Error(), "Rules[") != 2 {
		t.Errorf("Validate says %v, want both mistakes", err)
	}
}

func TestCompiledRulesAreACopy(t *testing.T) {
	in := []Rule{{Match: "/", Limits: []Limit{{Quota: 5, Window: time.Second}}}}
	rs, err := compileRules(in)
	if err != nil {
		t.Fatal(err)
	}
	in[0].Limits[0].Quota = 1000
	if rs[0].Limits[0].Quota != 5 {
		t.Error("a later change of the configuration reached the rules")
	}
}

// arrivals drives a meter as fast as it lets go, in random steps, and gives when how much went.
func arrivals(t *testing.T, l Limit, span time.Duration) (at []time.Duration, cost []float64) {
	r, m := dice(t), newMeter(l)
	for now := time.Duration(0); now < span && len(at) < 5000; {
		c := Cost{Requests: float64(1 + r.IntN(3))}
		d, impossible := m.wait(june.Add(now), c)
		switch {
		case impossible:
			c = one
			if d, _ = m.wait(june.Add(now), c); d > 0 {
				now += d
			}
		case d > 0:
			now += d
			again, _ := m.wait(june.Add(now), c)
			if now += again; again > time.Microsecond { // tokens are floats
				t.Fatalf("%+v: after the wait of %v another of %v", l, d, again)
			}
		}
		if d, _ := m.wait(june.Add(now), c); d == 0 {
			m.spend(june.Add(now), c)
			at, cost = append(at, now), append(cost, c.Requests)
		}
		if r.IntN(4) == 0 {
			now += time.Duration(r.Int64N(int64(l.Window) / 2))
		}
	}
	return at, cost
}

func TestByDefaultNeverMoreThanTheQuotaGoesInAnyWindow(t *testing.T) {
	for _, quota := range []float64{1, 2.5, 7, 60} {
		l := Limit{Quota: quota, Window: 10 * time.Second}
		at, cost := arrivals(t, l, time.Hour)
		sum, first := 0.0, 0
		for i := range at {
			sum += cost[i]
			for at[first] <= at[i]-l.Window {
				sum -= cost[first]
				first++
			}
			if sum > quota {
				t.Fatalf("quota %v: %v within the window up to %v", quota, sum, at[i])
			}
		}
		if total := float64(len(at)); total < 100 {
			t.Errorf("quota %v: only %v went", quota, total)
		}
	}
}

func TestEachAlgorithmKeepsItsOwnBound(t *testing.T) {
	const window = 10 * time.Second
	for _, x := range []struct {
		a     Algorithm
		burst float64
		bound float64 // in any window
	}{
		{AlgorithmFixedWindow, 0, 40}, {AlgorithmSlidingLog, 0, 20}, {AlgorithmSlidingCounter, 0, 40},
		{AlgorithmTokenBucket, 0, 41}, {AlgorithmTokenBucket, 5, 26}, {AlgorithmUnknown, 5, 26}, {AlgorithmLeakyBucket, 5, 26}, {AlgorithmLeakyBucket, 0, 22},
	} {
		at, cost := arrivals(t, Limit{Quota: 20, Window: window, Burst: x.burst, Algorithm: x.a}, 20*time.Minute)
		sum, most, first := 0.0, 0.0, 0
		for i := range at {
			sum += cost[i]
			for at[first] <= at[i]-window {
				sum -= cost[first]
				first++
			}
			most = max(most, sum)
		}
		if most > x.bound || most < 10 {
			t.Errorf("algorithm %d with burst %v: up to %v in a window, want at most %v", x.a, x.burst, most, x.bound)
		}
	}
}

func TestACostThatNeverFitsIsImpossibleForEveryAlgorithm(t *testing.T) {
	for a := AlgorithmUnknown; a <= AlgorithmLeakyBucket; a++ {
		for _, burst := range []float64{0, 5} {
			m := newMeter(Limit{Quota: 10, Window: time.Minute, Burst: burst, Algorithm: a})
			if _, impossible := m.wait(june, Cost{Requests: 1e6}); !impossible {
				t.Errorf("algorithm %d, burst %v: a million of ten is possible", a, burst)
			}
			if d, impossible := m.wait(june, one); d != 0 || impossible {
				t.Errorf("algorithm %d, burst %v: the first waits %v, impossible %v", a, burst, d, impossible)
			}
			if d, impossible := m.wait(june, Cost{Tokens: 1e9}); d != 0 || impossible {
				t.Errorf("algorithm %d, burst %v: another unit waits %v", a, burst, d)
			}
		}
	}
}

func TestABucketOfBillionsHoldsBillions(t *testing.T) {
	m := newMeter(Limit{Quota: 1e11, Window: time.Hour, Unit: UnitBytes, Algorithm: AlgorithmTokenBucket})
	if d, impossible := m.wait(june, Cost{Bytes: 5e10}); d != 0 || impossible {
		t.Errorf("half of it waits %v, impossible %v", d, impossible)
	}
}

func TestABucketTakesBackWhatWasNeverSentAndAWindowKeepsIt(t *testing.T) {
	for a, back := range map[Algorithm]bool{AlgorithmTokenBucket: true, AlgorithmSlidingLog: false, AlgorithmFixedWindow: false} {
		m := newMeter(Limit{Quota: 1, Window: time.Minute, Algorithm: a})
		m.spend(june, one)
		if d, _ := m.wait(june, one); d == 0 {
			t.Errorf("algorithm %d: nothing was spent", a)
		}
		m.refund(june, one)
		if d, _ := m.wait(june, one); (d == 0) != back {
			t.Errorf("algorithm %d: after the refund the wait is %v", a, d)
		}
		for range 10 {
			m.refund(june, one) // never more than was there
		}
		m.spend(june, one)
		if d, _ := m.wait(june, one); d == 0 {
			t.Errorf("algorithm %d: refunds made units", a)
		}
	}
}

func TestWhatCostMoreThanWasLeftIsADebt(t *testing.T) {
	m := newMeter(Limit{Quota: 60, Window: time.Minute, Burst: 10})
	m.spend(june, Cost{Requests: 8})
	m.spend(june, Cost{Requests: 5})
	if d, _ := m.wait(june, one); d.Round(time.Millisecond) != 4*time.Second {
		t.Errorf("3 in debt at one a second the wait is %v, want 4s", d)
	}
	m.refund(june, Cost{Requests: 1})
	if d, _ := m.wait(june, one); d.Round(time.Millisecond) != 3*time.Second {
		t.Errorf("2 in debt the wait is %v, want 3s", d)
	}
	log := newMeter(Limit{Quota: 10, Window: time.Minute})
	log.spend(june, Cost{Requests: 8})
	log.spend(june, Cost{Requests: 5})
	if d, _ := log.wait(june, one); d != time.Minute {
		t.Errorf("a log with all spent makes wait %v", d)
	}
}

func TestAMeterIsWholeWhenNothingIsSpent(t *testing.T) {
	for a := AlgorithmUnknown; a <= AlgorithmLeakyBucket; a++ {
		for _, burst := range []float64{0, 5} {
			name := fmt.Sprintf("algorithm %d, burst %v", a, burst)
			m := newMeter(Limit{Quota: 10, Window: time.Minute, Burst: burst, Algorithm: a})
			if !m.whole(june) {
				t.Errorf("%s: not whole at first", name)
			}
			m.spend(june, one)
			if m.whole(june) {
				t.Errorf("%s: whole with one spent", name)
			}
			if !m.whole(june.Add(3 * time.Minute)) {
				t.Errorf("%s: not whole three windows later", name)
			}
		}
	}
}

func TestALimitOfOneAMinuteDoesNotDrift(t *testing.T) {
	for _, l := range []Limit{{Quota: 1, Window: time.Minute}, {Quota: 1, Window: time.Minute, Burst: 1}} {
		m, now := newMeter(l), june
		for range 1000 {
			m.spend(now, one)
			d, _ := m.wait(now, one)
			now = now.Add(d)
			if d, _ := m.wait(now, one); d != 0 {
				t.Fatalf("another wait of %v", d)
			}
		}
		if drift := now.Sub(june) - 1000*time.Minute; drift < 0 || drift > time.Millisecond {
			t.Errorf("%+v: after 1000 minutes it is off by %v", l, drift)
		}
	}
}
