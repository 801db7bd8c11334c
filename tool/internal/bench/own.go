// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sort"
	"strings"

	"tcm/internal/chart"
	"tcm/internal/text"
)

// OwnProgram makes a workload of a program and its arguments.
func OwnProgram(words []string, input string) Workload {
	name := strings.ReplaceAll(filepath.Base(words[0]), ",", "_")
	return Workload{Name: name, Family: name, Command: words, Args: []string{}, Own: true, Input: input,
		Description: strings.Join(words, " "), Tags: []string{}}
}

// own returns the program of the user's own that the results are about, or nil.
func (r *Results) own() *WorkloadResult {
	if len(r.Workloads) == 1 && r.Workloads[0].Own {
		return &r.Workloads[0]
	}
	return nil
}

// IsOwn says whether the results are about a program of the user's own.
func (r *Results) IsOwn() bool { return r.own() != nil }

// OwnFailure names the allocators under which the user's own program failed; nothing for workloads,
// whose failures are results.
func (r *Results) OwnFailure() error {
	workload := r.own()
	if workload == nil {
		return nil
	}
	var failed []string
	for _, cell := range workload.Cells {
		if cell.Failure != "" {
			failed = append(failed, cell.Allocator)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%s failed under %s", workload.Name, strings.Join(failed, ", "))
}

// compare relates an allocator's runs to those of the baseline.
func (r *Results) compare(w *WorkloadResult, cell *Cell, of func(Sample) float64) Comparison {
	base := w.Cell(r.Settings.Baseline)
	if base == nil || base.Median == nil || cell.Median == nil || base == cell {
		return Comparison{}
	}
	return Compare(cell.column(of), base.column(of))
}

// figure is one thing that is measured of a program.
type figure struct {
	title string
	of    func(Sample) float64
	write func(float64) string
}

var figures = []figure{
	{"time", func(s Sample) float64 { return s.Seconds }, text.Seconds},
	{"CPU time", func(s Sample) float64 { return s.CPUSeconds }, text.Seconds},
	{"peak resident memory", func(s Sample) float64 { return s.PeakResident }, bytesOrDash},
}

// fastestFirst orders the cells by time, those that failed last.
func fastestFirst(cells []Cell) []*Cell {
	ordered := make([]*Cell, len(cells))
	for i := range cells {
		ordered[i] = &cells[i]
	}
	seconds := func(cell *Cell) float64 {
		if cell.Median == nil {
			return math.Inf(1)
		}
		return cell.Median.Seconds
	}
	sort.SliceStable(ordered, func(i, j int) bool { return seconds(ordered[i]) < seconds(ordered[j]) })
	return ordered
}

// writeOwn writes one line for each allocator.
func (r *Results) writeOwn(output io.Writer, workload *WorkloadResult) error {
	fmt.Fprintf(output, "\n%s\n", workload.Description)
	table := newTable(output)
	fmt.Fprint(table, "allocator\t")
	for _, one := range figures {
		fmt.Fprintf(table, "%s\tto %s\t", one.title, r.Settings.Baseline)
	}
	fmt.Fprintln(table, "average\tpage faults\t")
	for _, cell := range fastestFirst(workload.Cells) {
		if cell.Median == nil {
			fmt.Fprintf(table, "%s\tfailed\t%s\n", cell.Allocator, strings.Repeat("\t", 2*len(figures)+1))
			continue
		}
		fmt.Fprintf(table, "%s\t", cell.Allocator)
		for _, one := range figures {
			mark := ""
			if cell.Noisy {
				mark = "*"
			}
			fmt.Fprintf(table, "%s%s\t%s\t", one.write(Median(cell.column(one.of))), mark, r.compare(workload, cell, one.of))
		}
		fmt.Fprintf(table, "%s\t%.0f\t\n", bytesOrDash(cell.Median.AverageResident), cell.Median.Faults)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(output, "\nRatios, below 1 is better, are medians over the rounds; %s.\n", Brackets(r.Settings.Runs))
	if noisy, _ := r.countNoisy(); noisy > 0 {
		fmt.Fprintln(output, "* other programs used the CPUs meanwhile")
	}
	r.writeTroubles(output)
	return nil
}

// ownChart draws one group of bars for each figure.
func (r *Results) ownChart() []byte {
	workload := r.own()
	if workload == nil {
		return nil
	}
	numbers := map[string]int{}
	for i, allocator := range r.Allocators {
		numbers[allocator.Name] = i
	}
	made := chart.Bars{Title: workload.Name, Subtitle: r.subtitle(), Axis: "shorter is better", Series: r.series()}
	for _, one := range figures {
		group := chart.BarGroup{Title: one.title}
		for _, cell := range fastestFirst(workload.Cells) {
			bar := chart.Bar{Series: numbers[cell.Allocator], Value: math.NaN(), Label: "failed"}
			if cell.Median != nil {
				bar.Value = Median(cell.column(one.of))
				bar.Label = one.write(bar.Value)
			}
			if compared := r.compare(workload, cell, one.of); compared.Rounds > 0 {
				bar.Label += ", " + compared.String()
			}
			group.Bars = append(group.Bars, bar)
		}
		made.Groups = append(made.Groups, group)
	}
	return made.SVG()
}
