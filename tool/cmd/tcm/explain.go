// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"tcm/internal/bench"
	"tcm/internal/explain"
	"tcm/internal/project"
)

// explainRuns is how often the workload runs as it is, where --runs does not say.
const explainRuns = 3

// explainWorkload compares ours with a peer on one workload: with the one that --baseline names, else
// with the fastest.
func explainWorkload(command *cobra.Command, flags *benchFlags) error {
	if command.Flags().Changed("baseline") && len(flags.allocators) > 0 {
		return errors.New("--explain compares with the allocator that --baseline names, or with the best of --allocators, not with both")
	}
	checkout, err := project.Find(rootFlag(command))
	if err != nil {
		return fmt.Errorf("the workloads are in a checkout: %w", err)
	}
	flags.workloads = []string{flags.explain}
	peer := ""
	if command.Flags().Changed("baseline") {
		peer = flags.baseline
		flags.allocators = []string{bench.Ours, peer}
	} else if len(flags.allocators) > 0 {
		flags.allocators = append(flags.allocators, bench.Ours)
	}
	if !command.Flags().Changed("runs") {
		flags.runs = explainRuns
	}
	plan, err := newPlan(command, flags, checkout)
	if err != nil {
		return err
	}
	if len(plan.Workloads) != 1 {
		return fmt.Errorf("--explain takes one workload, and %q fits %d", flags.explain, len(plan.Workloads))
	}
	if err := explain.CheckTools(plan.Build); err != nil {
		return err
	}
	plan.Checkpoint = func(*bench.Results) error { return nil }
	results, err := plan.Run(command.Context(), bench.Quiet{})
	if err != nil {
		return err
	}
	report, err := explainResult(command, plan, checkout, &results.Workloads[0], peer)
	if err != nil {
		return err
	}
	return flags.show(command.OutOrStdout(), report.JSON(), report.Write)
}

// explainResult chooses the peer and lets the tools look at both sides.
func explainResult(command *cobra.Command, plan *bench.Plan, checkout project.Checkout, result *bench.WorkloadResult,
	peer string) (*explain.Report, error) {
	if peer == "" {
		peer = result.BestTime
	}
	ours, err := newSide(result, bench.Ours)
	if err != nil {
		return nil, err
	}
	theirs, err := newSide(result, peer)
	if err != nil {
		return nil, err
	}
	short, err := explain.LoadShort(checkout.Path("bench", "workloads", "explain.json"))
	if err != nil {
		return nil, err
	}
	var printing sync.Mutex
	collector := explain.Collector{Build: plan.Build, Workload: result.Workload, Short: short[result.Program],
		Progress: func(what string) {
			printing.Lock()
			defer printing.Unlock()
			fmt.Fprintln(command.ErrOrStderr(), what)
		}}
	sides := map[*explain.Side]bench.Allocator{ours: allocatorOf(plan, bench.Ours), theirs: allocatorOf(plan, peer)}
	if err := collector.Collect(command.Context(), sides); err != nil {
		return nil, err
	}
	return &explain.Report{Workload: result.Name, Short: collector.Short, Ours: ours, Peer: theirs}, nil
}

func allocatorOf(plan *bench.Plan, name string) bench.Allocator {
	return plan.Allocators[slices.IndexFunc(plan.Allocators, func(one bench.Allocator) bool { return one.Name == name })]
}

// newSide has what the benchmark measured.
func newSide(result *bench.WorkloadResult, name string) (*explain.Side, error) {
	cell := result.Cell(name)
	switch {
	case cell == nil:
		return nil, fmt.Errorf("no allocator other than %s took part in %s", bench.Ours, result.Name)
	case cell.Median == nil:
		return nil, fmt.Errorf("%s failed under %s: %s", result.Name, name, cell.Failure)
	}
	return &explain.Side{Allocator: name, Seconds: cell.Median.Seconds, CPUSeconds: cell.Median.CPUSeconds,
		PeakResident: cell.Median.PeakResident, Faults: cell.Median.Faults}, nil
}
