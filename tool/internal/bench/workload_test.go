// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"testing"
)

var someWorkloads = []Workload{
	{Name: "tight-1t", Family: "tight", Program: "tight", Tags: []string{"default", "quick"}},
	{Name: "tight-8t", Family: "tight", Program: "tight"},
	{Name: "larson-2t", Family: "larson", Program: "larson", Tags: []string{"default"}},
	{Name: "space-8", Family: "space", Program: "space", Tags: []string{"memory"}},
}

func workloadNamesOf(workloads []Workload) string {
	var names []string
	for _, workload := range workloads {
		names = append(names, workload.Name)
	}
	return strings.Join(names, " ")
}

func TestSelectWorkloads(t *testing.T) {
	for _, test := range []struct{ selectors, want string }{
		{"", "tight-1t larson-2t"},
		{"all", "tight-1t tight-8t larson-2t space-8"},
		{"tight", "tight-1t tight-8t"},
		{"space-8,tight-8t", "tight-8t space-8"},
		{"*-?t", "tight-1t tight-8t larson-2t"},
		{"quick,memory", "tight-1t space-8"},
		{"tight,quick", "tight-1t tight-8t"},
	} {
		var selectors []string
		if test.selectors != "" {
			selectors = strings.Split(test.selectors, ",")
		}
		got, err := SelectWorkloads(someWorkloads, selectors)
		if err != nil || workloadNamesOf(got) != test.want {
			t.Errorf("%q selects %q (%v), want %q", test.selectors, workloadNamesOf(got), err, test.want)
		}
	}
	for _, selectors := range [][]string{{"nonesuch"}, {"tight", "nonesuch"}, {"[a"}} {
		if _, err := SelectWorkloads(someWorkloads, selectors); err == nil {
			t.Errorf("%q selects something", selectors)
		}
	}
	if got, err := SelectWorkloads(someWorkloads[1:2], nil); err != nil || len(got) != 1 {
		t.Errorf("without a default tag %q is selected (%v)", workloadNamesOf(got), err)
	}
}

func TestParseWorkloadsRefuses(t *testing.T) {
	for _, data := range []string{
		`{}`, `[{"name":"a"}]`, `[{"program":"a"}]`, `[{"name":"a","program":"../b"}]`,
		`[{"name":"a","program":"b"},{"name":"a","program":"b"}]`, `[{"name":"a,b","program":"b"}]`,
		`[{"name":"a","program":"b","command":["c"]}]`,
	} {
		if _, err := parseWorkloads([]byte(data)); err == nil {
			t.Errorf("%s is taken", data)
		}
	}
}

func TestArgument(t *testing.T) {
	workload := Workload{Args: []string{"--threads=4", "--max-size=128", "--size=many"}}
	if got, ok := workload.Argument("max-size"); !ok || got != 128 {
		t.Errorf("max-size is %d, %v", got, ok)
	}
	for _, name := range []string{"size", "ops", "max"} {
		if got, ok := workload.Argument(name); ok {
			t.Errorf("%s is %d", name, got)
		}
	}
}

func TestSelectAllocators(t *testing.T) {
	allocators := []Allocator{{Name: Glibc}, {Name: Ours, Missing: "not built"}, {Name: "mimalloc2"}, {Name: "mimalloc3"}, {Name: "google", Missing: "not built"}, {Name: OursPerCPU, OnRequest: true}}
	for _, test := range []struct {
		selectors string
		want      string
	}{
		{"", "glibc mimalloc2 mimalloc3"},
		{"mimalloc*,glibc", "glibc mimalloc2 mimalloc3"},
		{"mimalloc3", "mimalloc3"},
		{"ours-*", "ours-per-cpu"},
		{"*o*", "mimalloc2 mimalloc3 ours-per-cpu"},
	} {
		var selectors []string
		if test.selectors != "" {
			selectors = strings.Split(test.selectors, ",")
		}
		got, err := SelectAllocators(allocators, selectors)
		var names []string
		for _, allocator := range got {
			names = append(names, allocator.Name)
		}
		if err != nil || strings.Join(names, " ") != test.want {
			t.Errorf("%q selects %q (%v), want %q", test.selectors, names, err, test.want)
		}
	}
	if _, err := SelectAllocators(allocators, []string{"ours"}); err == nil || !strings.Contains(err.Error(), "not built") {
		t.Errorf("an allocator that is not there: %v", err)
	}
	if _, err := SelectAllocators(allocators, []string{"nonesuch"}); err == nil {
		t.Error("an unknown allocator is taken")
	}
}

func TestPrograms(t *testing.T) {
	build := Build(t.TempDir())
	own := Workload{Name: "own", Program: "p", Args: []string{"--trace={data}/t", "--x=1"}}
	want := fmt.Sprintf("[%s/bin/workloads/p --trace=%s/bench-data/t --x=1]", build, build)
	if got := fmt.Sprint(build.Words(own)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	there := Workload{Name: "there", Command: []string{"env", "A=b", "sh", "{data}/x"}, Optional: true}
	absent := Workload{Name: "absent", Command: []string{"env", "A=b", "nonesuch-program"}, Optional: true, Package: "odd"}
	half := Workload{Name: "half", Command: []string{"sh", "x"}, Needs: []string{"sh", "nonesuch-program"}, Optional: true}
	plan := Plan{Build: build, Workloads: []Workload{there, absent, half}}
	left, err := plan.CheckPrograms()
	if err != nil || fmt.Sprint(left) != "[absent (package odd) half]" || workloadNamesOf(plan.Workloads) != "there" {
		t.Errorf("%v, %v, %q", left, err, workloadNamesOf(plan.Workloads))
	}
	for _, workloads := range [][]Workload{{there, own}, {absent}} {
		plan.Workloads = workloads
		if _, err := plan.CheckPrograms(); err == nil {
			t.Errorf("%q can be run", workloadNamesOf(workloads))
		}
	}
}
