package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// byteSize is a number of bytes on the command line: 65536, 64k, 10MB, 1.5GiB.
type byteSize int64

// UnmarshalText reads a size. A letter alone and KiB mean 1024, kB means 1000.
func (b *byteSize) UnmarshalText(text []byte) error {
	s := strings.ToLower(strings.TrimSpace(string(text)))
	number := strings.TrimRight(s, "bikmgt")
	unit := strings.TrimSpace(s[len(number):])
	factor, ok := map[string]float64{
		"": 1, "b": 1,
		"k": 1 << 10, "kib": 1 << 10, "kb": 1e3,
		"m": 1 << 20, "mib": 1 << 20, "mb": 1e6,
		"g": 1 << 30, "gib": 1 << 30, "gb": 1e9,
		"t": 1 << 40, "tib": 1 << 40, "tb": 1e12,
	}[unit]
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	// Written so that NaN fails as well.
	if !ok || err != nil || !(n >= 0 && n*factor < 1<<62) {
		return fmt.Errorf("%q is not a size; write a number of bytes, or 64k, 10MB, 1GiB", printable(string(text)))
	}
	*b = byteSize(n * factor)
	return nil
}

// showBytes writes a size for people, in decimal units.
func showBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), 0
	for value >= 999.95 && unit < 4 {
		value /= 1000
		unit++
	}
	return fmt.Sprintf("%.1f %cB", value, " kMGT"[unit])
}

// showSpan writes a duration for people: no more precise than they can use.
func showSpan(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// count writes a number and its noun.
func count(n int64, noun, plural string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural)
}
