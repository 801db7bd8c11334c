// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"tcm/internal/identify"
	"tcm/internal/launch"
	"tcm/internal/project"
	"tcm/internal/runfolder"
	"tcm/internal/runner"
)

const (
	mostFrequency = 4000
	protoSuffix   = ".pb.gz"
)

// cpuRun is a program to profile, and what to do with its profile.
type cpuRun struct {
	output, library   string
	frequency         int
	wall, perf, quiet bool
	flags             profileFlags
}

func newCPU() *cobra.Command {
	var run cpuRun
	command := &cobra.Command{
		Use:   "cpu [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Run a program and show which functions spend its CPU time",
		Long: "Runs PROGRAM with the CPU profiler, " + project.ProfilerLibraryName + ", preloaded: every thread is interrupted at regular\n" +
			"intervals of the CPU time that it takes, and its stack recorded, in the programs that it starts and the children\n" +
			"that it forks as well. Standard streams, exit status and signals are the\n" +
			"program's own; the functions that took most go to standard error at the end. tcm heap and tcm pprof show the file again.",
		Example: "  tcm cpu -- python3 script.py\n  tcm cpu -o cpu.pb.gz --html cpu.html --frequency 1000 -- ./server\n  tcm cpu --wall -- ./client",
		RunE: func(command *cobra.Command, program []string) error {
			if len(program) == 0 {
				return errors.New("no program to run; usage: tcm " + command.Use)
			}
			return run.start(command, program)
		},
	}
	set := command.Flags()
	// The program's own flags begin at its name.
	set.SetInterspersed(false)
	set.VarP((*outputName)(&run.output), "output", "o", "keep the profile in this file; profile.proto if its name ends in .pb.gz or several processes ran, else the binary format of gperftools")
	set.IntVar(&run.frequency, "frequency", 100, "samples per second of CPU time, at most "+strconv.Itoa(mostFrequency))
	set.BoolVar(&run.wall, "wall", false, "sample wall-clock time, waiting included, instead of CPU time")
	set.BoolVar(&run.perf, "perf-events", false, "sample by the kernel's performance events, where it permits them")
	set.BoolVarP(&run.quiet, "quiet", "q", false, "no table")
	set.StringVar(&run.library, "library", "", "preload this library (default: "+project.ProfilerLibraryName+" beside tcm)")
	addCPUReport(command, &run.flags)
	return command
}

// addCPUReport adds the flags that the report at the end takes as well.
func addCPUReport(command *cobra.Command, flags *profileFlags) {
	set := command.Flags()
	set.IntVar(&flags.top, "top", 20, "number of functions in the table; 0 is all")
	set.BoolVar(&flags.cumulative, "cum", false, "sort by what functions take together with those that they call")
	set.BoolVar(&flags.lines, "lines", false, "tell the lines of a function apart")
	set.BoolVar(&flags.fullNames, "full-names", false, "keep parameters and template arguments of C++ names")
	set.Var((*outputName)(&flags.html), "html", "draw a flame graph to this file, for browsers")
	set.Var((*outputName)(&flags.svg), "svg", "draw a flame graph to this file, as a picture")
}

// start does not return unless it fails before the program is started.
func (r *cpuRun) start(command *cobra.Command, program []string) error {
	if r.frequency < 1 || r.frequency > mostFrequency {
		return fmt.Errorf("--frequency must be from 1 to %d", mostFrequency)
	}
	if _, err := r.flags.selection(); err != nil {
		return err
	}
	if err := prepareOutputs(program, output{flag: "-o", path: &r.output, isProfile: true}, output{flag: "--html", path: &r.flags.html}, output{flag: "--svg", path: &r.flags.svg}); err != nil {
		return err
	}
	library, err := project.ProfilerLibrary(r.library, rootFlag(command))
	if err != nil {
		return err
	}
	if !identify.Defines(library, "ProfilerStart") {
		return fmt.Errorf("%s is no library with a CPU profiler", library)
	}
	if err := runner.FindProgram(program[0]); err != nil {
		return err
	}
	// Each process writes a file of its own, so that scripts show what their programs do.
	folder, err := runfolder.Make("tcm-cpu-")
	if err != nil {
		return err
	}
	defer folder.Remove()
	folder.Set("CPUPROFILE", folder.Path(cpuPrefix))
	variables := map[string]string{"LD_PRELOAD": launch.Preload([]string{library}), "CPUPROFILE_FOLLOW_FORKS": "1", "CPUPROFILE_FREQUENCY": strconv.Itoa(r.frequency)}
	if r.output == "" || strings.HasSuffix(r.output, protoSuffix) {
		variables["TCMALLOC_PROFILE_FORMAT"] = "proto"
	}
	if r.wall {
		variables["CPUPROFILE_REALTIME"] = "1"
	}
	if r.perf {
		variables["CPUPROFILE_PERF_EVENTS"] = "1"
	}
	return execute(command, r.report(program[0]), folder, variables, program)
}

// report is the command that shows the profile at the end.
func (r *cpuRun) report(program string) []string {
	words := []string{cpuReportCommand, "--output", r.output, "--program", program,
		"--quiet=" + strconv.FormatBool(r.quiet),
		"--top", strconv.Itoa(r.flags.top), "--cum=" + strconv.FormatBool(r.flags.cumulative), "--lines=" + strconv.FormatBool(r.flags.lines),
		"--full-names=" + strconv.FormatBool(r.flags.fullNames)}
	if r.flags.html != "" {
		words = append(words, "--html", r.flags.html)
	}
	if r.flags.svg != "" {
		words = append(words, "--svg", r.flags.svg)
	}
	return words
}

const cpuReportCommand = "cpu-report"

// cpuPrefix begins the names of the profiles of a run.
const cpuPrefix = "cpu"

// cpuReport is what the launcher asks for when the program has ended.
type cpuReport struct {
	folder          *runfolder.Folder
	output, program string
	quiet           bool
	flags           profileFlags
}

func newCPUReport() *cobra.Command {
	var report cpuReport
	command := newReport(cpuReportCommand, func(command *cobra.Command, folder *runfolder.Folder) error {
		report.folder = folder
		return report.show(command)
	})
	set := command.Flags()
	set.StringVar(&report.output, "output", "", "the file that the user asked for")
	set.StringVar(&report.program, "program", "", "the program")
	set.BoolVar(&report.quiet, "quiet", false, "no table")
	addCPUReport(command, &report.flags)
	return command
}

func (r *cpuReport) show(command *cobra.Command) error {
	measured, err := launch.Read(command.InOrStdin())
	if err != nil || measured.StartErrno != 0 {
		return err
	}
	made, err := readProcessProfiles(r.folder, cpuPrefix, command.ErrOrStderr())
	if err != nil {
		return err
	}
	if made.merged == nil {
		reason, lost := whyNothing(r.folder, r.program, "libprofiler.a", measured.Signal)
		fmt.Fprintf(command.ErrOrStderr(), "tcm: %s wrote no CPU profile: %s\n", r.program, reason)
		return lost
	}
	// What cannot be written keeps nothing else from being shown.
	return errors.Join(r.write(command, made), r.keep(command, made))
}

// keep writes the profile to the file that the user asked for, if any.
func (r *cpuReport) keep(command *cobra.Command, made processProfiles) error {
	if r.output == "" {
		return nil
	}
	if err := made.keep(r.output); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.say(command), "tcm: CPU profile: %s\n", r.output)
	return err
}

// say is where the table goes, and what is said of files.
func (r *cpuReport) say(command *cobra.Command) io.Writer {
	if r.quiet {
		return io.Discard
	}
	return command.ErrOrStderr()
}

// write writes the table and draws the flame graphs.
func (r *cpuReport) write(command *cobra.Command, made processProfiles) error {
	say := r.say(command)
	// The allocator takes CPU time like any other function.
	r.flags.allocator = true
	// Functions are found in a copy, because the file that is kept is as the program wrote it.
	set, err := r.flags.find(command, made.merged.Copy())
	if err != nil {
		return err
	}
	if len(set.Stacks) == 0 {
		_, err := fmt.Fprintf(say, "tcm: %s took too little time for a sample, or its threads block SIGPROF\n", r.program)
		return err
	}
	if err := set.WriteTable(say, r.flags.cumulative, r.flags.top); err != nil {
		return err
	}
	if err := r.flags.draw(set, made.title(r.program)+": CPU time"); err != nil {
		return err
	}
	for _, path := range []string{r.flags.html, r.flags.svg} {
		if path != "" {
			fmt.Fprintf(say, "tcm: flame graph: %s\n", path)
		}
	}
	return nil
}
