// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"tcm/internal/chart"
	"tcm/internal/text"
)

// tTest1 is the family whose charts follow the original paper on TCMalloc.
const tTest1 = "t-test1"

// manyInFamily is the number of workloads from which on a family has one row in the charts of
// ratios, its geometric mean.
const manyInFamily = 12

// worthALine is the number of points from which on a line says something.
const worthALine = 3

// WriteCharts writes all charts that the results allow into a folder and returns their paths.
func (r *Results) WriteCharts(folder string) ([]string, error) {
	charts := []struct {
		name string
		draw func() []byte
	}{
		{"summary.svg", r.summaryChart},
		{"time.svg", r.timeChart},
		{"memory.svg", r.memoryChart},
		{"t_test1_size.svg", r.bySizeChart},
		{"t_test1_threads.svg", r.byThreadsChart},
	}
	var written []string
	if r.own() != nil {
		charts = charts[:1]
		charts[0].name, charts[0].draw = "comparison.svg", r.ownChart
	}
	for _, one := range charts {
		data := one.draw()
		if data == nil {
			continue
		}
		path := filepath.Join(folder, one.name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}

// looks are the numbers of the allocators' colours and marks, so that each looks the same in every
// chart. Versions of one allocator have one colour and two marks.
var looks = map[string]int{
	"gperftools": 1, "jemalloc": 2, "mimalloc2": 3, "tbbmalloc": 4, "mimalloc3": 5, "google": 6, "snmalloc": 7,
	"rpmalloc": 8, "google-percpu": 9, "jemalloc-5.3.0": 2 + chart.Looks, "mimalloc-2.0": 3 + chart.Looks,
	"mimalloc": 3, OursPerThread: 10, OursPerCPU: 11, OursHuge: 10 + chart.Looks,
	OursFull: 11 + chart.Looks, OursHardened: 1 + chart.Looks, OursDebug: 4 + chart.Looks,
}

// firstFree is the first number for allocators that nobody knew before.
const firstFree = 12

// series gives every allocator a look: ours is the strong one, the baseline the reference.
func (r *Results) series() []chart.Series {
	series := make([]chart.Series, len(r.Allocators))
	next := firstFree
	for i, allocator := range r.Allocators {
		number, known := looks[allocator.Name]
		switch {
		case allocator.Name == Ours:
			series[i] = chart.Style("tcmalloc (ours)", 0)
		case allocator.Name == r.Settings.Baseline:
			series[i] = chart.Reference(allocator.Name)
		case known:
			series[i] = chart.Style(allocator.Name, number)
		default:
			series[i] = chart.Style(allocator.Name, next)
			next++
		}
	}
	return series
}

func (r *Results) subtitle() string {
	subtitle := fmt.Sprintf("medians of %s; %s, %s; %s", text.Counted(int64(r.Settings.Runs), "interleaved run"), r.Machine.Processor,
		text.Counted(int64(r.Machine.CPUs), "CPU"), r.Started.Format("2006-01-02"))
	if noisy, all := r.countNoisy(); noisy > 0 {
		subtitle += fmt.Sprintf("; %d of %d runs disturbed", noisy, all)
	}
	return subtitle
}

func (r *Results) summaryChart() []byte {
	if len(r.Summaries) == 0 {
		return nil
	}
	group := func(title string, of func(Summary) (float64, int)) chart.BarGroup {
		made := chart.BarGroup{Title: title}
		for i, summary := range r.Summaries {
			value, over := of(summary)
			bar := chart.Bar{Series: i, Value: math.NaN(), Label: "none"}
			if value > 0 {
				bar.Value = value
				bar.Label = fmt.Sprintf("%s over %d", text.Ratio(value), over)
			}
			if summary.Failures > 0 {
				bar.Label += fmt.Sprintf(", %d failed", summary.Failures)
			}
			made.Bars = append(made.Bars, bar)
		}
		// Written so that NaN, which is less than nothing, goes to the end.
		sort.SliceStable(made.Bars, func(i, j int) bool {
			return made.Bars[i].Value < made.Bars[j].Value || !math.IsNaN(made.Bars[i].Value) && math.IsNaN(made.Bars[j].Value)
		})
		return made
	}
	groups := []chart.BarGroup{
		group("Time", func(s Summary) (float64, int) { return s.Time, s.TimeWorkloads }),
		group("CPU time", func(s Summary) (float64, int) { return s.CPU, s.TimeWorkloads }),
		group("Peak resident memory", func(s Summary) (float64, int) { return s.Memory, s.Workloads }),
	}
	if slices.ContainsFunc(r.Summaries, func(s Summary) bool { return s.AverageMemory > 0 }) {
		groups = append(groups,
			group("Average resident memory", func(s Summary) (float64, int) { return s.AverageMemory, s.AverageWorkloads }))
	}
	return chart.Bars{
		Title:    "Geometric means relative to " + r.Settings.Baseline,
		Subtitle: r.subtitle(),
		Axis:     "ratio to " + r.Settings.Baseline + "; shorter is better",
		Series:   r.series(),
		Common:   true,
		Groups:   groups,
	}.SVG()
}

func (r *Results) timeChart() []byte {
	return r.ratioChart("Time of each workload", "time relative to "+r.Settings.Baseline+"; left of 1 is faster",
		func(ratios *Ratios) float64 { return ratios.Time },
		func(w *WorkloadResult) bool { return !w.HasTag(TagMemory) })
}

func (r *Results) memoryChart() []byte {
	return r.ratioChart("Peak resident memory of each workload",
		"peak resident memory relative to "+r.Settings.Baseline+"; left of 1 is smaller",
		func(ratios *Ratios) float64 { return ratios.Memory },
		func(*WorkloadResult) bool { return true })
}

func (r *Results) ratioChart(title, axis string, of func(*Ratios) float64, included func(*WorkloadResult) bool) []byte {
	made := chart.Ratios{Title: title, Subtitle: r.subtitle(), Axis: axis, Series: r.series()}
	members := map[string][]*WorkloadResult{}
	var chosen []*WorkloadResult
	for i := range r.Workloads {
		workload := &r.Workloads[i]
		if included(workload) {
			chosen = append(chosen, workload)
			members[workload.Family] = append(members[workload.Family], workload)
		}
	}
	for _, workload := range chosen {
		family := members[workload.Family]
		switch {
		case len(family) < manyInFamily:
			made.Rows = append(made.Rows, r.row(workload.Name, []*WorkloadResult{workload}, of))
		case family[0] == workload:
			label := fmt.Sprintf("%s (mean of %d)", workload.Family, len(family))
			made.Rows = append(made.Rows, r.row(label, family, of))
		}
	}
	if len(made.Rows) == 0 {
		return nil
	}
	return made.SVG()
}

// row is the geometric mean over some workloads for each allocator; an allocator that failed in
// one of them is named and left out.
func (r *Results) row(label string, workloads []*WorkloadResult, of func(*Ratios) float64) chart.RatioRow {
	row := chart.RatioRow{Label: label}
	failed := ""
	for _, allocator := range r.Allocators {
		var values []float64
		for _, workload := range workloads {
			cell := workload.Cell(allocator.Name)
			if cell != nil && cell.ToBaseline != nil {
				values = appendPositive(values, of(cell.ToBaseline))
			}
			if cell != nil && cell.Failure != "" {
				failed += " " + allocator.Name
			}
		}
		value := math.NaN()
		if len(values) == len(workloads) {
			value = mean(values)
		}
		row.Values = append(row.Values, value)
	}
	if failed != "" {
		row.Remark = "failed:" + failed
	}
	return row
}

// gridPoint is a workload of t-test1 by what it varies.
type gridPoint struct {
	threads int
	size    float64
}

func (r *Results) tTest1Grid() (points map[gridPoint]*WorkloadResult, threads []int, sizes []float64) {
	points = map[gridPoint]*WorkloadResult{}
	seenThreads, seenSizes := map[int]bool{}, map[float64]bool{}
	for i := range r.Workloads {
		workload := &r.Workloads[i]
		size, known := workload.Argument("max-size")
		if workload.Family != tTest1 || !known {
			continue
		}
		point := gridPoint{workload.Threads, float64(size)}
		points[point] = workload
		if !seenThreads[point.threads] {
			seenThreads[point.threads] = true
			threads = append(threads, point.threads)
		}
		if !seenSizes[point.size] {
			seenSizes[point.size] = true
			sizes = append(sizes, point.size)
		}
	}
	sort.Ints(threads)
	sort.Float64s(sizes)
	return points, threads, sizes
}

// bySizeChart is the paper's first kind: operations per second against maximum size, one panel
// for each number of threads.
func (r *Results) bySizeChart() []byte {
	points, threads, sizes := r.tTest1Grid()
	if len(sizes) < worthALine {
		return nil
	}
	made := chart.Lines{
		Title:    "t-test1: million operations per second",
		Subtitle: "by the largest size of a block, for each number of threads; " + r.subtitle(),
		XAxis:    "largest size (bytes)", YAxis: "million operations / s",
		X: sizes, Bytes: true, Series: r.series(),
	}
	for _, count := range threads {
		panel := chart.Panel{Title: text.Counted(int64(count), "thread")}
		for i, allocator := range r.Allocators {
			line := chart.Line{Series: i}
			for _, size := range sizes {
				line.Values = append(line.Values, millionOps(points[gridPoint{count, size}], allocator.Name,
					func(f *Figures) float64 { return f.Seconds }))
			}
			panel.Lines = append(panel.Lines, line)
		}
		addPanel(&made, panel)
	}
	if len(made.Panels) == 0 {
		return nil
	}
	return made.SVG()
}

// byThreadsChart is the paper's second kind: operations per second of CPU time against threads,
// one panel for each maximum size.
func (r *Results) byThreadsChart() []byte {
	points, threads, sizes := r.tTest1Grid()
	if len(threads) < worthALine {
		return nil
	}
	made := chart.Lines{
		Title:    "t-test1: million operations per second of CPU time",
		Subtitle: "by the number of threads, for each largest size of a block; " + r.subtitle(),
		XAxis:    "threads", YAxis: "million operations / CPU s",
		Series: r.series(),
	}
	for _, count := range threads {
		made.X = append(made.X, float64(count))
	}
	for _, size := range sizes {
		panel := chart.Panel{Title: "sizes to " + chart.SizeLabel(size) + " bytes"}
		for i, allocator := range r.Allocators {
			line := chart.Line{Series: i}
			for _, count := range threads {
				line.Values = append(line.Values, millionOps(points[gridPoint{count, size}], allocator.Name,
					func(f *Figures) float64 { return f.CPUSeconds }))
			}
			panel.Lines = append(panel.Lines, line)
		}
		addPanel(&made, panel)
	}
	if len(made.Panels) == 0 {
		return nil
	}
	return made.SVG()
}

// addPanel leaves out what has no line with points enough.
func addPanel(made *chart.Lines, panel chart.Panel) {
	for _, line := range panel.Lines {
		points := 0
		for _, value := range line.Values {
			if !math.IsNaN(value) {
				points++
			}
		}
		if points >= worthALine {
			made.Panels = append(made.Panels, panel)
			return
		}
	}
}

func millionOps(workload *WorkloadResult, allocator string, seconds func(*Figures) float64) float64 {
	if workload == nil {
		return math.NaN()
	}
	cell := workload.Cell(allocator)
	if cell == nil || cell.Median == nil || cell.Median.Ops <= 0 || seconds(cell.Median) <= 0 {
		return math.NaN()
	}
	return cell.Median.Ops / seconds(cell.Median) / 1e6
}
