// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"sort"
)

// Median returns the middle value, the mean of the two middle ones, or NaN of nothing.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := append([]float64{}, values...)
	sort.Float64s(sorted)
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// GeometricMean returns the geometric mean of positive values, or NaN of nothing. A value that is
// not positive has no logarithm; it makes the mean NaN, so that it cannot pass unnoticed.
func GeometricMean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, value := range values {
		if !(value > 0) {
			return math.NaN()
		}
		sum += math.Log(value)
	}
	return math.Exp(sum / float64(len(values)))
}

// Spread returns how far the values lie apart, relative to their median.
func Spread(values []float64) float64 {
	median := Median(values)
	if len(values) == 0 || median == 0 {
		return 0
	}
	least, most := values[0], values[0]
	for _, value := range values {
		least = math.Min(least, value)
		most = math.Max(most, value)
	}
	return (most - least) / median
}
