// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"tcm/internal/text"
)

// WriteTable writes what people want to know first: means, ratios, and what went wrong.
func (r *Results) WriteTable(output io.Writer) error {
	r.writeConditions(output)
	if workload := r.own(); workload != nil {
		return r.writeOwn(output, workload)
	}
	title := fmt.Sprintf("Geometric means of ratios to %s (below 1 is better)", r.Settings.Baseline)
	writeSummary(output, title, len(r.Workloads), r.timed(), r.Summaries)
	for _, set := range r.Sets {
		writeSummary(output, fmt.Sprintf("Of these the set %q", set.Set), set.Workloads, set.Timed, set.Summaries)
	}
	r.writeMatrix(output, "Time relative to "+r.Settings.Baseline, func(ratios *Ratios) float64 { return ratios.Time },
		func(figures *Figures) string { return text.Seconds(figures.Seconds) },
		func(w *WorkloadResult) bool { return !w.HasTag(TagMemory) })
	r.writeMatrix(output, "Peak resident memory relative to "+r.Settings.Baseline,
		func(ratios *Ratios) float64 { return ratios.Memory },
		func(figures *Figures) string { return text.Bytes(int64(figures.PeakResident)) },
		func(*WorkloadResult) bool { return true })
	r.writeMatrix(output, "Average resident memory relative to "+r.Settings.Baseline,
		func(ratios *Ratios) float64 { return ratios.AverageMemory },
		func(figures *Figures) string { return bytesOrDash(figures.AverageResident) },
		func(w *WorkloadResult) bool { return w.hasAverage() })
	r.writeExtras(output)
	r.writeTroubles(output)
	return nil
}

func (r *Results) writeConditions(output io.Writer) {
	fmt.Fprintln(output, r.Machine)
	state := "quiet"
	if !r.QuietFirst.IsQuiet {
		state = "NOT QUIET"
	}
	fmt.Fprintf(output, "%s: the machine was %s before (others used %.2f CPUs, load %.2f)\n",
		r.Started.Format(time.RFC3339), state, r.QuietFirst.Others, r.QuietFirst.LoadAverage)
	noisy, samples := r.countNoisy()
	fmt.Fprintf(output, "medians of %s, %s, %s; %d of %d runs stayed above %.2f CPUs of noise\n",
		text.Counted(int64(r.Settings.Runs), "interleaved run"), text.Counted(int64(len(r.Workloads)), "workload"), text.Seconds(r.Seconds), noisy, samples, r.Settings.NoiseLimit)
	if len(r.Variables) > 0 {
		fmt.Fprintf(output, "every program ran with %s\n", strings.Join(r.Variables, " "))
	}
	for _, difference := range r.Differences {
		fmt.Fprintf(output, "JOINED FROM OTHER CONDITIONS: %s\n", difference)
	}
	if !r.Complete {
		fmt.Fprintln(output, "INCOMPLETE: interrupted before the last workload")
	}
}

func (r *Results) countNoisy() (noisy, all int) {
	for _, workload := range r.Workloads {
		for _, cell := range workload.Cells {
			for _, sample := range cell.Samples {
				all++
				if sample.Failure == "" && !sample.Noise.IsQuiet() {
					noisy++
				}
			}
		}
	}
	return noisy, all
}

func newTable(output io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(output, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// writeSummary writes one line for each allocator. "To best" is the mean of the ratios of time to the
// best of all allocators but ours, and "over" counts the workloads in which such a ratio is larger.
func writeSummary(output io.Writer, title string, workloads, timed int, summaries []Summary) {
	fmt.Fprintf(output, "\n%s\n", title)
	table := newTable(output)
	fmt.Fprintln(table, "allocator\ttime\tby family\tCPU\tpeak\taverage\tfaults\tto best\tover 1.10\tover 1.25\ttime over\tmemory over\tfailed\t")
	for _, summary := range summaries {
		toBest := summary.columns()
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d of %d\t%d of %d\t%d\t\n", summary.Allocator,
			orDash(summary.Time), orDash(summary.TimeByFamily), orDash(summary.CPU), orDash(summary.Memory),
			orDash(summary.AverageMemory), orDash(summary.Faults), toBest[0], toBest[1], toBest[2],
			summary.TimeWorkloads, timed, summary.Workloads, workloads, summary.Failures)
	}
	table.Flush()
}

// timed counts the workloads whose time counts.
func (r *Results) timed() int {
	count := 0
	for _, workload := range r.Workloads {
		if !workload.HasTag(TagMemory) {
			count++
		}
	}
	return count
}

func orDash(ratio float64) string {
	if ratio == 0 {
		return "-"
	}
	return text.Ratio(ratio)
}

func bytesOrDash(bytes float64) string {
	if bytes == 0 {
		return "-"
	}
	return text.Bytes(int64(bytes))
}

// writeMatrix writes one line for each workload: the baseline's figure, every allocator's ratio
// to it, and ours to the best peer, if there is any.
func (r *Results) writeMatrix(output io.Writer, title string, of func(*Ratios) float64,
	absolute func(*Figures) string, included func(*WorkloadResult) bool) {
	fmt.Fprintf(output, "\n%s (* noisy)\n", title)
	table := newTable(output)
	fmt.Fprintf(table, "workload\tset\t%s\t", r.Settings.Baseline)
	for _, allocator := range r.others() {
		fmt.Fprintf(table, "%s\t", allocator)
	}
	hasPeers := slices.ContainsFunc(r.Allocators, func(allocator Allocator) bool { return !isOurs(allocator.Name) })
	if hasPeers {
		fmt.Fprintf(table, "%s/best\t", Ours)
	}
	fmt.Fprintln(table)
	for i := range r.Workloads {
		workload := &r.Workloads[i]
		if !included(workload) {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t", workload.Name, SetOf(workload.Name), absoluteOf(workload.Cell(r.Settings.Baseline), absolute))
		for _, allocator := range r.others() {
			fmt.Fprintf(table, "%s\t", entry(workload.Cell(allocator), of))
		}
		if hasPeers {
			fmt.Fprintf(table, "%s\t", toBest(workload.Cell(Ours), of))
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}

// others are the allocators other than the baseline.
func (r *Results) others() []string {
	var names []string
	for _, allocator := range r.Allocators {
		if allocator.Name != r.Settings.Baseline {
			names = append(names, allocator.Name)
		}
	}
	return names
}

func absoluteOf(cell *Cell, absolute func(*Figures) string) string {
	switch {
	case cell == nil:
		return "-"
	case cell.Median == nil:
		return "FAILED"
	case cell.Noisy:
		return absolute(cell.Median) + "*"
	}
	return absolute(cell.Median)
}

func entry(cell *Cell, of func(*Ratios) float64) string {
	switch {
	case cell == nil:
		return "-"
	case cell.Failure != "":
		return "FAILED"
	case cell.ToBaseline == nil:
		return "-"
	case cell.Noisy:
		return orDash(of(cell.ToBaseline)) + "*"
	}
	return orDash(of(cell.ToBaseline))
}

func toBest(cell *Cell, of func(*Ratios) float64) string {
	if cell == nil || cell.ToBest == nil {
		return "-"
	}
	return orDash(of(cell.ToBest))
}

// writeExtras writes what the workloads measured themselves besides their time.
func (r *Results) writeExtras(output io.Writer) {
	header := false
	table := newTable(output)
	for i := range r.Workloads {
		workload := &r.Workloads[i]
		for _, name := range extraNames(workload) {
			if !header {
				fmt.Fprint(output, "\nWhat the workloads measured themselves\n")
				fmt.Fprint(table, "workload\tfigure\t")
				for _, allocator := range r.Allocators {
					fmt.Fprintf(table, "%s\t", allocator.Name)
				}
				fmt.Fprintln(table)
				header = true
			}
			fmt.Fprintf(table, "%s\t%s\t", workload.Name, name)
			for _, allocator := range r.Allocators {
				fmt.Fprintf(table, "%s\t", extraOf(workload.Cell(allocator.Name), name))
			}
			fmt.Fprintln(table)
		}
	}
	table.Flush()
}

func extraNames(workload *WorkloadResult) []string {
	seen := map[string]bool{}
	for _, cell := range workload.Cells {
		if cell.Median != nil {
			for name := range cell.Median.Extra {
				seen[name] = true
			}
		}
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func extraOf(cell *Cell, name string) string {
	if cell == nil || cell.Median == nil {
		return "-"
	}
	value, found := cell.Median.Extra[name]
	if !found {
		return "-"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", value), "0"), ".")
}

func (r *Results) writeTroubles(output io.Writer) {
	header := false
	for _, workload := range r.Workloads {
		for _, cell := range workload.Cells {
			if cell.Failure == "" {
				continue
			}
			if !header {
				fmt.Fprint(output, "\nFailures (left out of the means)\n")
				header = true
			}
			fmt.Fprintf(output, "  %s under %s: %s\n", workload.Name, cell.Allocator, cell.Failure)
		}
	}
}

// WriteDetails writes every cell with all its figures.
func (r *Results) WriteDetails(output io.Writer) error {
	fmt.Fprintf(output, "\nAll figures; ratios are to %s and to the best of the others than %s\n", r.Settings.Baseline, Ours)
	table := newTable(output)
	fmt.Fprintln(table, "workload\tallocator\ttime\tspread\tratio\tto best\tMops/s\tCPU\tratio\tpeak\tratio\tto best\taverage\tratio\tto best\tfaults\t")
	for _, workload := range r.Workloads {
		for _, cell := range workload.Cells {
			if cell.Median == nil {
				fmt.Fprintf(table, "%s\t%s\tFAILED\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n", workload.Name, cell.Allocator)
				continue
			}
			base, best := orNone(cell.ToBaseline), orNone(cell.ToBest)
			fmt.Fprintf(table, "%s\t%s\t%s\t%.0f%%\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t\n", workload.Name, cell.Allocator,
				text.Seconds(cell.Median.Seconds), 100*cell.Median.Spread, orDash(base.Time), orDash(best.Time),
				rate(cell.Median.Ops, cell.Median.Seconds), text.Seconds(cell.Median.CPUSeconds), orDash(base.CPU),
				text.Bytes(int64(cell.Median.PeakResident)), orDash(base.Memory), orDash(best.Memory),
				bytesOrDash(cell.Median.AverageResident), orDash(base.AverageMemory), orDash(best.AverageMemory),
				cell.Median.Faults)
		}
	}
	return table.Flush()
}

func orNone(ratios *Ratios) Ratios {
	if ratios == nil {
		return Ratios{}
	}
	return *ratios
}

func rate(ops, seconds float64) string {
	if ops <= 0 || seconds <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", ops/seconds/1e6)
}
