// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"time"

	"tcm/internal/text"
)

// progress tells how far a benchmark is and how long it may still take.
type progress struct {
	plan  *Plan
	begin time.Time
	done  int
	// workloads counts the finished ones.
	workloads int
}

func newProgress(plan *Plan, begin time.Time) *progress { return &progress{plan: plan, begin: begin} }

// step is called before each run.
func (p *progress) step(workload string, round int, allocator string) {
	if p.plan.Live {
		fmt.Fprintf(p.plan.Progress, "\r\033[K[%d/%d] %s, round %d of %d, %s%s",
			p.workloads+1, len(p.plan.Workloads), workload, round+1, p.plan.Settings.Runs, allocator,
			p.remaining())
	}
	p.done++
}

// remaining extrapolates from the runs so far.
func (p *progress) remaining() string {
	all := len(p.plan.Workloads) * len(p.plan.Allocators) * p.plan.Settings.Runs
	if p.done == 0 || p.done == all {
		return ""
	}
	left := time.Since(p.begin).Seconds() / float64(p.done) * float64(all-p.done)
	return ", about " + text.Seconds(left) + " left"
}

func (p *progress) workloadDone(result *WorkloadResult) {
	p.workloads++
	if p.plan.Live {
		fmt.Fprint(p.plan.Progress, "\r\033[K")
	}
	fmt.Fprintf(p.plan.Progress, "[%d/%d] %s%s%s\n", p.workloads, len(p.plan.Workloads), result.Name,
		remarks(result), p.remaining())
}

// remarks names what went wrong with a workload.
func remarks(result *WorkloadResult) string {
	var failed, noisy []string
	for _, cell := range result.Cells {
		if cell.Failure != "" {
			failed = append(failed, cell.Allocator)
		} else if cell.Noisy {
			noisy = append(noisy, cell.Allocator)
		}
	}
	out := ""
	if len(failed) > 0 {
		out += ", failed: " + strings.Join(failed, " ")
	}
	if len(noisy) > 0 {
		out += ", noisy: " + strings.Join(noisy, " ")
	}
	return out
}
