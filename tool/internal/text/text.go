// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package text writes quantities and commands for people.
package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Seconds writes a time with three significant digits.
func Seconds(seconds float64) string {
	switch magnitude := math.Abs(seconds); {
	case magnitude == 0:
		return "0 s"
	case magnitude < 1e-3:
		return significant(seconds*1e6) + " µs"
	case magnitude < 1:
		return significant(seconds*1e3) + " ms"
	case magnitude < 600:
		return significant(seconds) + " s"
	default:
		return significant(seconds/60) + " min"
	}
}

// Bytes writes a size in the binary unit that fits.
func Bytes(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value := float64(bytes)
	unit := 0
	for ; math.Abs(value) >= 1024 && unit+1 < len(units); unit++ {
		value /= 1024
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", bytes)
	}
	return significant(value) + " " + units[unit]
}

// Count writes a number with its thousands apart.
func Count(count int64) string {
	digits := strconv.FormatInt(count, 10)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	var out strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteRune(digit)
	}
	return sign + out.String()
}

// About writes an estimate: two significant digits, with thousands apart.
func About(estimate int64) string {
	const mostDigits = 100
	unit := int64(1)
	for estimate/unit >= mostDigits {
		unit *= 10
	}
	return Count(int64(math.Round(float64(estimate)/float64(unit))) * unit)
}

// Counted writes a number of things, whose name is one in the singular that takes an s, or es after an s.
func Counted(number int64, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return Count(number) + " " + noun + "s"
}

// Bracketed returns the chosen word of a line like "always [madvise] never", or the whole line
// where none is.
func Bracketed(line string) string {
	_, rest, found := strings.Cut(line, "[")
	if !found {
		return line
	}
	word, _, _ := strings.Cut(rest, "]")
	return word
}

// Ratio writes a ratio with two decimals, three where it is small.
func Ratio(ratio float64) string {
	if math.Abs(ratio) < 0.1 {
		return strconv.FormatFloat(ratio, 'f', 3, 64)
	}
	return strconv.FormatFloat(ratio, 'f', 2, 64)
}

// significant writes three significant digits, and all digits before the point.
func significant(value float64) string {
	decimals := 2
	if magnitude := math.Abs(value); magnitude >= 99.95 {
		decimals = 0
	} else if magnitude >= 9.995 {
		decimals = 1
	}
	return strconv.FormatFloat(value, 'f', decimals, 64)
}
