package main

import (
	"testing"
	"time"
)

func TestSizesAreRead(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "65536": 65536, "64k": 64 << 10, "64KiB": 64 << 10, "10MB": 10e6, "1.5GiB": 3 << 29, " 2 m ": 2 << 20, "1tb": 1e12, "7B": 7,
	} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || int64(b) != want {
			t.Errorf("%q is %d, %v, want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "k", "-1", "nan", "inf", "1e30", "12 apples", "1kk", "0x10p900", "9999999999T"} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken for %d", text, b)
		}
	}
}

func FuzzByteSize(f *testing.F) {
	for _, seed := range []string{"1", "64k", "1.5GiB", "NaN", "-0", "1e18", "0x1p62"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err == nil && b < 0 || err != nil && b != 0 {
			t.Errorf("%q is %d, %v", text, b, err)
		}
	})
}

func TestMeasuresAreShownShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_960: "1.0 MB", 20e6: "20.0 MB", 3e12: "3.0 TB", 5e15: "5000.0 TB"} {
		if got := showBytes(n); got != want {
			t.Errorf("%d bytes are shown as %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567: "1ms", 999 * time.Millisecond: "999ms", 1260 * time.Millisecond: "1.3s", 75400 * time.Millisecond: "1m15s", 2 * time.Hour: "2h0m0s",
	} {
		if got := showSpan(d); got != want {
			t.Errorf("%v is shown as %q, want %q", d, got, want)
		}
	}
	if got := count(1, "retry", "retries") + count(2, "retry", "retries"); got != "1 retry2 retries" {
		t.Errorf("%q", got)
	}
}
