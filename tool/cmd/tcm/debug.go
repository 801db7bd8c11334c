// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"tcm/internal/identify"
	"tcm/internal/launch"
	"tcm/internal/mistakes"
	"tcm/internal/project"
	"tcm/internal/report"
	"tcm/internal/runfolder"
	"tcm/internal/runner"
	"tcm/internal/symbols"
	"tcm/internal/text"
)

// checkedRun is a program to run in a mode that notices mistakes, and what to do with its reports.
type checkedRun struct {
	mode            string
	library, output string
	pageFence       bool
	checkInterval   uint64
	flags           checkFlags
}

// checkFlags are those that the report at the end takes as well.
type checkFlags struct {
	asJSON  bool
	symbols symbols.Options
}

const (
	modeDebug  = "debug"
	modeHarden = "harden"
	// modeVariable chooses the mode of the full library, and these are its values.
	modeVariable = "TCMALLOC_MODE"
	debugging    = "debug"
	hardened     = "hardened"
)

// valueOf are the values of modeVariable for the commands.
var valueOf = map[string]string{modeDebug: debugging, modeHarden: hardened}

func newDebug() *cobra.Command {
	run := checkedRun{mode: modeDebug}
	command := &cobra.Command{
		Use:   "debug [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Run a program with every block checked, and explain its mistakes",
		Long: "Runs PROGRAM with the debug library, " + project.DebugLibraryName + ", preloaded, which checks every block: writes outside of it and\n" +
			"after its free, double and invalid frees, functions that do not fit, wrong sizes. A mistake ends the program, or the one of\n" +
			"the programs that it starts, by SIGABRT; what it is and where the block was allocated and freed goes to standard\n" +
			"error at the end, with the lines of the source. Streams, exit status and signals are the program's own.",
		Example: "  tcm debug -- ./server --once\n  tcm debug --page-fence -- ./server\n  tcm debug -o report.txt -- make check",
		RunE: func(command *cobra.Command, program []string) error {
			return run.start(command, program)
		},
	}
	run.addFlags(command)
	set := command.Flags()
	set.BoolVar(&run.pageFence, "page-fence", false, "end each block at a page without access: a read or write beyond it, or after its free, faults at once")
	set.Uint64Var(&run.checkInterval, "check-interval", 0, "check all blocks each time that the program has allocated so many; 0 checks blocks as they are freed, and at exit")
	return command
}

func newHarden() *cobra.Command {
	run := checkedRun{mode: modeHarden}
	command := &cobra.Command{
		Use:   "harden [flags] [--] PROGRAM [ARGUMENT...]",
		Short: "Run a program in the hardened mode, and explain its mistakes",
		Long: "Runs PROGRAM with the full library, " + project.FullLibraryName + ", preloaded, in its hardened mode (" + modeVariable + "=" + hardened + "), which ends\n" +
			"the program at most mistakes with memory at little cost. A report goes to standard error at the end, as of tcm debug,\n" +
			"which notices more and knows more. Streams, exit status and signals are the program's own.",
		Example: "  tcm harden -- ./server",
		RunE: func(command *cobra.Command, program []string) error {
			return run.start(command, program)
		},
	}
	run.addFlags(command)
	return command
}

func (r *checkedRun) addFlags(command *cobra.Command) {
	set := command.Flags()
	// The program's own flags begin at its name.
	set.SetInterspersed(false)
	set.VarP((*outputName)(&r.output), "output", "o", "write the report to this file")
	set.StringVar(&r.library, "library", "", "preload this library (default: "+libraryOf[r.mode]+" beside tcm)")
	addCheckFlags(command, &r.flags)
}

func addCheckFlags(command *cobra.Command, flags *checkFlags) {
	command.Flags().BoolVar(&flags.asJSON, "json", false, "report as JSON, to the file of -o")
	command.Flags().BoolVar(&flags.symbols.FullNames, "full-names", false, "keep parameters and template arguments of C++ names")
}

// start does not return unless it fails before the program is started.
func (r *checkedRun) start(command *cobra.Command, program []string) error {
	if len(program) == 0 {
		return errors.New("no program to run; usage: tcm " + command.Use)
	}
	if r.flags.asJSON && r.output == "" {
		return errors.New("--json needs -o FILE: standard error has what the program and the allocator say as well")
	}
	if err := prepareOutputs(program, output{flag: "-o", path: &r.output}); err != nil {
		return err
	}
	library, err := r.findLibrary(rootFlag(command))
	if err != nil {
		return err
	}
	if err := runner.FindProgram(program[0]); err != nil {
		return err
	}
	if err := r.refuse(program[0]); err != nil {
		return err
	}
	folder, err := runfolder.Make("tcm-" + r.mode + "-")
	if err != nil {
		return err
	}
	defer folder.Remove()
	if err := folder.Create(report.FiguresName); err != nil {
		return err
	}
	folder.Set(report.Variable, folder.Path(report.FiguresName))
	folder.Set(mistakes.Variable, folder.Path(mistakes.FilePrefix))
	variables := map[string]string{"LD_PRELOAD": launch.Preload([]string{library})}
	if hasToBeTold(library, r.mode) {
		variables[modeVariable] = valueOf[r.mode]
	}
	if r.pageFence {
		variables["TCMALLOC_PAGE_FENCE"] = "1"
	}
	if r.checkInterval > 0 {
		variables["TCMALLOC_CHECK_INTERVAL"] = strconv.FormatUint(r.checkInterval, 10)
	}
	return execute(command, r.report(library, program), folder, variables, program)
}

func (r *checkedRun) findLibrary(root string) (string, error) {
	find := project.DebugLibrary
	if r.mode == modeHarden {
		find = project.FullLibrary
	}
	library, err := find(r.library, root)
	if err != nil {
		return "", err
	}
	if err := checkOurs(library); err != nil {
		return "", err
	}
	content, err := os.ReadFile(library)
	if err != nil {
		return "", err
	}
	if !bytes.Contains(content, []byte(mistakes.Variable)) {
		return "", fmt.Errorf("%s is older than this tcm: it does not know %s; build or install a newer one", library, mistakes.Variable)
	}
	if !mistakes.HasMode(content, valueOf[r.mode]) {
		return "", fmt.Errorf("%s has no mode %q, in which tcm %s runs programs; %s of this version has it", library, valueOf[r.mode], r.mode, libraryOf[r.mode])
	}
	return library, nil
}

// libraryOf are the libraries that the commands preload unless told otherwise.
var libraryOf = map[string]string{modeDebug: project.DebugLibraryName, modeHarden: project.FullLibraryName}

// hasToBeTold returns false for the debug library, which is always in the mode. Others are where a variable says so.
func hasToBeTold(library, mode string) bool {
	return mode == modeHarden || filepath.Base(library) != project.DebugLibraryName
}

// checkOurs returns an error for a library that is none of this project.
func checkOurs(library string) error {
	found, err := identify.File(library)
	if err != nil {
		return fmt.Errorf("cannot preload %s: %w", library, err)
	}
	if !found.IsOurs() {
		return fmt.Errorf("cannot use %s: it is %s, which tells tcm nothing", library, found)
	}
	return nil
}

// refuse names programs that bring a checking allocator of their own.
func (r *checkedRun) refuse(program string) error {
	if filepath.Base(program) == "valgrind" {
		return fmt.Errorf("valgrind puts an allocator of its own in the place of any other: run it without tcm %s", r.mode)
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil
	}
	if sanitizer := identify.Sanitizer(path); sanitizer != "" {
		return fmt.Errorf("%s is built with the %s, which has an allocator of its own: run it without tcm %s, or build it without", program, sanitizer, r.mode)
	}
	return nil
}

// report is the command that explains what was noticed.
func (r *checkedRun) report(library string, program []string) []string {
	words := []string{checkReportCommand, "--mode", r.mode, "--library", library, "--output", r.output,
		"--called", asCalled(), "--page-fence=" + strconv.FormatBool(r.pageFence), "--json=" + strconv.FormatBool(r.flags.asJSON),
		"--full-names=" + strconv.FormatBool(r.flags.symbols.FullNames)}
	// The launcher takes a bounded number of words.
	return append(words, "--command", text.ShellLine(program), "--program", program[0])
}

const checkReportCommand = "check-report"

// checkReport is what the launcher asks for when the program has ended.
type checkReport struct {
	folder                                          *runfolder.Folder
	mode, library, output, called, command, program string
	pageFence                                       bool
	flags                                           checkFlags
}

func newCheckReport() *cobra.Command {
	var r checkReport
	command := newReport(checkReportCommand, func(command *cobra.Command, folder *runfolder.Folder) error {
		r.folder = folder
		return r.show(command)
	})
	set := command.Flags()
	set.StringVar(&r.mode, "mode", "", "debug or harden")
	set.StringVar(&r.library, "library", "", "the library that was preloaded")
	set.StringVar(&r.output, "output", "", "the file that the user asked for")
	set.StringVar(&r.called, "called", "", "how tcm was called")
	set.StringVar(&r.command, "command", "", "the program with its arguments")
	set.StringVar(&r.program, "program", "", "the program")
	set.BoolVar(&r.pageFence, "page-fence", false, "blocks ended at pages without access")
	addCheckFlags(command, &r.flags)
	return command
}

// mostShown is the number of reports that are written to the terminal.
const mostShown = 5

func (r *checkReport) show(command *cobra.Command) error {
	run := report.Run{Program: r.program, Library: r.library}
	collected, started, err := runner.Collect(command.InOrStdin(), r.folder, run)
	if err != nil || !started {
		return err
	}
	symbolizer := mistakes.NewSymbolizer(r.flags.symbols)
	reports, err := mistakes.ReadAll(r.folder, symbolizer)
	if err != nil {
		return err
	}
	for _, one := range reports {
		one.Next = r.next(one)
	}
	say := command.ErrOrStderr()
	for _, problem := range symbolizer.Problems() {
		fmt.Fprintln(say, "tcm:", problem)
	}
	made := checkResult{Mode: r.mode, Reports: reports}
	var lost error
	if len(reports) == 0 {
		noRoom := r.noRoom(collected)
		made.Note, lost = r.note(collected, noRoom), lostFor(noRoom)
	}
	return cmp.Or(r.present(say, made), lost)
}

// present writes what was noticed to the file that the user asked for, if any.
func (r *checkReport) present(say io.Writer, made checkResult) error {
	if r.output == "" {
		return r.write(say, made, mostShown)
	}
	all := func(to io.Writer) error { return r.write(to, made, len(made.Reports)) }
	if err := writeWhole(r.output, all); err != nil {
		// The program may not do the same again.
		return errors.Join(all(say), err)
	}
	_, err := fmt.Fprintf(say, "tcm: %s: %s\n", made.summary(), r.output)
	return err
}

// checkResult is what was noticed in a run.
type checkResult struct {
	Mode    string             `json:"mode"`
	Note    string             `json:"note,omitempty"`
	Reports []*mistakes.Report `json:"reports"`
}

func (c checkResult) summary() string {
	if len(c.Reports) == 0 {
		return c.Note
	}
	return text.Counted(int64(len(c.Reports)), "report")
}

func (r *checkReport) write(to io.Writer, made checkResult, most int) error {
	to = text.NewPrintable(to)
	if r.flags.asJSON {
		if made.Reports == nil {
			made.Reports = []*mistakes.Report{}
		}
		return writeJSON(to, made)
	}
	if len(made.Reports) == 0 {
		_, err := fmt.Fprintf(to, "tcm: %s\n", made.Note)
		return err
	}
	var page strings.Builder
	for i, one := range made.Reports[:min(most, len(made.Reports))] {
		if i > 0 {
			page.WriteString("\n")
		}
		page.WriteString(one.Text("tcm " + r.mode))
	}
	if left := len(made.Reports) - most; left > 0 {
		fmt.Fprintf(&page, "\n%s more; -o FILE has all\n", text.Counted(int64(left), "report"))
	}
	_, err := io.WriteString(to, page.String())
	return err
}

// next names commands that show more of a mistake.
func (r *checkReport) next(of *mistakes.Report) []mistakes.Step {
	tcm := r.called
	if r.mode == modeHarden {
		return []mistakes.Step{{Command: tcm + " debug -- " + r.command, Purpose: "who allocated and who freed the block"}}
	}
	if !of.Early {
		return nil
	}
	const slower = "names it, slower, also before a block and inside of its padding"
	if path, err := exec.LookPath(r.program); err != nil || filepath.Base(path) != filepath.Base(of.Program) {
		// A program that this one started, with arguments that nobody knows.
		return []mistakes.Step{{Command: "valgrind --trace-children=yes " + r.command, Purpose: "names the read or write itself"}}
	}
	return []mistakes.Step{{Command: r.gdb(), Purpose: "stops at the read or write itself"}, {Command: "valgrind " + r.command, Purpose: slower}}
}

// gdb is the command that shows the access at which a program faults, with page fences or in hardened mode, and the block.
func (r *checkReport) gdb() string {
	words := []string{"gdb", "-batch", "-ex", "set environment LD_PRELOAD " + r.library}
	if hasToBeTold(r.library, r.mode) {
		words = append(words, "-ex", fmt.Sprintf("set environment %s %s", modeVariable, valueOf[r.mode]))
	}
	if r.mode == modeDebug {
		words = append(words, "-ex", "set environment TCMALLOC_PAGE_FENCE 1")
	}
	words = append(words, "-ex", "run", "-ex", "bt")
	if script := project.GDBScript(""); script != "" {
		words = append(words, "-ex", "source "+script, "-ex", "heap fault")
	}
	return text.ShellLine(words) + " --args " + r.command
}

// ownSignals end programs for what they did themselves, a mistake with blocks for instance.
var ownSignals = []syscall.Signal{syscall.SIGABRT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGFPE, syscall.SIGSYS}

// noReport says of a program that such a signal ended what can be known. The allocator writes to standard error where it
// cannot write a report.
func noReport(noRoom error) string {
	return "no report of a mistake with blocks could be read: none was noticed, or else what the allocator said is on standard error," +
		" because the program could not write it to its file (" + report.CannotWrite(noRoom) + ")"
}

// noRoom returns why a program that could have left something cannot have done so, if that is known.
func (r *checkReport) noRoom(run report.Report) error {
	if run.Allocator != nil || report.Unreachable(r.program, "") != "" {
		return nil
	}
	return r.folder.NoRoom()
}

// note says what to think of a run without a report.
func (r *checkReport) note(run report.Report, noRoom error) string {
	archive := strings.TrimSuffix(filepath.Base(r.library), ".so.4") + ".a"
	if reason := report.Unreachable(r.program, archive); reason != "" {
		return "nothing was checked: " + reason
	}
	signal := syscall.Signal(run.Signal)
	isFault := signal == syscall.SIGSEGV || signal == syscall.SIGBUS
	switch {
	case isFault && r.pageFence:
		return fmt.Sprintf("%s ended by %s, as a read or write beyond a block or after its free does. This shows where, and which block:\n  %s", r.program, launch.SignalName(run.Signal), r.gdb())
	case isFault && r.mode == modeHarden:
		return fmt.Sprintf("%s ended by %s, as a read or write of a large block after its free or beyond it may. This shows where, and which block:\n  %s", r.program, launch.SignalName(run.Signal), r.gdb())
	case isFault:
		return fmt.Sprintf("%s ended by %s, and %s. gdb shows where it ended, and --page-fence may let it fault earlier", r.program, launch.SignalName(run.Signal), noReport(noRoom))
	case slices.Contains(ownSignals, signal):
		return fmt.Sprintf("%s ended by %s, and %s", r.program, launch.SignalName(run.Signal), noReport(noRoom))
	case signal != 0:
		return fmt.Sprintf("no mistakes were noticed before %s ended %s", launch.SignalName(run.Signal), r.program)
	case run.Allocator == nil:
		return "no report came from " + r.program + ", and no figures: it ended by _exit or became another program, so that memory was not looked through at the end, or could write none (" + report.CannotWrite(noRoom) + ")"
	// Blocks with pages of their own are not counted.
	case run.Silence != "" && !r.pageFence:
		return "nothing was checked: " + run.Silence
	case run.Allocator.Processes > 1:
		return fmt.Sprintf("no mistakes were noticed in %s and %s that it started", r.program, text.Counted(int64(run.Allocator.Processes-1), "process"))
	}
	return "no mistakes were noticed in " + r.program
}
