// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tcm/internal/bench"
	"tcm/internal/demo"
	"tcm/internal/launch"
	"tcm/internal/project"
)

func newDemo() *cobra.Command {
	var asJSON bool
	var library, out, build string
	rounds := 0
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run real programs under glibc's malloc and under TCMalloc, side by side",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if rounds < 1 {
				return errors.New("--rounds must be at least 1")
			}
			checkout, err := project.Find(rootFlag(command))
			if err != nil {
				return err
			}
			path, err := project.Library(library, rootFlag(command))
			if err != nil {
				return err
			}
			launcher, err := launch.Find(rootFlag(command))
			if err != nil {
				return err
			}
			workloads, err := bench.LoadWorkloads(checkout.Workloads())
			if err != nil {
				return err
			}
			if build == "" {
				build = checkout.ReleaseBuild()
			}
			if out == "" {
				out = checkout.Path("build", "demo", "comparison.svg")
			}
			if err := errors.Join(os.MkdirAll(filepath.Dir(out), 0o755), prepareOutputs(&out)); err != nil {
				return err
			}
			shown := &demo.Demo{Launcher: launcher, Library: path, Rounds: rounds, Progress: command.ErrOrStderr()}
			cases, missing := shown.Cases(workloads, bench.Build(build))
			if len(missing) > 0 {
				fmt.Fprintf(command.ErrOrStderr(), "not shown, because it is not installed or built: %s\n", strings.Join(missing, "; "))
			}
			if len(cases) == 0 {
				return errors.New("there is nothing to show")
			}
			comparisons, err := shown.Run(command.Context(), cases)
			if err != nil {
				return err
			}
			return showDemo(command, comparisons, out, asJSON)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	command.Flags().IntVar(&rounds, "rounds", 7, "how often each program runs under each allocator")
	command.Flags().StringVar(&library, "library", "", "our allocator (default: "+project.LibraryName+" beside tcm)")
	command.Flags().StringVar(&out, "out", "", "file for the chart (default: build/demo/comparison.svg)")
	command.Flags().StringVar(&build, "build", "", "the build that has the workloads (default: build/release)")
	return command
}

// showDemo prints and draws the comparisons; that a program failed is an error in the end.
func showDemo(command *cobra.Command, comparisons []demo.Comparison, out string, asJSON bool) error {
	if err := os.WriteFile(out, demo.Chart(comparisons), 0o644); err != nil {
		return err
	}
	output := command.OutOrStdout()
	if asJSON {
		if err := writeJSON(output, comparisons); err != nil {
			return err
		}
	} else {
		if err := demo.WriteTable(output, comparisons); err != nil {
			return err
		}
		fmt.Fprintf(output, "\nchart: %s\n", out)
		fmt.Fprintln(output, "one of your programs: "+asCalled()+" bench -- PROGRAM compares, "+asCalled()+" run PROGRAM reports")
	}
	for _, comparison := range comparisons {
		if comparison.Failed() {
			return fmt.Errorf("%s failed", comparison.Name)
		}
	}
	return nil
}
