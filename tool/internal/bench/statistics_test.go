// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(b)) }

func TestCompare(t *testing.T) {
	ones := []float64{1, 1, 1, 1, 1, 1, 1}
	for _, test := range []struct {
		own  []float64
		want string
	}{
		{[]float64{0.8, 0.9, 0.85, 0.8, 0.7, 0.8, 0.8}, "0.80 (0.70 to 0.90)"},
		{[]float64{0.8, 0.9, 0.85, 1.1, 0.7}, "0.85 (0.70 to 1.10) no difference"},
		{[]float64{0.5, 0.6}, "0.55 (0.50 to 0.60)"},
		{nil, "-"},
	} {
		got := Compare(test.own, ones)
		if got.String() != test.want || got.IsDifference() != (test.want == "0.80 (0.70 to 0.90)") {
			t.Errorf("%v: %s, %v", test.own, got, got.IsDifference())
		}
	}
	for count, want := range map[int]int{1: 0, 5: 0, 7: 0, 8: 1, 11: 2, 20: 5} {
		if got := outside(count); got != want {
			t.Errorf("of %d values %d are outside, want %d", count, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{5, 1, 3}, 3},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{1, 1, 100}, 1},
	} {
		if got := Median(test.values); got != test.want {
			t.Errorf("Median(%v) = %v, want %v", test.values, got, test.want)
		}
	}
	if !math.IsNaN(Median(nil)) {
		t.Error("the median of nothing is a number")
	}
	values := []float64{3, 1, 2}
	Median(values)
	if values[0] != 3 {
		t.Error("Median changed its argument")
	}
}

func TestGeometricMean(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{2}, 2},
		{[]float64{0.5, 2}, 1},
		{[]float64{1, 10, 100}, 10},
	} {
		if got := GeometricMean(test.values); !near(got, test.want) {
			t.Errorf("GeometricMean(%v) = %v, want %v", test.values, got, test.want)
		}
	}
	for _, values := range [][]float64{nil, {1, 0}, {1, -1}, {math.NaN()}} {
		if got := GeometricMean(values); !math.IsNaN(got) {
			t.Errorf("GeometricMean(%v) = %v, want NaN", values, got)
		}
	}
}

func TestSpread(t *testing.T) {
	if got := Spread([]float64{9, 10, 12}); !near(got, 0.3) {
		t.Errorf("Spread = %v, want 0.3", got)
	}
	if got := Spread(nil); got != 0 {
		t.Errorf("Spread of nothing = %v", got)
	}
}
