// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tcm/internal/identify"
	"tcm/internal/profiles"
	"tcm/internal/project"
	"tcm/internal/report"
	"tcm/internal/runfolder"
	"tcm/internal/runner"
)

func newRun() *cobra.Command {
	var options runner.Options
	var library, called string
	command := &cobra.Command{
		Use:   "run [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Run a program under TCMalloc and report what it cost",
		Long: "Runs PROGRAM with TCMalloc preloaded. Its standard streams, exit status and signals are its own;\n" +
			"a short report goes to standard error at the end. --heap-profile and --html take the full library, " + project.FullLibraryName + ",\n" +
			"which samples what the program allocates, and show which functions hold memory as it exits.",
		Example: "  tcm run sqlite3 data.db 'select count(*) from t'\n  tcm run --json -- python3 script.py\n" +
			"  tcm run --html memory.html -- python3 script.py",
		RunE: func(command *cobra.Command, program []string) error {
			if len(program) == 0 {
				return errors.New("no program to run; usage: tcm " + command.Use)
			}
			if options.JSON && options.Quiet {
				return errors.New("--json prints the report, and --quiet leaves it out: choose one of them")
			}
			options.Program = program
			path, err := findLibrary(&options, library, rootFlag(command))
			if err != nil {
				return err
			}
			if _, err := identify.File(path); err != nil {
				return fmt.Errorf("cannot preload %s: %w", path, err)
			}
			options.Library = path
			options.Called = commandsOf(called)
			options.Root = rootFlag(command)
			complainOfProfilers(command.ErrOrStderr(), options.HeapProfile == "" && options.HTML == "")
			return runner.Run(options)
		},
	}
	// The program's own flags begin at its name.
	command.Flags().SetInterspersed(false)
	command.Flags().StringVar(&library, "library", "", "preload this library (default: "+project.LibraryName+" beside tcm)")
	command.Flags().BoolVar(&options.JSON, "json", false, "report as one line of JSON")
	command.Flags().BoolVarP(&options.Quiet, "quiet", "q", false, "no report")
	command.Flags().Var((*outputName)(&options.HeapProfile), "heap-profile", "write the heap profile at exit to this file; profile.proto if its name ends in .pb.gz or several processes ran, which are added up")
	command.Flags().Var((*outputName)(&options.HTML), "html", "draw a flame graph of the heap at exit to this file, for browsers; several processes are added up")
	command.Flags().StringVar(&called, "called", "", "the command that stands for tcm run")
	if err := command.Flags().MarkHidden("called"); err != nil {
		panic(err)
	}
	return command
}

// findLibrary returns the library that does what the options ask for, and makes their paths absolute,
// because programs change their working directory.
func findLibrary(options *runner.Options, asked, root string) (string, error) {
	if options.HeapProfile == "" && options.HTML == "" {
		return project.Library(asked, root)
	}
	err := prepareOutputs(options.Program, output{flag: "--heap-profile", path: &options.HeapProfile, isProfile: true}, output{flag: "--html", path: &options.HTML})
	if err != nil {
		return "", err
	}
	return project.FullLibrary(asked, root)
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
	var run report.Run
	var commands report.Commands
	var asJSON, quiet bool
	var heap heapAtExit
	command := newReport(runner.ReportCommand, func(command *cobra.Command, folder *runfolder.Folder) error {
		made, started, err := runner.Collect(command.InOrStdin(), folder, run)
		if err != nil || !started {
			return err
		}
		switch {
		case asJSON:
			err = json.NewEncoder(command.ErrOrStderr()).Encode(made)
		case !quiet:
			_, err = fmt.Fprint(command.ErrOrStderr(), made.Text(commands))
		}
		heap.folder, heap.signal = folder, made.Signal
		return errors.Join(err, heap.show(command, run, quiet || asJSON))
	})
	command.Flags().StringVar(&run.Program, "program", "", "the program")
	command.Flags().StringVar(&run.Library, "library", "", "the library that was preloaded")
	command.Flags().StringVar(&commands.Run, "run", "", "how tcm run was called")
	command.Flags().StringVar(&commands.Bench, "bench", "", "how tcm bench would be called")
	command.Flags().StringVar(&commands.Program, "called", "", "the program and its arguments")
	command.Flags().BoolVar(&asJSON, "json", false, "one line of JSON")
	command.Flags().BoolVar(&quiet, "quiet", false, "no report")
	command.Flags().StringVar(&heap.profile, "heap-profile", "", "the heap profile")
	command.Flags().StringVar(&heap.html, "html", "", "the flame graph to draw")
	return command
}

// heapAtExit is what becomes of the heap profiles that the processes of a run wrote.
type heapAtExit struct {
	folder *runfolder.Folder
	// signal is the one that ended the program, 0 if none did.
	signal        int
	profile, html string
}

// show keeps the profile and draws the flame graph, if they were asked for, and says where they lie.
func (h *heapAtExit) show(command *cobra.Command, run report.Run, quiet bool) error {
	if h.profile == "" && h.html == "" {
		return nil
	}
	made, err := readProcessProfiles(h.folder, runner.HeapPrefix, command.ErrOrStderr())
	if err != nil {
		return err
	}
	if made.merged == nil {
		note, lost := h.noHeapProfile(run)
		fmt.Fprintln(command.ErrOrStderr(), "tcm:", note)
		return lost
	}
	complaints := command.ErrOrStderr()
	if quiet {
		command.SetErr(io.Discard)
	}
	err = h.draw(command, made, run.Program)
	if errors.Is(err, profiles.ErrNoStacks) {
		fmt.Fprintf(complaints, "tcm: no flame graph: nothing that was sampled was in use when %s exited\n", run.Program)
		err = nil
	}
	return errors.Join(err, h.keep(command, made))
}

// keep writes the profile to the file that the user asked for, if any.
func (h *heapAtExit) keep(command *cobra.Command, made processProfiles) error {
	if h.profile == "" {
		return nil
	}
	if err := made.keep(h.profile); err != nil {
		return err
	}
	_, err := fmt.Fprintf(command.ErrOrStderr(), "tcm: heap profile%s: %s; show it with %s heap\n", ofProcesses(len(made.files)), h.profile, asCalled())
	return err
}

// fullArchive has what project.FullLibraryName has.
const fullArchive = "libtcmalloc.a"

// noHeapProfile says why there is none, as whyNothing does.
func (h *heapAtExit) noHeapProfile(run report.Run) (string, error) {
	library, err := identify.File(run.Library)
	if err == nil && library.IsOurs() && !identify.Defines(run.Library, heapProfileSymbol) {
		return fmt.Sprintf("%s wrote no heap profile: %s is a library without profiles", run.Program, run.Library), nil
	}
	reason, lost := whyNothing(h.folder, run.Program, fullArchive, h.signal)
	return fmt.Sprintf("%s wrote no heap profile: %s", run.Program, reason), lost
}

// heapProfileSymbol is a function that only libraries with profiles have.
const heapProfileSymbol = "tcmalloc_write_heap_profile"

func ofProcesses(number int) string {
	if number == 1 {
		return ""
	}
	return fmt.Sprintf(" of %d processes, each as it exited", number)
}

// draw draws the flame graph that the user asked for, if any.
func (h *heapAtExit) draw(command *cobra.Command, made processProfiles, program string) error {
	if h.html == "" {
		return nil
	}
	// Functions are found in a copy, because the file that is kept is as the program wrote it.
	flags := profileFlags{html: h.html}
	set, err := flags.find(command, made.merged.Copy())
	if err != nil {
		return err
	}
	if err := flags.show(command, set, made.title(program)+" at exit"); err != nil {
		return err
	}
	_, err = fmt.Fprintf(command.ErrOrStderr(), "tcm: flame graph%s: %s\n", ofProcesses(len(made.files)), h.html)
	return err
}
