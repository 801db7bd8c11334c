// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tcm/internal/bench"
	"tcm/internal/demo"
	"tcm/internal/launch"
	"tcm/internal/project"
)

// demoFlags are those of tcm demo.
type demoFlags struct {
	asJSON              bool
	library, out, build string
	rounds              int
}

func newDemo() *cobra.Command {
	var flags demoFlags
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run real programs under glibc's malloc and under TCMalloc, side by side",
		Args:  noWords,
		RunE:  func(command *cobra.Command, _ []string) error { return flags.run(command) },
	}
	set := command.Flags()
	set.BoolVar(&flags.asJSON, "json", false, "print JSON")
	set.IntVar(&flags.rounds, "rounds", 7, "how often each program runs under each allocator")
	set.StringVar(&flags.library, "library", "", "our allocator (default: "+project.LibraryName+" beside tcm)")
	set.Var((*outputName)(&flags.out), "out", "file for the chart (default: build/demo/comparison.svg)")
	set.StringVar(&flags.build, "build", "", "the build that has the workloads (default: build/release)")
	return command
}

// prepare finds what is needed, and fills in what the user left out.
func (f *demoFlags) prepare(command *cobra.Command) (*demo.Demo, []demo.Case, error) {
	if f.rounds < 1 {
		return nil, nil, errors.New("--rounds must be at least 1")
	}
	checkout, err := project.Find(rootFlag(command))
	if err != nil {
		return nil, nil, err
	}
	library, err := project.Library(f.library, rootFlag(command))
	if err != nil {
		return nil, nil, err
	}
	launcher, err := launch.Find(rootFlag(command))
	if err != nil {
		return nil, nil, err
	}
	workloads, err := bench.LoadWorkloads(checkout.Workloads())
	if err != nil {
		return nil, nil, err
	}
	f.out = cmp.Or(f.out, checkout.Path("build", "demo", "comparison.svg"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(f.out), 0o755), prepareOutputs(nil, output{flag: "--out", path: &f.out})); err != nil {
		return nil, nil, err
	}
	shown := &demo.Demo{Launcher: launcher, Library: library, Rounds: f.rounds, Progress: command.ErrOrStderr()}
	cases, missing := shown.Cases(workloads, bench.Build(cmp.Or(f.build, checkout.ReleaseBuild())))
	if len(missing) > 0 {
		fmt.Fprintf(command.ErrOrStderr(), "not shown, because it is not installed or built: %s\n", strings.Join(missing, "; "))
	}
	if len(cases) == 0 {
		return nil, nil, errors.New("there is nothing to show")
	}
	return shown, cases, nil
}

func (f *demoFlags) run(command *cobra.Command) error {
	shown, cases, err := f.prepare(command)
	if err != nil {
		return err
	}
	comparisons, err := shown.Run(command.Context(), cases)
	if err != nil {
		return err
	}
	return f.show(command.OutOrStdout(), comparisons)
}

// show prints and draws the comparisons; that a program failed is an error in the end.
func (f *demoFlags) show(output io.Writer, comparisons []demo.Comparison) error {
	write := demo.WriteTable
	if f.asJSON {
		write = func(output io.Writer, all []demo.Comparison) error { return writeJSON(output, all) }
	}
	err := write(output, comparisons)
	drawn := writeResult(f.out, func(file io.Writer) error {
		_, err := file.Write(demo.Chart(comparisons))
		return err
	})
	if !f.asJSON {
		if drawn == nil {
			fmt.Fprintf(output, "\nchart: %s\n", f.out)
		}
		fmt.Fprintln(output, "one of your programs: "+asCalled()+" bench -- PROGRAM compares, "+asCalled()+" run PROGRAM reports")
	}
	if err := errors.Join(err, drawn); err != nil {
		return err
	}
	for _, comparison := range comparisons {
		if comparison.Failed() {
			return fmt.Errorf("%s failed", comparison.Name)
		}
	}
	return nil
}
