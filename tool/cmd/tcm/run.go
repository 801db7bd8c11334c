// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"tcm/internal/project"
	"tcm/internal/runner"
)

func newRun() *cobra.Command {
	var options runner.Options
	var library string
	command := &cobra.Command{
		Use:   "run [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Run a program under TCMalloc and report what it cost",
		Long: "Runs PROGRAM with TCMalloc preloaded. Its standard streams, exit status and signals are its own;\n" +
			"a short report goes to standard error at the end.",
		Example: "  tcm run sqlite3 data.db 'select count(*) from t'\n  tcm run --json -- python3 script.py",
		RunE: func(command *cobra.Command, program []string) error {
			if len(program) == 0 {
				return errors.New("no program to run; usage: tcm " + command.Use)
			}
			path, err := project.Library(library, rootFlag(command))
			if err != nil {
				return err
			}
			options.Library = path
			options.Root = rootFlag(command)
			options.Program = program
			return runner.Run(options)
		},
	}
	// The program's own flags begin at its name.
	command.Flags().SetInterspersed(false)
	command.Flags().StringVar(&library, "library", "", "preload this library (default: "+project.LibraryName+" beside tcm)")
	command.Flags().BoolVar(&options.JSON, "json", false, "report as one line of JSON")
	command.Flags().BoolVarP(&options.Quiet, "quiet", "q", false, "no report")
	return command
}

// newRunReport is what the launcher calls when the program has ended.
func newRunReport() *cobra.Command {
	var figures, program string
	var asJSON bool
	command := &cobra.Command{
		Use:    runner.ReportCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			made, started, err := runner.Collect(command.InOrStdin(), figures, program)
			if err != nil || !started {
				return err
			}
			if asJSON {
				return json.NewEncoder(command.ErrOrStderr()).Encode(made)
			}
			_, err = fmt.Fprint(command.ErrOrStderr(), made.Text())
			return err
		},
	}
	command.Flags().StringVar(&figures, "figures", "", "file in the private folder of the run")
	command.Flags().StringVar(&program, "program", "", "name of the program")
	command.Flags().BoolVar(&asJSON, "json", false, "one line of JSON")
	return command
}
