// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package runner is tcm run: it becomes the launcher, which runs the program with the allocator
// preloaded and afterwards calls tcm back for the report.
//
// tcm replaces itself by the launcher, instead of staying above it, so that the process that the
// caller started sees the signals of the terminal and of other processes as they are, and ends as
// the program did.
package runner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"tcm/internal/launch"
	"tcm/internal/project"
	"tcm/internal/report"
	"tcm/internal/runfolder"
	"tcm/internal/text"
)

// ReportCommand is the hidden command of tcm that the launcher calls when the program has ended.
const ReportCommand = "run-report"

// HeapProfileVariable names the file to which the full library writes a heap profile as the program
// exits.
const HeapProfileVariable = "TCMALLOC_HEAP_PROFILE"

// profileTypeVariable says what that profile is about. Each of several types has a file of its own.
const profileTypeVariable = "TCMALLOC_PROFILE_TYPE"

// A run for a profile takes more samples than the library does by default, unless the user said how
// many.
const (
	samplePeriodVariable = "TCMALLOC_SAMPLE_PARAMETER"
	profileSamplePeriod  = "524288"
)

// Options of Run.
type Options struct {
	// Library is preloaded.
	Library string
	// Root of the checkout, if it was named.
	Root string
	// Quiet leaves the report out.
	Quiet bool
	// JSON makes the report one line of JSON.
	JSON bool
	// HeapProfile is where the program writes its heap profile as it exits; empty is nowhere.
	HeapProfile string
	// HTML is the flame graph that is drawn from the heap profile; empty is none.
	HTML string
	// Called is how this user calls tcm run and tcm bench.
	Called report.Commands
	// Program and its arguments.
	Program []string
}

// StartError says that a program cannot be started; Status is the exit status that shells use.
type StartError struct {
	Program string
	Status  int
	Err     error
}

func (e *StartError) Error() string { return fmt.Sprintf("cannot start %s: %v", e.Program, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

// FindProgram returns a StartError where there is no such program.
func FindProgram(program string) error {
	const cannotStart, notFound = 126, 127
	_, err := exec.LookPath(program)
	if err == nil || errors.Is(err, exec.ErrDot) {
		return nil
	}
	var reason *exec.Error
	if errors.As(err, &reason) {
		err = reason.Err
	}
	status := cannotStart
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		status = notFound
	}
	return &StartError{Program: program, Status: status, Err: err}
}

// Run does not return unless it fails before the program is started.
func Run(options Options) error {
	if err := FindProgram(options.Program[0]); err != nil {
		return err
	}
	launcher, err := launch.Find(options.Root)
	if err != nil {
		return err
	}
	variables := map[string]string{"LD_PRELOAD": launch.Preload([]string{options.Library})}
	var then []string
	environment := runfolder.Without(os.Environ())
	profiled := options.HeapProfile != "" || options.HTML != ""
	if types := os.Getenv(profileTypeVariable); profiled && strings.Contains(types, ",") {
		return fmt.Errorf("%s=%s: profiles of several types cannot be added up, and tcm run keeps one; name one type", profileTypeVariable, types)
	}
	if !options.Quiet || profiled {
		folder, err := runfolder.Make("tcm-run-")
		if err != nil {
			return err
		}
		defer folder.Remove()
		if err := folder.Create(report.FiguresName); err != nil {
			return err
		}
		if !options.Quiet {
			folder.Set(report.Variable, folder.Path(report.FiguresName))
		}
		if profiled {
			profileVariables(options, folder, variables)
		}
		then, err = followUp(options)
		if err != nil {
			return err
		}
		environment = folder.Environment(environment)
	}
	return become(launcher, then, variables, environment, options.Program)
}

// HeapPrefix begins the names of the heap profiles of a run.
const HeapPrefix = "heap."

// profileVariables makes every process write a heap profile of its own, in the format that the name of the user's
// file asks for.
func profileVariables(options Options, folder *runfolder.Folder, variables map[string]string) {
	name := strings.ReplaceAll(folder.Path(HeapPrefix), "%", "%%") + "%p"
	if options.HeapProfile == "" || strings.HasSuffix(options.HeapProfile, ".pb.gz") {
		name += ".pb.gz"
	}
	folder.Set(HeapProfileVariable, name)
	if os.Getenv(samplePeriodVariable) == "" {
		variables[samplePeriodVariable] = profileSamplePeriod
	}
}

// Exec becomes the launcher, which runs the program with these variables and afterwards tcm with the words in
// report, on whose standard input is what the program cost, and which finds the folder. It does not return unless it fails.
func Exec(root string, report []string, folder *runfolder.Folder, variables map[string]string, program []string) error {
	launcher, err := launch.Find(root)
	if err != nil {
		return err
	}
	self, err := project.Program()
	if err != nil {
		return err
	}
	then := thenWords(append([]string{self}, report...))
	return become(launcher, then, variables, folder.Environment(os.Environ()), program)
}

func become(launcher string, then []string, variables map[string]string, environment, program []string) error {
	words := launch.Words(launcher, then, variables, program)
	return fmt.Errorf("cannot run %s: %w", launcher, syscall.Exec(launcher, words, environment))
}

// thenWords are the launcher's options for a command at the end.
func thenWords(words []string) []string {
	var then []string
	for _, word := range words {
		then = append(then, "--then", word)
	}
	return then
}

func followUp(options Options) ([]string, error) {
	self, err := project.Program()
	if err != nil {
		return nil, err
	}
	words := []string{self, ReportCommand, "--program", options.Program[0],
		"--library", options.Library, "--run", options.Called.Run, "--bench", options.Called.Bench,
		"--called", text.ShellWords(options.Program)}
	if options.JSON {
		words = append(words, "--json")
	}
	if options.Quiet {
		words = append(words, "--quiet")
	}
	if options.HeapProfile != "" {
		words = append(words, "--heap-profile", options.HeapProfile)
	}
	if options.HTML != "" {
		words = append(words, "--html", options.HTML)
	}
	return thenWords(words), nil
}

// mostFigures bounds what is read of the lines of all processes.
const mostFigures = 256 << 20

// Collect reads what the launcher measured and what the allocator left. started is false where the program could not be started, of which the launcher has told.
func Collect(result io.Reader, folder *runfolder.Folder, run report.Run) (made report.Report, started bool, err error) {
	measured, err := launch.Read(result)
	if err != nil {
		return report.Report{}, false, err
	}
	file, err := folder.Open(report.FiguresName)
	if err != nil {
		return report.Report{}, false, fmt.Errorf("cannot read the figures of the run: %w", err)
	}
	defer file.Close()
	allocator, err := report.ParseAllocator(io.LimitReader(file, mostFigures))
	if err != nil {
		return report.Report{}, false, err
	}
	if allocator.Processes == 0 {
		run.NoRoom = folder.NoRoom()
	}
	return report.New(run, measured, allocator), measured.StartErrno == 0, nil
}
