// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tcm/internal/doctor"
	"tcm/internal/identify"
	"tcm/internal/project"
)

// errProblems says that the doctor has told of problems.
var errProblems = errors.New("there are problems")

func newDoctor() *cobra.Command {
	var library string
	var asJSON bool
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the machine, and what the allocator does on it",
		Long: "Looks at all that the allocator depends on (kernel, rseq, membarrier, hugepages, limits, the library\n" +
			"itself), runs a small program under it to learn which caches it uses and why, and says what to do.\n" +
			"The exit status is 1 if there is a problem.",
		Example: "  tcm doctor\n  TCMALLOC_FRONT_END=per_cpu tcm doctor --json",
		Args:    noWords,
		RunE: func(command *cobra.Command, _ []string) error {
			path, err := project.Library(library, rootFlag(command))
			if err != nil && library != "" {
				return err
			}
			return examine(command, path, err, asJSON)
		},
	}
	command.Flags().StringVar(&library, "library", "", "examine this library (default: "+project.LibraryName+" beside tcm)")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return command
}

// findPrograms makes programs found where no PATH is set, as libc does.
func findPrograms() error {
	if _, set := os.LookupEnv("PATH"); set {
		return nil
	}
	return os.Setenv("PATH", "/bin:/usr/bin")
}

// examine prints the diagnosis; missing says why there is no library.
func examine(command *cobra.Command, library string, missing error, asJSON bool) error {
	if err := findPrograms(); err != nil {
		return err
	}
	machine := doctor.ThisMachine()
	checks := append(machine.Check(), doctor.CheckPreload(identify.Preloaded(os.Getenv("LD_PRELOAD"))))
	checks = append(checks, checkAllocator(command.Context(), machine, library, missing)...)
	if err := command.Context().Err(); err != nil {
		return err
	}
	found := doctor.NewDiagnosis(checks...)
	var err error
	if asJSON {
		err = writeJSON(command.OutOrStdout(), found)
	} else {
		_, err = fmt.Fprint(command.OutOrStdout(), found.Text())
	}
	if err == nil && found.Problems > 0 {
		err = errProblems
	}
	return err
}

func checkAllocator(ctx context.Context, machine doctor.Machine, library string, missing error) []doctor.Check {
	if missing != nil {
		return []doctor.Check{{Name: "library", State: doctor.Problem, Found: "not found",
			Advice: missing.Error()}}
	}
	file := doctor.CheckLibrary(library, machine.Architecture)
	if file.State == doctor.Problem {
		return []doctor.Check{file}
	}
	return append([]doctor.Check{file}, doctor.CheckFrontEnd(ctx, doctor.AskLibrary(library), os.Environ())...)
}
