package limiter

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// contender is one line of the comparison: an algorithm with 100 units a minute.
type contender struct {
	name   string
	make   func() Core
	memory func(Core) uintptr
}

var contenders = []contender{
	{"FixedWindow", func() Core { return &FixedWindow{Limit: 100, Window: time.Minute} },
		func(Core) uintptr { return unsafe.Sizeof(FixedWindow{}) }},
	{"SlidingLog", func() Core { return &SlidingLog{Limit: 100, Window: time.Minute} },
		func(c Core) uintptr {
			return unsafe.Sizeof(SlidingLog{}) + uintptr(cap(c.(*SlidingLog).ring))*unsafe.Sizeof(entry{})
		}},
	{"SlidingCounter", func() Core { return &SlidingCounter{Limit: 100, Window: time.Minute} },
		func(Core) uintptr { return unsafe.Sizeof(SlidingCounter{}) }},
	{"TokenBucket", func() Core { return &TokenBucket{Rate: 100. / 60, Burst: 100} },
		func(Core) uintptr { return unsafe.Sizeof(TokenBucket{}) }},
	{"LeakyBucket", func() Core { return &LeakyBucket{Rate: 100. / 60, Queue: 1} },
		func(Core) uintptr { return unsafe.Sizeof(LeakyBucket{}) }},
}

// figures are what can be said of an algorithm without a stopwatch.
type figures struct {
	memory                 uintptr
	atOnce, inMilli, inMin int64
	offMean, offMost       float64 // of the limit: how far what it counts is from what the last minute holds; negative: it does not count
	over, under            float64 // shares of all decisions
}

// measured is what measure finds, found once.
var measured = sync.OnceValue(func() map[string]figures {
	all := map[string]figures{}
	for _, c := range contenders {
		all[c.name] = measure(c)
	}
	return all
})

func measure(c contender) (f figures) {
	// Everything that fits, at one instant.
	core := c.make()
	for core.Take(noon, 1).Allowed {
		f.atOnce++
	}
	var h history
	take := func(at time.Time) bool {
		ok := core.Take(at, 1).Allowed
		if ok {
			h.accept(at.UnixNano(), 1)
		}
		return ok
	}
	note := func() {
		f.inMilli, f.inMin = max(f.inMilli, h.most(int64(time.Millisecond))), max(f.inMin, h.most(int64(time.Minute)))
		f.memory = max(f.memory, c.memory(core))
		core, h = c.make(), nil
	}
	note()
	// A client who waits for the last instant before an edge, takes all, and from the edge on tries every ten milliseconds.
	edge := noon.Add(time.Minute)
	for take(edge.Add(-1)) {
	}
	for at := edge; at.Before(edge.Add(2 * time.Minute)); at = at.Add(10 * time.Millisecond) {
		for take(at) {
		}
	}
	note()
	// A client who tries all the time.
	for at := noon; at.Before(noon.Add(5 * time.Minute)); at = at.Add(100 * time.Millisecond) {
		take(at)
	}
	note()
	// Random traffic: minutes of half to twice the limit, in single requests and in bursts. Whole numbers only, so that the figures
	// are the same on every machine.
	rng := rand.New(rand.NewPCG(2031, 314))
	at, decisions, over, under, oldest, off := noon, 0, 0, 0, 0, 0.0
	for range 300 {
		gap := int64(time.Minute) / (50 + rng.Int64N(150))
		for end := at.Add(time.Minute); at.Before(end); {
			burst := 1
			if rng.IntN(10) == 0 {
				burst += rng.IntN(10)
			}
			for range burst {
				at = at.Add(time.Duration(1 + rng.Int64N(1000)))
				for oldest < len(h) && h[oldest].at <= at.UnixNano()-int64(time.Minute) {
					oldest++
				}
				spent := len(h) - oldest
				room := spent < 100
				decisions++
				r := core.Peek(at, 0)
				differs := math.Abs(r.Limit-r.Remaining-float64(spent)) / r.Limit
				off, f.offMost = off+differs, max(f.offMost, differs)
				switch allowed := take(at); {
				case allowed && !room:
					over++
				case !allowed && room:
					under++
				}
			}
			at = at.Add(time.Duration(rng.Int64N(2 * gap * int64(burst))))
		}
	}
	f.offMean, f.over, f.under = off/float64(decisions), float64(over)/float64(decisions), float64(under)/float64(decisions)
	switch core.(type) {
	case *TokenBucket, *LeakyBucket:
		f.offMean, f.offMost = -1, -1
	}
	note()
	return f
}

func (f figures) String() string {
	percent := func(share float64) string {
		if share < 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f%%", 100*share)
	}
	return fmt.Sprintf("%4d B  %7d  %7d  %8d  %6s  %6s  %6s  %6s", f.memory, f.atOnce, f.inMilli, f.inMin,
		percent(f.offMean), percent(f.offMost), percent(f.over), percent(f.under))
}

const heading = "algorithm       memory  at once  in 1 ms  in 1 min  off by  (most)    over   under  ns/decision"

// table is the comparison, with the given last column.
func table(ns func(contender) string, foot string) string {
	lines := []string{heading}
	for _, c := range contenders {
		lines = append(lines, fmt.Sprintf("%-14s  %v  %11s", c.name, measured()[c.name], ns(c)))
	}
	if foot != "" {
		lines = append(lines, "", foot)
	}
	return strings.Join(lines, "\n") + "\n"
}

// timed is what a decision takes here and now.
func timed(c contender) string {
	r := testing.Benchmark(func(b *testing.B) { benchmarkCore(b, c.make()) })
	return fmt.Sprintf("%d", r.NsPerOp())
}

// machine says what the times were measured on.
func machine() string {
	class := fmt.Sprintf("%s/%s, %d cores", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := regexp.MustCompile(`(?m)^model name\s*:\s*(.+?)\s*$`).FindSubmatch(info); m != nil {
			class += ", " + string(m[1])
		}
	}
	return fmt.Sprintf("Times: %s, %s, %s.", time.Now().UTC().Format(time.DateOnly), runtime.Version(), class)
}

// tableInDoc finds the table with its foot in the package documentation.
var tableInDoc = regexp.MustCompile(`(?m)^//\talgorithm .*\n(?:(?://\n)?//\t.*\n)*`)

// comparisonTime is what changes from machine to machine: the last column and the foot.
var comparisonTime = regexp.MustCompile(`(?m) +\d+$|\n+Times: .*`)

// TestTheComparisonInTheDocumentationIsWhatIsMeasured holds the table in doc.go, but for its times, against what the algorithms do;
// with -update it measures the times too and writes the table.
func TestTheComparisonInTheDocumentationIsWhatIsMeasured(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	found := tableInDoc.Find(doc)
	if found == nil {
		t.Fatal("doc.go has no comparison table")
	}
	if *update {
		fresh := table(timed, machine())
		t.Log("\n" + fresh)
		commented := regexp.MustCompile(`(?m)^(.+)$`).ReplaceAllString(fresh, "//\t$1")
		commented = strings.ReplaceAll(commented, "\n\n", "\n//\n")
		if err := os.WriteFile("doc.go", bytes.Replace(doc, found, []byte(commented), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := table(func(contender) string { return "0" }, "")
	got := regexp.MustCompile(`(?m)^//\t?`).ReplaceAllString(string(found), "")
	if want, got := untimed(want), untimed(got); got != want {
		t.Errorf("doc.go says\n%s\nmeasured is\n%s\nrun this test with -update if the change is meant", got, want)
	}
}

func untimed(table string) string {
	return strings.TrimSpace(comparisonTime.ReplaceAllString(table, ""))
}

// TestTheComparisonSaysWhatTheAlgorithmsPromise keeps -update from blessing a regression.
func TestTheComparisonSaysWhatTheAlgorithmsPromise(t *testing.T) {
	for _, c := range contenders {
		f := measured()[c.name]
		switch c.name {
		case "FixedWindow":
			if f.atOnce != 100 || f.inMilli != 200 || f.inMin != 200 || f.under != 0 {
				t.Errorf("%s: %v; it lets its limit through on either side of an edge, and never refuses before the limit is reached", c.name, f)
			}
		case "SlidingLog":
			if f.inMin != 100 || f.over != 0 || f.under != 0 || f.memory != 64+16*100 {
				t.Errorf("%s: %v; it is exact and holds an entry for each unit", c.name, f)
			}
		case "SlidingCounter":
			if f.inMilli > 101 || f.inMin >= 200 || f.inMin < 150 || f.offMean > 0.05 || f.over == 0 || f.over > 0.2 || f.under == 0 {
				t.Errorf("%s: %v; it is near the log for ordinary traffic, and can be led by the nose", c.name, f)
			}
		case "TokenBucket":
			if f.atOnce != 100 || f.inMin > 200 || f.inMin < 199 {
				t.Errorf("%s: %v; it lets through its capacity and then the rate", c.name, f)
			}
		case "LeakyBucket":
			if f.atOnce != 1 || f.inMilli != 1 || f.inMin > 100 {
				t.Errorf("%s: %v; it lets through at a constant rate", c.name, f)
			}
		}
	}
}

// BenchmarkComparison prints the table with the times of this machine, and reports each line's figures with its time.
func BenchmarkComparison(b *testing.B) {
	times := map[string]string{}
	for _, c := range contenders {
		b.Run(c.name, func(b *testing.B) {
			benchmarkCore(b, c.make())
			times[c.name] = fmt.Sprintf("%.0f", float64(b.Elapsed().Nanoseconds())/float64(b.N))
			f := measured()[c.name]
			b.ReportMetric(float64(f.memory), "B/client")
			b.ReportMetric(float64(f.inMin), "worst/min")
		})
	}
	b.Log("\n" + table(func(c contender) string { return times[c.name] }, machine()))
}
