package heed

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// dice is a source that a failing test can be replayed with.
func dice(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %#x", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

func TestNumbersAreDecimalDigitsWithAnOptionalFraction(t *testing.T) {
	for _, x := range []struct {
		in   string
		want float64
	}{
		{"0", 0}, {"00", 0}, {"7", 7}, {"007", 7}, {"4999", 4999}, {"9007199254740992", 1 << 53},
		{"1.5", 1.5}, {"0.25", 0.25}, {"2.0", 2}, {"10.0000000000", 10}, {"0.125", 0.125},
		{"9223372036854775807", math.Inf(1)}, {"9223372036854775808", math.Inf(1)},
		{"1" + strings.Repeat("0", 400), math.Inf(1)}, {strings.Repeat("9", 4096), math.Inf(1)},
		{strings.Repeat("0", 400) + "7", 7}, {"1." + strings.Repeat("0", 400) + "7", 1},
	} {
		got, ok := number(x.in)
		near := got == x.want || x.want == math.Inf(1) && got > 9.2e18
		if !ok || !near {
			t.Errorf("number(%.20q) = %v, %v; want %v", x.in, got, ok, x.want)
		}
	}
}

func TestWhatIsNoPlainNumberIsNoNumberAtAll(t *testing.T) {
	for _, in := range []string{
		"", " ", "-1", "-0", "++5", "+", "0x10", "1e", "1e+", "e3", "1e99999", "NaN", "nan", "Inf", "-Inf", "infinity", "1_000", "1 000", "1,5",
		".5", "5.", ".", "1.2.3", "1.-2", "12a", "a12", "１２", "٣", "½", "5s", "\x005", "5\n", strings.Repeat("1", 4097),
	} {
		if v, ok := number(in); ok {
			t.Errorf("number(%.20q) = %v, want none", in, v)
		}
	}
}

func TestANumberIsReadAsStrconvWouldReadIt(t *testing.T) {
	r := dice(t)
	for range 5000 {
		v := math.Ldexp(r.Float64(), r.IntN(50))
		digits := r.IntN(8)
		text := fmt.Sprintf("%.*f", digits, v)
		var want float64
		if _, err := fmt.Sscan(text, &want); err != nil {
			t.Fatal(err)
		}
		if got, ok := number(text); !ok || math.Abs(got-want) > 1e-12*max(1, want) {
			t.Fatalf("number(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
}

func TestAFractionOfANanosecondRoundsUp(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"0":            0,
		"0.0000000001": 1,
		"0.503":        503 * time.Millisecond,
		"1.0000000001": time.Second + 1,
		"299.997":      299997 * time.Millisecond,
		"315359999":    maxWait - time.Second,
		"315360000":    maxWait,
		"400000000":    maxWait,
	} {
		n, _ := number(in)
		if got := seconds(n); got < want || got > want+time.Microsecond || want == maxWait && got != maxWait {
			t.Errorf("%s seconds are %v, want %v", in, got, want)
		}
	}
	if got := seconds(math.Inf(1)); got != maxWait {
		t.Errorf("infinite seconds are %v, want the longest wait", got)
	}
}

func TestCountsOfAllLinesAndItemsTheMostRestrictiveWins(t *testing.T) {
	for _, x := range []struct {
		name   string
		lines  []string
		want   float64
		window time.Duration
		none   bool
	}{
		{name: "absent", none: true},
		{name: "empty", lines: []string{""}, none: true},
		{name: "blank", lines: []string{"  "}, none: true},
		{name: "one", lines: []string{"60"}, want: 60},
		{name: "with blanks", lines: []string{" \t60 "}, want: 60},
		{name: "a fraction", lines: []string{"17.5"}, want: 17.5},
		{name: "zero", lines: []string{"0"}, want: 0},
		{name: "repeated", lines: []string{"60", "60"}, want: 60},
		{name: "repeated differently", lines: []string{"60", "40", "50"}, want: 40},
		{name: "joined by a proxy", lines: []string{"60, 40, 50"}, want: 40},
		{name: "an unreadable line beside a good one", lines: []string{"many", "40"}, want: 40},
		{name: "an unreadable item beside a good one", lines: []string{"x, 40"}, want: 40},
		{name: "a sentinel", lines: []string{"-1"}, none: true},
		{name: "a sentinel beside a good one", lines: []string{"-1", "3"}, want: 3},
		{name: "negative zero", lines: []string{"-0"}, none: true},
		{name: "hex", lines: []string{"0x3C"}, none: true},
		{name: "an exponent", lines: []string{"6e1"}, want: 60},
		{name: "not a number", lines: []string{"NaN"}, none: true},
		{name: "unlimited", lines: []string{"unlimited"}, none: true},
		{name: "the most that counts by ones", lines: []string{"9007199254740992"}, want: maxUnits},
		{name: "more than counts by ones", lines: []string{"9007199254740994"}, none: true},
		{name: "more than fits", lines: []string{"1" + strings.Repeat("0", 400)}, none: true},
		{name: "more than fits beside a good one", lines: []string{"99999999999999999999, 5"}, want: 5},
		{name: "a window of its own", lines: []string{"100;w=21600"}, want: 100, window: 6 * time.Hour},
		{name: "a window with blanks", lines: []string{"100 ; w=60"}, want: 100, window: time.Minute},
		{name: "other parameters", lines: []string{`100;burst=5;comment="a";w=60`}, want: 100, window: time.Minute},
		{name: "a fraction of a second", lines: []string{"3;w=0.5"}, want: 3, window: time.Second / 2},
		{name: "a window of none", lines: []string{"100;w=0"}, want: 100},
		{name: "a window that is no number", lines: []string{"100;w=abc"}, want: 100},
		{name: "a negative window", lines: []string{"100;w=-60"}, want: 100},
		{name: "the expiring limit and its policy", lines: []string{"100, 100;w=60"}, want: 100, window: time.Minute},
		{name: "the expiring limit among policies", lines: []string{"100, 10;w=1, 100;w=60, 5000;w=3600"}, want: 100, window: time.Minute},
		{name: "the larger policy expires", lines: []string{"5000, 10;w=1, 5000;w=3600"}, want: 5000, window: time.Hour},
		{name: "policies first, where the draft has the expiring limit", lines: []string{"10;w=1, 100;w=60, 100"}, want: 100},
		{name: "policies in lines of their own", lines: []string{"100", "10;w=1", "100;w=60"}, want: 100, window: time.Minute},
		{name: "a policy of another quota: whose window it must be", lines: []string{"7, 100;w=60"}, want: 7, window: time.Minute},
		{name: "policies alone", lines: []string{"100;w=60, 50;w=3600"}, want: 50, window: time.Hour},
		{name: "policies alone in two lines", lines: []string{"100;w=60", "50;w=3600"}, want: 50, window: time.Hour},
		{name: "a named policy", lines: []string{`10, 10;w=1;name="foo"`}, want: 10, window: time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, window, ok := count(x.lines, false)
			if ok == x.none || got != x.want || window != x.window {
				t.Errorf("count is %v per %v, %v; want %v per %v, %v", got, window, ok, x.want, x.window, !x.none)
			}
		})
	}
}

func TestOfWhatIsUsedTheMostWins(t *testing.T) {
	for _, lines := range [][]string{{"3", "8", "5"}, {"3, 8, 5"}, {"8"}, {"8, -1"}} {
		if got, _, ok := count(lines, true); !ok || got != 8 {
			t.Errorf("of %q %v are used, want 8", lines, got)
		}
	}
}

// rejoined gives the same list in other lines.
func rejoined(r *rand.Rand, items []string) (lines []string) {
	for i, item := range items {
		if i == 0 || r.IntN(2) == 0 {
			lines = append(lines, item)
			continue
		}
		lines[len(lines)-1] += []string{",", ", ", " ,\t"}[r.IntN(3)] + item
	}
	return lines
}

func TestSplittingAndJoiningLinesChangesNothing(t *testing.T) {
	r := dice(t)
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	pieces := []string{"5", "60", "100", "60;w=10", "100;w=60", "-1", "x", "", "7.5", "0", "1780272005", "1780272005000",
		"99999999999999999999", "Mon, 01 Jun 2026 00:00:44 GMT", "Monday, 01-Jun-26 00:01:23 GMT", "Mon Jun  1 00:00:55 2026"}
	for range 3000 {
		var items []string
		for range 1 + r.IntN(6) {
			items = append(items, pieces[r.IntN(len(pieces))])
		}
		split, joined := items, []string{strings.Join(items, ", ")}
		mixed := rejoined(r, items)
		for _, most := range []bool{false, true} {
			a, aw, aok := count(split, most)
			for _, other := range [][]string{joined, mixed} {
				if b, bw, bok := count(other, most); a != b || aw != bw || aok != bok {
					t.Fatalf("%q counts %v per %v (%v), %q counts %v per %v (%v)", split, a, aw, aok, other, b, bw, bok)
				}
			}
		}
		for _, other := range [][]string{joined, mixed} {
			if a, b := latest(split, now, now), latest(other, now, now); !a.Equal(b) {
				t.Fatalf("Retry-After %q is %v, %q is %v", split, a, other, b)
			}
			a, aabs := reset(split, now, now)
			if b, babs := reset(other, now, now); !a.Equal(b) || aabs != babs {
				t.Fatalf("reset %q is %v, %q is %v", split, a, other, b)
			}
		}
	}
}

func TestABareNumberSaysByItsSizeWhatItIs(t *testing.T) {
	for _, x := range []struct {
		n     float64
		delta time.Duration
		at    time.Time
		none  bool
	}{
		{n: 0}, {n: 1, delta: time.Second}, {n: 3600, delta: time.Hour},
		{n: 3.19e8, delta: maxWait}, {n: 3.2e8, none: true}, {n: 8.99e8, none: true},
		{n: 9e8, at: time.Unix(9e8, 0)}, {n: 1780272000, at: time.Unix(1780272000, 0)},
		{n: 1780272000.5, at: time.Unix(1780272000, 5e8)}, {n: 9.99e9, at: time.Unix(9.99e9, 0)},
		{n: 1e10, none: true}, {n: 8.99e11, none: true},
		{n: 1780272000001, at: time.UnixMilli(1780272000001)}, {n: 1e13, none: true},
		{n: 1780272000000001, at: time.UnixMicro(1780272000000001)}, {n: 1e16, none: true},
		{n: 1780272000000000000, at: time.Unix(1780272000, 0)}, {n: math.MaxInt64, none: true}, {n: math.Inf(1), none: true},
	} {
		got, ok := magnitude(x.n)
		if ok == x.none || got.delta != x.delta || x.at.IsZero() != got.at.IsZero() || !got.at.Equal(x.at) {
			t.Errorf("%v is %v or %v (%v); want %v or %v (%v)", x.n, got.delta, got.at, ok, x.delta, x.at, !x.none)
		}
	}
}

func TestTheThreeFormsOfAnHTTPDateAreReadInUTC(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	want := time.Date(2026, 6, 1, 0, 0, 5, 0, time.UTC)
	for _, in := range []string{"Mon, 01 Jun 2026 00:00:05 GMT", "Monday, 01-Jun-26 00:00:05 GMT", "Mon Jun  1 00:00:05 2026"} {
		if got, ok := httpDate(in, now); !ok || !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%q is %v, %v; want %v", in, got, ok, want)
		}
	}
}

func TestWhatIsNoHTTPDateIsRefused(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for _, in := range []string{
		"", "Mon", "Mon, 01 Jun 2026 00:00:05", "mon, 01 jun 2026 00:00:05 gmt", "Mon, 01 Jun 2026 00:00:05 UTC",
		"Mon, 01 Jun 2026 00:00:05 +0200", "Mon, 01 Jun 2026 00:00:60 GMT", "Mon, 01 Jun 2026 24:00:00 GMT", "Mon, 01 Jun 2026 00:60:00 GMT",
		"Tue, 31 Feb 2026 00:00:00 GMT", "Sun, 29 Feb 2026 00:00:00 GMT", "Mon, 00 Jun 2026 00:00:00 GMT", "Mon, 32 Jun 2026 00:00:00 GMT",
		"Mon, 1 Jun 2026 00:00:05 GMT", "Xyz, 01 Jun 2026 00:00:05 GMT", "unM, 01 Jun 2026 00:00:05 GMT", "Mon, 01 anF 2026 00:00:05 GMT",
		"Mon, 01 Jun 20x6 00:00:05 GMT", "Mon, 01 Jun 2026 0a:00:05 GMT", "Monday, 01-Jun-26 00:00:05 PST", "Monday, 01-Jun-26 00:00:05 EST",
		"Monday, 01-Jun-26 00:00:05 CEST", "2026-06-01T00:00:05Z", "2026-06-01",
	} {
		if got, ok := httpDate(in, now); ok {
			t.Errorf("%q is read as %v", in, got)
		}
	}
}

func TestATwoDigitYearIsTheOneWithinFiftyYears(t *testing.T) {
	for _, x := range []struct {
		now, in string
		want    int
	}{
		{"2026", "Monday, 01-Jun-26 00:00:05 GMT", 2026},
		{"2026", "Sunday, 06-Nov-94 08:49:37 GMT", 1994},
		{"2026", "Monday, 01-Jan-68 00:00:00 GMT", 2068},
		{"2026", "Monday, 01-Jan-70 00:00:00 GMT", 2070},
		{"2026", "Monday, 01-Jan-75 00:00:00 GMT", 2075},
		{"2026", "Monday, 01-Jan-78 00:00:00 GMT", 1978},
		{"2026", "Monday, 01-Jan-00 00:00:00 GMT", 2000},
		{"2000", "Monday, 01-Jan-49 00:00:00 GMT", 2049},
		{"2000", "Monday, 01-Jan-51 00:00:00 GMT", 1951},
		{"2090", "Monday, 01-Jan-05 00:00:00 GMT", 2105},
	} {
		now, _ := time.Parse("2006-01", x.now+"-02")
		if got, ok := httpDate(x.in, now); !ok || got.Year() != x.want {
			t.Errorf("in %s %q is %v, want the year %d", x.now, x.in, got, x.want)
		}
	}
}

func TestTheFastDateIsTheStandardLibrarys(t *testing.T) {
	r := dice(t)
	for range 5_000 {
		// 1970 to 2200
		want := time.Unix(r.Int64N(7_258_118_400), 0).UTC()
		text := want.Format(http.TimeFormat)
		got, ok := imfFixdate(text)
		if !ok || !got.Equal(want) {
			t.Fatalf("%q is %v, %v; want %v", text, got, ok, want)
		}
	}
}

func TestTheFastDateTakesNothingThatTheStandardLibraryRefuses(t *testing.T) {
	r := dice(t)
	letters := "0123456789 ,:GMTSunFeb-aZ"
	taken := 0
	for range 10_000 {
		text := []byte(time.Unix(r.Int64N(7_258_118_400), 0).UTC().Format(http.TimeFormat))
		for range 1 + r.IntN(2) {
			text[r.IntN(len(text))] = letters[r.IntN(len(letters))]
		}
		got, ok := imfFixdate(string(text))
		want, err := http.ParseTime(string(text))
		if ok && (err != nil || !got.Equal(want)) {
			t.Fatalf("%q is %v, but the standard library has %v, %v", text, got, want, err)
		}
		if ok {
			taken++
		}
	}
	if taken < 20 {
		t.Errorf("only %d of the altered dates were valid: the test tests nothing", taken)
	}
}

func TestReadingACommonDateAllocatesNothing(t *testing.T) {
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := httpDate("Mon, 01 Jun 2026 00:00:05 GMT", now); !ok {
			t.Fatal("not read")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestWindowsAreFoundAmongAnyParametersButNotWithoutEnd(t *testing.T) {
	many := slices.Repeat([]string{"a=b"}, 2*maxItems)
	if got := readItem("9;" + strings.Join(append(many, "w=60"), ";")).window; got != 0 {
		t.Errorf("parameter %d is still read: %v", 2*maxItems, got)
	}
	if got := readItem("9;a;;w=60").window; got != time.Minute {
		t.Errorf("window is %v behind empty parameters", got)
	}
	if got := readItem("9;w=1" + strings.Repeat("0", 400)).window; got != maxWait {
		t.Errorf("a window that does not fit is %v", got)
	}
}
