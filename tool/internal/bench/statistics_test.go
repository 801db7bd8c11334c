// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Max(1, math.Abs(b)) }

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
