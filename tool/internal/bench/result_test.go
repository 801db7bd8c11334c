// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tcm/internal/chart"
	"tcm/internal/launch"
)

func samples(seconds, resident float64) []Sample {
	var made []Sample
	for _, factor := range []float64{1, 1.1, 0.9} {
		made = append(made, Sample{Seconds: seconds * factor, CPUSeconds: seconds, Ops: 1e6, PeakResident: resident,
			AverageResident: resident / 2, Faults: 100})
	}
	return made
}

// someResults has two timed workloads of one family, one of another and one about memory.
func someResults() *Results {
	workload := func(name, family string, tags []string, cells ...Cell) WorkloadResult {
		return WorkloadResult{Workload: Workload{Name: name, Family: family, Program: "p", Threads: 1, Tags: tags}, Cells: cells}
	}
	cell := func(allocator string, seconds, resident float64) Cell {
		return Cell{Allocator: allocator, Samples: samples(seconds, resident)}
	}
	short := func(cell Cell) Cell {
		for i := range cell.Samples {
			cell.Samples[i].AverageResident = 0
		}
		return cell
	}
	crash := Cell{Allocator: "peer", Samples: []Sample{{Failure: "crash: signal 11 (segmentation fault)"}}}
	results := &Results{
		Complete: true,
		Settings: Settings{Runs: 3, Baseline: Glibc, NoiseLimit: NoiseLimit},
		Allocators: []Allocator{
			{Name: Glibc}, {Name: Ours}, {Name: "peer"},
		},
		Workloads: []WorkloadResult{
			workload("a1", "a", nil, cell(Glibc, 4, 100), cell(Ours, 1, 200), cell("peer", 2, 50)),
			workload("a2", "a", nil, cell(Glibc, 1, 100), short(cell(Ours, 1, 100)), cell("peer", 1, 100)),
			workload("b", "b", nil, cell(Glibc, 1, 100), cell(Ours, 4, 100), crash),
			workload("m", "m", []string{TagMemory}, cell(Glibc, 1, 100), cell(Ours, 1000, 400), cell("peer", 1, 200)),
		},
	}
	results.Evaluate()
	return results
}

func TestEvaluate(t *testing.T) {
	results := someResults()
	ours := results.Workloads[0].Cell(Ours)
	if ours.ToBaseline.Time != 0.25 || ours.ToBaseline.Memory != 2 {
		t.Errorf("to the baseline: %+v", *ours.ToBaseline)
	}
	if ours.ToBest.Time != 0.5 || ours.ToBest.Memory != 4 || ours.ToBest.AverageMemory != 4 {
		t.Errorf("to the best: %+v", *ours.ToBest)
	}
	if results.Workloads[0].BestTime != "peer" || results.Workloads[2].BestTime != Glibc {
		t.Errorf("best: %q, %q", results.Workloads[0].BestTime, results.Workloads[2].BestTime)
	}
	summary := results.Summaries[1]
	// Ratios of time are 1/4, 1 and 4; the workload about memory does not count.
	if !near(summary.Time, 1) || summary.TimeWorkloads != 3 {
		t.Errorf("time %v over %d", summary.Time, summary.TimeWorkloads)
	}
	// The family a has 1/2 and the family b has 4.
	if !near(summary.TimeByFamily*summary.TimeByFamily, 2) {
		t.Errorf("time by family %v", summary.TimeByFamily)
	}
	// Ratios of memory are 2, 1, 1 and 4.
	if !near(summary.Memory*summary.Memory*summary.Memory*summary.Memory, 8) || summary.Workloads != 4 {
		t.Errorf("memory %v over %d", summary.Memory, summary.Workloads)
	}
	// In the second workload our runs were too short for an average.
	if !near(summary.AverageMemory*summary.AverageMemory*summary.AverageMemory, 8) || summary.AverageWorkloads != 3 {
		t.Errorf("average memory %v over %d", summary.AverageMemory, summary.AverageWorkloads)
	}
}

func TestBestIsAPeer(t *testing.T) {
	results := someResults()
	results.Workloads = results.Workloads[:1]
	results.Allocators = append(results.Allocators, Allocator{Name: OursPerCPU})
	cells := &results.Workloads[0].Cells
	*cells = append(*cells, Cell{Allocator: OursPerCPU, Samples: samples(0.5, 10)})
	// A peer that was too fast for an average, and took no CPU time that the kernel saw.
	for i := range (*cells)[0].Samples {
		sample := &(*cells)[0].Samples[i]
		sample.AverageResident, sample.CPUSeconds, sample.Faults = 0, 0, 0
	}
	results.Evaluate()
	ours := results.Workloads[0].Cell(Ours)
	if best := results.Workloads[0]; best.BestTime != "peer" || best.BestMemory != "peer" {
		t.Errorf("best: %q, %q", best.BestTime, best.BestMemory)
	}
	if want := (Ratios{Time: 0.5, CPU: 0.5, Memory: 4, AverageMemory: 4, Faults: 1}); *ours.ToBest != want {
		t.Errorf("%+v, want %+v", *ours.ToBest, want)
	}
	if table := allTables(t, results); !strings.Contains(table, "ours/best") {
		t.Error(table)
	}
	// Without peers there is nothing to relate to but the baseline.
	*cells = []Cell{*ours, (*cells)[3]}
	results.Allocators = []Allocator{{Name: Ours}, {Name: OursPerCPU}}
	results.Settings.Baseline = OursPerCPU
	results.Evaluate()
	if table := allTables(t, results); strings.Contains(table, "ours/best") || !strings.Contains(table, "2.00") {
		t.Error(table)
	}
}

func allTables(t *testing.T, results *Results) string {
	t.Helper()
	var table bytes.Buffer
	if err := errors.Join(results.WriteTable(&table), results.WriteDetails(&table), results.WriteMarkdown(&table)); err != nil {
		t.Error(err)
	}
	return table.String()
}

func TestFailuresAreShown(t *testing.T) {
	results := someResults()
	summary := results.Summaries[2]
	if summary.Failures != 1 || summary.Workloads != 3 || summary.TimeWorkloads != 2 {
		t.Errorf("%+v", summary)
	}
	var table bytes.Buffer
	if err := results.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAILED", "b under peer: crash: signal 11", "2 of 3"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, table.String())
		}
	}
}

func TestOneRunIsNoPlural(t *testing.T) {
	results := someResults()
	results.Settings.Runs, results.Machine.CPUs = 1, 1
	shown := allTables(t, results) + results.subtitle()
	if strings.Count(shown, "edians of 1 interleaved run") != 3 || strings.Contains(shown, "1 interleaved runs") || strings.Contains(shown, "1 CPUs") {
		t.Error(shown)
	}
}

func writeSamplesOf(t *testing.T, path string, results *Results) string {
	t.Helper()
	var data bytes.Buffer
	if err := results.WriteSamples(&data); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestJoiningTellsDifferences(t *testing.T) {
	t.Chdir(t.TempDir())
	first, second := someResults(), someResults()
	second.Machine.CPUs = 64
	second.QuietFirst.Others = 5
	second.Settings.NoiseLimit, second.Settings.Baseline = 0.5, Ours
	second.Allocators[2].Version = "7"
	second.Variables = []string{"TCMALLOC_MODE=debug"}
	joined, err := LoadResults([]string{writeSamplesOf(t, "1", first), writeSamplesOf(t, "2", second), writeSamplesOf(t, "3", first)})
	if err != nil {
		t.Fatal(err)
	}
	// What was joined does not lose them when it is joined again.
	joined, err = LoadResults([]string{writeSamplesOf(t, "4", joined), "1"})
	if err != nil {
		t.Fatal(err)
	}
	table := allTables(t, joined)
	for _, want := range []string{"2: machine , 64 CPUs", "2: noise limit 0.5 instead of 0.1", "2: baseline ours instead of glibc",
		"2: peer 7 [] map[] instead of [] map[]", "2: variables [TCMALLOC_MODE=debug] instead of []"} {
		if strings.Count(table, "JOINED FROM OTHER CONDITIONS: "+want) != 1 || strings.Count(table, "Joined from other conditions: "+want) != 1 {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	if len(joined.Differences) != 5 || joined.QuietFirst.Others != 5 {
		t.Errorf("%q, %+v", joined.Differences, joined.QuietFirst)
	}
}

func TestResultsSurviveTheirFile(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, results *Results) string {
		return writeSamplesOf(t, filepath.Join(folder, name), results)
	}
	first, second := someResults(), someResults()
	first.Workloads = first.Workloads[:3]
	second.Workloads = second.Workloads[2:]
	joined, err := LoadResults([]string{write("1", first), write("2", second)})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(joined.Workloads, someResults().Workloads) {
		t.Errorf("%+v\nbecame %+v", someResults().Workloads, joined.Workloads)
	}
	if len(joined.Workloads) != 4 || joined.Summaries[1] != someResults().Summaries[1] || len(joined.Differences) != 0 {
		t.Errorf("%d workloads, %+v", len(joined.Workloads), joined.Summaries)
	}
}

func TestChartsAreWellFormed(t *testing.T) {
	results := someResults()
	for _, threads := range []int{1, 2, 4} {
		for _, size := range []string{"64", "1024", "4096"} {
			result := results.Workloads[0]
			result.Name = "t<" + size
			result.Family = tTest1
			result.Threads = threads
			result.Args = []string{"--max-size=" + size}
			results.Workloads = append(results.Workloads, result)
		}
	}
	results.Evaluate()
	paths, err := results.WriteCharts(t.TempDir())
	if err != nil || len(paths) != 5 {
		t.Fatalf("%q, %v", paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("NaN")) || bytes.Contains(data, []byte("Inf")) {
			t.Errorf("%s has a number that is none", path)
		}
		decoder := xml.NewDecoder(bytes.NewReader(data))
		for {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
}

func TestNewSample(t *testing.T) {
	result := launch.Result{WallNs: 3e9, UserUs: 1e6, SystemUs: 5e5, MaxRSSKiB: 10, AverageRSSKiB: 6, MinorFaults: 7, MajorFaults: 1}
	sample := newSample(result)
	if err := sample.add("{\"ops\":5,\"seconds\":2,\"bytes\":9,\"list\":[1]}"); err != nil {
		t.Fatal(err)
	}
	if sample.Seconds != 2 || sample.WallSeconds != 3 || sample.CPUSeconds != 1.5 || sample.Ops != 5 ||
		sample.PeakResident != 10240 || sample.AverageResident != 6144 || sample.Faults != 8 || len(sample.Extra) != 1 || sample.Extra["bytes"] != 9 {
		t.Errorf("%+v", sample)
	}
	sample = newSample(result)
	if err := sample.add("{}"); err != nil || sample.Seconds != 3 {
		t.Errorf("without seconds: %+v, %v", sample, err)
	}
	for _, output := range []string{"", "bye", "12"} {
		if err := sample.add(output); err == nil {
			t.Errorf("%q is taken", output)
		}
	}
}

func TestLooksAreThoseOfTheName(t *testing.T) {
	one := Results{Settings: Settings{Baseline: Glibc}, Allocators: []Allocator{{Name: Glibc}, {Name: "odd"}, {Name: "jemalloc"}, {Name: Ours}}}
	other := Results{Settings: Settings{Baseline: Glibc}, Allocators: []Allocator{{Name: "jemalloc"}, {Name: Glibc}}}
	if one.series()[2] != other.series()[0] {
		t.Errorf("%+v, then %+v", one.series()[2], other.series()[0])
	}
	seen := map[chart.Series]string{}
	for name, number := range looks {
		if number >= firstFree && number < chart.Looks+1 {
			t.Errorf("%s has a number for others", name)
		}
		seen[chart.Style("", number)] = name
	}
	// mimalloc and mimalloc2 are never in one chart.
	if len(seen) != len(looks)-1 {
		t.Errorf("%d looks for %d names", len(seen), len(looks))
	}
}

func TestOwnProgram(t *testing.T) {
	results := &Results{Settings: Settings{Runs: 5, Baseline: Glibc}, Allocators: []Allocator{{Name: Glibc}, {Name: Ours}, {Name: "bad"}}}
	own := WorkloadResult{Workload: OwnProgram([]string{"/usr/bin/sort", "x"}, "")}
	for _, allocator := range []struct {
		name    string
		seconds float64
	}{{Glibc, 2}, {Ours, 1}} {
		cell := Cell{Allocator: allocator.name}
		for round := range 5 {
			cell.Samples = append(cell.Samples, Sample{Round: round, Seconds: allocator.seconds, CPUSeconds: 1, PeakResident: 1 << 20})
		}
		own.Cells = append(own.Cells, cell)
	}
	own.Cells = append(own.Cells, Cell{Allocator: "bad", Samples: []Sample{{Failure: "exit status 1"}}})
	results.Workloads = []WorkloadResult{own}
	results.Evaluate()
	var table bytes.Buffer
	if err := results.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/usr/bin/sort x", "0.50 (0.50 to 0.50)", "1.00 (1.00 to 1.00) no difference", "sort under bad: exit status 1"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	if err := results.OwnFailure(); err == nil || err.Error() != "sort failed under bad" {
		t.Errorf("%v", err)
	}
	paths, err := results.WriteCharts(t.TempDir())
	if err != nil || len(paths) != 1 || filepath.Base(paths[0]) != "comparison.svg" {
		t.Errorf("%q, %v", paths, err)
	}
}
