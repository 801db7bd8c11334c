// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package text

import (
	"math"
	"testing"
)

func TestSeconds(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0 s", 0.0000123: "12.3 µs", 0.00123: "1.23 ms", 0.9876: "988 ms", 1.234: "1.23 s",
		12.345: "12.3 s", 123.45: "123 s", 1234: "20.6 min",
	} {
		if got := Seconds(seconds); got != want {
			t.Errorf("Seconds(%v) = %q, want %q", seconds, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 1536: "1.50 KiB", 10 << 20: "10.0 MiB",
		300 << 20: "300 MiB", 5 << 30: "5.00 GiB",
	} {
		if got := Bytes(bytes); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for count, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234", 100000: "100,000",
	} {
		if got := Count(count); got != want {
			t.Errorf("Count(%d) = %q, want %q", count, got, want)
		}
	}
}

func TestAbout(t *testing.T) {
	for estimate, want := range map[int64]string{
		0: "0", 99: "99", 104: "100", 105: "110", 995: "1,000", 827862: "830,000", 1234567: "1,200,000", 9_960_000: "10,000,000",
		math.MaxInt64 / 10: "920,000,000,000,000,000",
	} {
		if got := About(estimate); got != want {
			t.Errorf("About(%d) = %q, want %q", estimate, got, want)
		}
	}
}

func TestCounted(t *testing.T) {
	for _, test := range []struct {
		number     int64
		noun, want string
	}{{0, "block", "0 blocks"}, {1, "address", "1 address"}, {2000, "address", "2,000 addresses"}} {
		if got := Counted(test.number, test.noun); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestRatio(t *testing.T) {
	for ratio, want := range map[float64]string{1: "1.00", 0.555: "0.56", 0.0123: "0.012", 12.3: "12.30"} {
		if got := Ratio(ratio); got != want {
			t.Errorf("Ratio(%v) = %q, want %q", ratio, got, want)
		}
	}
}

func TestBracketed(t *testing.T) {
	for line, want := range map[string]string{
		"always [madvise] never": "madvise", "[always] never": "always", "plain": "plain", "": "", "[cut": "cut",
	} {
		if got := Bracketed(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
