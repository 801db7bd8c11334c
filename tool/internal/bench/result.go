// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"slices"
	"time"
)

// Sample is one run of one workload under one allocator.
type Sample struct {
	Round int `json:"round"`
	// Seconds is the measured part where the workload reports one, else the wall time.
	Seconds float64 `json:"seconds"`
	// CPUSeconds is the CPU time of the measured part, or of the whole program.
	CPUSeconds  float64 `json:"cpu_seconds"`
	WallSeconds float64 `json:"wall_seconds"`
	// Ops is what the workload counts as operations, 0 where it counts none.
	Ops          float64 `json:"ops,omitempty"`
	PeakResident float64 `json:"peak_resident_bytes"`
	// AverageResident is the mean over the time of the whole program, 0 where it ended too soon.
	AverageResident float64 `json:"average_resident_bytes,omitempty"`
	Faults          float64 `json:"page_faults"`
	Noise           Noise   `json:"noise"`
	// Repeats counts the noisier runs that this one replaced.
	Repeats int `json:"repeats,omitempty"`
	// Failure says how the run failed; then the figures mean nothing.
	Failure string `json:"failure,omitempty"`
	// Extra holds further numbers that the workload reported.
	Extra map[string]float64 `json:"extra,omitempty"`
}

// Figures are the medians over the runs of a cell.
type Figures struct {
	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpu_seconds"`
	Ops          float64 `json:"ops,omitempty"`
	PeakResident float64 `json:"peak_resident_bytes"`
	// AverageResident is 0 where a run has none.
	AverageResident float64 `json:"average_resident_bytes,omitempty"`
	Faults          float64 `json:"page_faults"`
	// Spread of Seconds: (slowest - fastest) / median.
	Spread float64            `json:"spread"`
	Extra  map[string]float64 `json:"extra,omitempty"`
}

// Ratios of figures to those of another allocator.
type Ratios struct {
	Time          float64 `json:"time,omitempty"`
	CPU           float64 `json:"cpu,omitempty"`
	Memory        float64 `json:"memory,omitempty"`
	AverageMemory float64 `json:"average_memory,omitempty"`
	Faults        float64 `json:"faults,omitempty"`
}

// Cell is one workload under one allocator.
type Cell struct {
	Allocator string   `json:"allocator"`
	Samples   []Sample `json:"samples"`
	// Median is missing where a run failed.
	Median *Figures `json:"median,omitempty"`
	// ToBaseline and ToBest are missing where this cell or the other has no figures.
	ToBaseline *Ratios `json:"to_baseline,omitempty"`
	ToBest     *Ratios `json:"to_best_peer,omitempty"`
	// Failure is that of the first run that failed.
	Failure string `json:"failure,omitempty"`
	// Noisy says that some run stayed above the noise limit although it was repeated.
	Noisy bool `json:"noisy,omitempty"`
}

// WorkloadResult is one workload under all allocators.
type WorkloadResult struct {
	Workload
	Cells []Cell `json:"cells"`
	// BestTime and BestMemory name the best allocator other than ours.
	BestTime   string `json:"best_peer_time,omitempty"`
	BestMemory string `json:"best_peer_memory,omitempty"`
}

// Summary is one allocator over all workloads.
type Summary struct {
	Allocator string `json:"allocator"`
	// The geometric means of ratios to the baseline, over Workloads workloads for memory and faults
	// and over TimeWorkloads for time and CPU: those where both did not fail. That of the average
	// resident size is over those where both ran long enough to have one.
	Ratios
	// Distance is over the workloads whose time counts.
	Distance
	// TimeByFamily weighs every family of workloads alike.
	TimeByFamily     float64 `json:"time_by_family,omitempty"`
	TimeWorkloads    int     `json:"time_workloads"`
	Workloads        int     `json:"workloads"`
	AverageWorkloads int     `json:"average_workloads,omitempty"`
	Failures         int     `json:"failures"`
}

// Settings are what a benchmark was asked to do.
type Settings struct {
	Runs           int     `json:"runs"`
	Repeats        int     `json:"repeats"`
	TimeoutSeconds float64 `json:"timeout_seconds"`
	Baseline       string  `json:"baseline"`
	NoiseLimit     float64 `json:"noise_limit_cpus"`
}

// Results is everything a benchmark found.
type Results struct {
	Started    time.Time `json:"started"`
	Seconds    float64   `json:"seconds"`
	Complete   bool      `json:"complete"`
	Machine    Machine   `json:"machine"`
	QuietFirst Quiet     `json:"quiet_before"`
	Settings   Settings  `json:"settings"`
	// Variables of tcm's environment that allocators obey, with their values. Every run had them.
	Variables  []string    `json:"variables,omitempty"`
	Allocators []Allocator `json:"allocators"`
	Summaries  []Summary   `json:"summary"`
	// Sets has the same for each set of workloads by itself.
	Sets      []SetSummaries   `json:"sets"`
	Workloads []WorkloadResult `json:"workloads"`
	// Differences tell in what the benchmarks that were joined differ from the first, of which Machine, Settings and
	// Allocators are.
	Differences []string `json:"differences,omitempty"`
}

// LoadResults reads the samples of one or more benchmarks and joins them: the later ones add
// workloads and replace those of the same name.
func LoadResults(files []string) (*Results, error) {
	var joined *Results
	for _, file := range files {
		results, err := readSamples(file)
		if err != nil {
			return nil, err
		}
		if joined == nil {
			joined = results
		} else {
			joined.join(results, file)
		}
	}
	joined.Evaluate()
	return joined, nil
}

func (r *Results) join(other *Results, file string) {
	for _, one := range append(r.differencesTo(other), other.Differences...) {
		if one = file + ": " + one; !slices.Contains(r.Differences, one) {
			r.Differences = append(r.Differences, one)
		}
	}
	if other.QuietFirst.Worst() > r.QuietFirst.Worst() {
		r.QuietFirst = other.QuietFirst
	}
	r.Seconds += other.Seconds
	r.Complete = r.Complete && other.Complete
	known := map[string]bool{}
	for _, allocator := range r.Allocators {
		known[allocator.Name] = true
	}
	for _, allocator := range other.Allocators {
		if !known[allocator.Name] {
			r.Allocators = append(r.Allocators, allocator)
		}
	}
	for _, added := range other.Workloads {
		replaced := false
		for i := range r.Workloads {
			if r.Workloads[i].Name == added.Name {
				r.Workloads[i] = added
				replaced = true
			}
		}
		if !replaced {
			r.Workloads = append(r.Workloads, added)
		}
	}
}

// differencesTo tells what makes the figures of another benchmark incomparable.
func (r *Results) differencesTo(other *Results) []string {
	var found []string
	compare := func(what string, mine, theirs any) {
		if a, b := fmt.Sprint(mine), fmt.Sprint(theirs); a != b {
			found = append(found, fmt.Sprintf("%s %s instead of %s", what, b, a))
		}
	}
	compare("machine", r.Machine, other.Machine)
	compare("runs", r.Settings.Runs, other.Settings.Runs)
	compare("repeats", r.Settings.Repeats, other.Settings.Repeats)
	compare("timeout in seconds", r.Settings.TimeoutSeconds, other.Settings.TimeoutSeconds)
	compare("baseline", r.Settings.Baseline, other.Settings.Baseline)
	compare("noise limit", r.Settings.NoiseLimit, other.Settings.NoiseLimit)
	compare("variables", r.Variables, other.Variables)
	for _, theirs := range other.Allocators {
		if mine := slices.IndexFunc(r.Allocators, func(one Allocator) bool { return one.Name == theirs.Name }); mine >= 0 {
			compare(theirs.Name, r.Allocators[mine].identity(), theirs.identity())
		}
	}
	return found
}

// Evaluate computes medians, ratios and means from the samples.
func (r *Results) Evaluate() {
	for i := range r.Workloads {
		r.Workloads[i].evaluate(r.Settings.Baseline)
	}
	r.Summaries = nil
	for _, allocator := range r.Allocators {
		r.Summaries = append(r.Summaries, r.summarize(allocator.Name))
	}
	r.Sets = r.summarizeSets()
}

// Cell returns the workload's cell of an allocator, or nil.
func (w *WorkloadResult) Cell(allocator string) *Cell {
	for i := range w.Cells {
		if w.Cells[i].Allocator == allocator {
			return &w.Cells[i]
		}
	}
	return nil
}

// hasAverage says whether any run was long enough for an average resident size.
func (w *WorkloadResult) hasAverage() bool {
	return slices.ContainsFunc(w.Cells, func(cell Cell) bool {
		return cell.Median != nil && cell.Median.AverageResident > 0
	})
}

func (w *WorkloadResult) evaluate(baseline string) {
	for i := range w.Cells {
		w.Cells[i].evaluate()
	}
	best := w.best()
	for i := range w.Cells {
		cell := &w.Cells[i]
		cell.ToBaseline, cell.ToBest = nil, nil
		if cell.Median == nil {
			continue
		}
		if base := w.Cell(baseline); base != nil && base.Median != nil {
			cell.ToBaseline = ratios(cell.Median, base.Median)
		}
		if best != nil {
			cell.ToBest = ratios(cell.Median, best)
		}
	}
}

// best returns the best figure of each kind among all allocators but ours; nil if there are none.
func (w *WorkloadResult) best() *Figures {
	var best *Figures
	w.BestTime, w.BestMemory = "", ""
	for _, cell := range w.Cells {
		figures := cell.Median
		if isOurs(cell.Allocator) || figures == nil {
			continue
		}
		if best == nil {
			best = &Figures{}
		}
		if takeLess(&best.Seconds, figures.Seconds) {
			w.BestTime = cell.Allocator
		}
		if takeLess(&best.PeakResident, figures.PeakResident) {
			w.BestMemory = cell.Allocator
		}
		takeLess(&best.CPUSeconds, figures.CPUSeconds)
		takeLess(&best.AverageResident, figures.AverageResident)
		takeLess(&best.Faults, figures.Faults)
	}
	return best
}

// takeLess replaces a figure by a better one, and returns whether it did. 0 stands for none.
func takeLess(best *float64, figure float64) bool {
	if figure <= 0 || (*best > 0 && *best <= figure) {
		return false
	}
	*best = figure
	return true
}

func (c *Cell) evaluate() {
	c.Median, c.Failure, c.Noisy = nil, "", false
	for _, sample := range c.Samples {
		if sample.Failure != "" {
			c.Failure = sample.Failure
			return
		}
		c.Noisy = c.Noisy || !sample.Noise.IsQuiet()
	}
	if len(c.Samples) == 0 {
		return
	}
	seconds := c.column(func(s Sample) float64 { return s.Seconds })
	c.Median = &Figures{
		Seconds:         Median(seconds),
		CPUSeconds:      Median(c.column(func(s Sample) float64 { return s.CPUSeconds })),
		Ops:             Median(c.column(func(s Sample) float64 { return s.Ops })),
		PeakResident:    Median(c.column(func(s Sample) float64 { return s.PeakResident })),
		AverageResident: Median(c.column(func(s Sample) float64 { return s.AverageResident })),
		Faults:          Median(c.column(func(s Sample) float64 { return s.Faults })),
		Spread:          Spread(seconds),
	}
	for name := range c.Samples[0].Extra {
		if c.Median.Extra == nil {
			c.Median.Extra = map[string]float64{}
		}
		c.Median.Extra[name] = Median(c.column(func(s Sample) float64 { return s.Extra[name] }))
	}
}

func (c *Cell) column(of func(Sample) float64) []float64 {
	values := make([]float64, len(c.Samples))
	for i, sample := range c.Samples {
		values[i] = of(sample)
	}
	return values
}

func ratios(own, other *Figures) *Ratios {
	return &Ratios{
		Time:          ratio(own.Seconds, other.Seconds),
		CPU:           ratio(own.CPUSeconds, other.CPUSeconds),
		Memory:        ratio(own.PeakResident, other.PeakResident),
		AverageMemory: ratio(own.AverageResident, other.AverageResident),
		Faults:        ratio(own.Faults, other.Faults),
	}
}

// ratio is 0, which stands for "none", where one side is nothing.
func ratio(own, other float64) float64 {
	if own <= 0 || other <= 0 {
		return 0
	}
	return own / other
}

func (r *Results) summarize(allocator string) Summary {
	summary := Summary{Allocator: allocator}
	var time, cpu, memory, average, faults, toBest []float64
	var families []string
	timeOf := map[string][]float64{}
	for i := range r.Workloads {
		workload := &r.Workloads[i]
		cell := workload.Cell(allocator)
		if cell == nil {
			continue
		}
		if cell.Failure != "" {
			summary.Failures++
		}
		if cell.ToBaseline == nil {
			continue
		}
		summary.Workloads++
		memory = appendPositive(memory, cell.ToBaseline.Memory)
		average = appendPositive(average, cell.ToBaseline.AverageMemory)
		faults = appendPositive(faults, cell.ToBaseline.Faults)
		if workload.HasTag(TagMemory) {
			continue
		}
		time = appendPositive(time, cell.ToBaseline.Time)
		cpu = appendPositive(cpu, cell.ToBaseline.CPU)
		if cell.ToBest != nil {
			toBest = appendPositive(toBest, cell.ToBest.Time)
		}
		if _, known := timeOf[workload.Family]; !known {
			families = append(families, workload.Family)
		}
		timeOf[workload.Family] = appendPositive(timeOf[workload.Family], cell.ToBaseline.Time)
	}
	summary.TimeWorkloads, summary.AverageWorkloads = len(time), len(average)
	summary.Ratios = Ratios{
		Time: mean(time), CPU: mean(cpu), Memory: mean(memory), AverageMemory: mean(average), Faults: mean(faults),
	}
	summary.Distance = distance(toBest)
	var byFamily []float64
	for _, family := range families {
		byFamily = appendPositive(byFamily, mean(timeOf[family]))
	}
	summary.TimeByFamily = mean(byFamily)
	return summary
}

func appendPositive(values []float64, value float64) []float64 {
	if value > 0 {
		return append(values, value)
	}
	return values
}

// mean is the geometric mean, or 0, which JSON can write, of nothing.
func mean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return GeometricMean(values)
}
