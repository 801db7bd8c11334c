// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"sort"
	"strings"

	"tcm/internal/text"
)

// MarkdownName is the file of the means in the folder of a benchmark.
const MarkdownName = "means.md"

// WriteMarkdown writes the means over all workloads and over each set, and the workloads in which
// ours is notably slower than the best peer. It writes nothing about a program of the user's own.
func (r *Results) WriteMarkdown(output io.Writer) error {
	var page strings.Builder
	fmt.Fprintf(&page, "# Means\n\nMedians of %s on %s, %s, %s. Geometric means of ratios to %s; below 1 is better.\n",
		text.Counted(int64(r.Settings.Runs), "interleaved run"), r.Machine.Processor, text.Counted(int64(r.Machine.CPUs), "CPU"), r.Started.Format("2006-01-02"), r.Settings.Baseline)
	page.WriteString("*To best* is the mean of the ratios of time to the best of all allocators but ours.\n")
	for _, difference := range r.Differences {
		fmt.Fprintf(&page, "Joined from other conditions: %s.\n", difference)
	}
	r.writeMarkdownMeans(&page, "All workloads", len(r.Workloads), r.Summaries)
	for _, set := range r.Sets {
		r.writeMarkdownMeans(&page, setTitle(set.Set), set.Workloads, set.Summaries)
	}
	r.writeMarkdownLosses(&page)
	_, err := io.WriteString(output, page.String())
	return err
}

func setTitle(set Set) string {
	return strings.ToUpper(string(set[:1])) + string(set[1:])
}

func (r *Results) writeMarkdownMeans(page *strings.Builder, title string, workloads int, summaries []Summary) {
	fmt.Fprintf(page, "\n## %s (%d)\n\n", title, workloads)
	page.WriteString("| allocator | time | by family | CPU | peak | faults | to best | over 1.10 | over 1.25 | failed |\n")
	page.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range summaries {
		toBest := s.columns()
		fmt.Fprintf(page, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %d |\n", s.Allocator, orDash(s.Time), orDash(s.TimeByFamily),
			orDash(s.CPU), orDash(s.Memory), orDash(s.Faults), toBest[0], toBest[1], toBest[2], s.Failures)
	}
}

// writeMarkdownLosses lists the workloads in which ours takes notably longer than the best peer,
// the worst first.
func (r *Results) writeMarkdownLosses(page *strings.Builder) {
	var losses []*WorkloadResult
	toBest := func(w *WorkloadResult) float64 { return w.Cell(Ours).ToBest.Time }
	for i := range r.Workloads {
		workload := &r.Workloads[i]
		if cell := workload.Cell(Ours); cell == nil || cell.ToBest == nil || workload.HasTag(TagMemory) {
			continue
		}
		if distance([]float64{toBest(workload)}).Notable > 0 {
			losses = append(losses, workload)
		}
	}
	if len(losses) == 0 {
		return
	}
	sort.SliceStable(losses, func(i, j int) bool { return toBest(losses[i]) > toBest(losses[j]) })
	fmt.Fprintf(page, "\n## Workloads in which %s takes more than 1.10 times as long as the best peer\n\n", Ours)
	page.WriteString("| workload | set | ratio | best peer |\n|---|---|---|---|\n")
	for _, workload := range losses {
		fmt.Fprintf(page, "| %s | %s | %s | %s |\n", workload.Name, SetOf(workload.Name), text.Ratio(toBest(workload)), workload.BestTime)
	}
}
