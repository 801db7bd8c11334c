// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"strings"
	"testing"
)

// The rule never changes: a workload that changes sides is no longer held out.
func TestSetOf(t *testing.T) {
	for name, want := range map[string]Set{
		"binary_trees-1t": Development, "json_like-1t": Development, "real-ruby": Development,
		"half_free": HeldOut, "larson-8t": HeldOut, "real-redis": HeldOut,
	} {
		if got := SetOf(name); got != want {
			t.Errorf("%s is in %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	got := distance([]float64{1.104, 1.106, 0.9, 1.26})
	if got.Notable != 2 || got.Excessive != 1 || !near(got.ToBest, GeometricMean([]float64{1.104, 1.106, 0.9, 1.26})) {
		t.Errorf("%+v", got)
	}
	if got := distance(nil); got != (Distance{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// bothSets has a workload in each set; ours takes half of the best peer's time in one and twice as
// much in the other.
func bothSets() *Results {
	results := &Results{Complete: true, Settings: Settings{Runs: 1, Baseline: Glibc}, Allocators: []Allocator{{Name: Glibc}, {Name: Ours}}}
	for name, seconds := range map[string]float64{"binary_trees-1t": 1, "half_free": 4} {
		results.Workloads = append(results.Workloads, WorkloadResult{
			Workload: Workload{Name: name, Family: name, Program: "p", Threads: 1},
			Cells: []Cell{
				{Allocator: Glibc, Samples: []Sample{{Seconds: 2, CPUSeconds: 1, PeakResident: 1}}},
				{Allocator: Ours, Samples: []Sample{{Seconds: seconds, CPUSeconds: 1, PeakResident: 1}}},
			},
		})
	}
	results.Evaluate()
	return results
}

func TestEachSetHasItsOwnMeans(t *testing.T) {
	results := bothSets()
	if len(results.Sets) != 2 || results.Sets[0].Set != Development || results.Sets[1].Set != HeldOut {
		t.Fatalf("%+v", results.Sets)
	}
	for i, want := range []float64{0.5, 2} {
		set := results.Sets[i]
		if ours := set.Summaries[1]; set.Workloads != 1 || !near(ours.Time, want) || !near(ours.ToBest, want) {
			t.Errorf("%s: %+v", set.Set, ours)
		}
	}
	if ours := results.Summaries[1]; !near(ours.Time, 1) || ours.Notable != 1 || ours.Excessive != 1 {
		t.Errorf("all: %+v", ours)
	}
	var table, page bytes.Buffer
	if err := results.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`Of these the set "development"`, `Of these the set "held out"`} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	if err := results.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"## Development (1)", "## Held out (1)", "| ours | 0.50 | 0.50 | 1.00 | 1.00 | - | 0.50 | 0 | 0 | 0 |",
		"| half_free | held out | 2.00 | glibc |",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, page.String())
		}
	}
}
