// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"sort"

	"tcm/internal/text"
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

// Comparison is how one side of an interleaved benchmark relates to the other: the ratios of the
// runs of each round.
type Comparison struct {
	// Ratio is the median.
	Ratio float64 `json:"ratio"`
	// Low and High bound the true median with a confidence of at least 90 %, where there are rounds
	// enough; else they are the least and the largest ratio.
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
}

// LeastRounds is the number of rounds from which on a difference can be told from chance: that all
// of fewer ratios lie on one side of 1 has a probability of more than a tenth.
const LeastRounds = 5

// Compare takes two values of each round.
func Compare(own, base []float64) Comparison {
	var ratios []float64
	for i := range min(len(own), len(base)) {
		if own[i] > 0 && base[i] > 0 {
			ratios = append(ratios, own[i]/base[i])
		}
	}
	if len(ratios) == 0 {
		return Comparison{}
	}
	sort.Float64s(ratios)
	left := outside(len(ratios))
	return Comparison{Ratio: Median(ratios), Low: ratios[left], High: ratios[len(ratios)-1-left], Rounds: len(ratios)}
}

// outside is how many of count ordered values lie outside of the interval on each side: the true
// median is beyond the k-th one with the probability that a fair coin falls heads less than k times.
func outside(count int) int {
	const mostDoubt = 0.10
	left := 0
	tail := math.Pow(0.5, float64(count))
	term := tail
	for k := 1; ; k++ {
		term *= float64(count-k+1) / float64(k)
		tail += term
		if 2*tail > mostDoubt {
			return left
		}
		left = k
	}
}

// IsDifference says whether chance does not explain the ratio.
func (c Comparison) IsDifference() bool {
	return c.Rounds >= LeastRounds && (c.High < 1 || c.Low > 1)
}

// String is the ratio with its interval, and what it tells.
func (c Comparison) String() string {
	if c.Rounds == 0 {
		return "-"
	}
	written := fmt.Sprintf("%s (%s to %s)", text.Ratio(c.Ratio), text.Ratio(c.Low), text.Ratio(c.High))
	if c.Rounds >= LeastRounds && !c.IsDifference() {
		written += " no difference"
	}
	return written
}

// Brackets says what stands in brackets behind the ratio of so many rounds.
func Brackets(rounds int) string {
	if rounds < LeastRounds {
		return fmt.Sprintf("in brackets, the least and the largest: fewer than %d rounds do not tell a difference from chance", LeastRounds)
	}
	return "in brackets, the range that holds the true one with a probability of 90 %"
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
