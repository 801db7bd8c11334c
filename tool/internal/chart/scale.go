// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package chart

import (
	"math"
	"strconv"
)

// scale maps values to positions along an axis.
type scale struct {
	low, high   float64
	from, to    float64
	logarithmic bool
}

func (s scale) at(value float64) float64 {
	low, high := s.low, s.high
	if s.logarithmic {
		low, high, value = math.Log(low), math.Log(high), math.Log(value)
	}
	if high == low {
		return (s.from + s.to) / 2
	}
	share := (value - low) / (high - low)
	return s.from + share*(s.to-s.from)
}

// tickMark is a labelled place on an axis.
type tickMark struct {
	value float64
	label string
}

// linearTicks returns round values from 0 to at least high, about count of them.
func linearTicks(high float64, count int) []tickMark {
	if !(high > 0) {
		high = 1
	}
	step := niceStep(high / float64(count))
	decimals := 0
	if step < 1 {
		decimals = int(math.Ceil(-math.Log10(step) - 1e-9))
	}
	var ticks []tickMark
	for i := 0; ; i++ {
		value := float64(i) * step
		ticks = append(ticks, tickMark{value, strconv.FormatFloat(value, 'f', decimals, 64)})
		if value >= high-step*1e-9 {
			return ticks
		}
	}
}

// niceStep rounds up to 1, 2 or 5 times a power of ten.
func niceStep(raw float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, factor := range []float64{1, 2, 5} {
		if raw <= factor*power*(1+1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// ratioTicks returns values of a logarithmic axis that spans low to high, 1 included.
func ratioTicks(low, high float64) []tickMark {
	steps := []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000}
	if high/low < 2 {
		steps = []float64{0.6, 0.7, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8}
	}
	if high/low > 40 {
		steps = []float64{0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000}
	}
	var ticks []tickMark
	for _, value := range steps {
		if value >= low*0.999 && value <= high*1.001 {
			ticks = append(ticks, tickMark{value, strconv.FormatFloat(value, 'g', -1, 64)})
		}
	}
	return ticks
}

// SizeLabel writes a number of bytes in the binary unit that makes it short: 4K is 4096.
func SizeLabel(bytes float64) string {
	units := []string{"", "K", "M", "G"}
	unit := 0
	for ; bytes >= 1024 && unit+1 < len(units); unit++ {
		bytes /= 1024
	}
	return strconv.FormatFloat(bytes, 'f', -1, 64) + units[unit]
}
