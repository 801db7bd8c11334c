// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tcm/internal/identify"
	"tcm/internal/project"
	"tcm/internal/report"
	"tcm/internal/runner"
)

func newRun() *cobra.Command {
	var options runner.Options
	var library, called string
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
			if _, err := identify.File(path); err != nil {
				return fmt.Errorf("cannot preload %s: %w", path, err)
			}
			options.Library = path
			options.Called = commandsOf(called)
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
	command.Flags().StringVar(&called, "called", "", "the command that stands for tcm run")
	if err := command.Flags().MarkHidden("called"); err != nil {
		panic(err)
	}
	return command
}

// commandsOf returns the commands as they were called; run is one that stands for tcm run, if any.
func commandsOf(run string) report.Commands {
	own := asCalled()
	if run == "" {
		run = own + " run"
	}
	return report.Commands{Run: run, Bench: own + " bench"}
}

// asCalled is how tcm was called; a long path becomes one from the working directory.
func asCalled() string {
	own := os.Args[0]
	if directory, err := os.Getwd(); err == nil && filepath.IsAbs(own) {
		if relative, err := filepath.Rel(directory, own); err == nil && !strings.HasPrefix(relative, "..") &&
			directory != "/" {
			return relative
		}
	}
	return own
}

// newRunReport is what the launcher calls when the program has ended.
func newRunReport() *cobra.Command {
	var figures string
	var run report.Run
	var commands report.Commands
	var asJSON bool
	command := &cobra.Command{
		Use:    runner.ReportCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			made, started, err := runner.Collect(command.InOrStdin(), figures, run)
			if err != nil || !started {
				return err
			}
			if asJSON {
				return json.NewEncoder(command.ErrOrStderr()).Encode(made)
			}
			_, err = fmt.Fprint(command.ErrOrStderr(), made.Text(commands))
			return err
		},
	}
	command.Flags().StringVar(&figures, "figures", "", "file in the private folder of the run")
	command.Flags().StringVar(&run.Program, "program", "", "the program")
	command.Flags().StringVar(&run.Library, "library", "", "the library that was preloaded")
	command.Flags().StringVar(&commands.Run, "run", "", "how tcm run was called")
	command.Flags().StringVar(&commands.Bench, "bench", "", "how tcm bench would be called")
	command.Flags().BoolVar(&asJSON, "json", false, "one line of JSON")
	return command
}
