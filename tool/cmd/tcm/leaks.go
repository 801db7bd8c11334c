// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"tcm/internal/identify"
	"tcm/internal/launch"
	"tcm/internal/mistakes"
	"tcm/internal/profiles"
	"tcm/internal/project"
	"tcm/internal/report"
	"tcm/internal/runfolder"
	"tcm/internal/runner"
	"tcm/internal/symbols"
	"tcm/internal/text"
)

// errLeaks says that a program has leaks, which were shown.
var errLeaks = errors.New("there are leaks")

// leakFlags are those of tcm leaks.
type leakFlags struct {
	library, mode, suppressions, root string
	top                               int
	asJSON, fullNames                 bool
}

func newLeaks() *cobra.Command {
	var flags leakFlags
	command := &cobra.Command{
		Use:   "leaks [flags] -- PROGRAM [ARGUMENT...] | leaks [flags] [OLD] FILE",
		Short: "Run a program and show the blocks that it leaks, or the suspects of a heap profile",
		Long: "Runs PROGRAM with the full library, " + project.FullLibraryName + ", preloaded, which records every block, and\n" +
			"shows those to which no pointer leads when the program exits, by the place that allocated them. A program\n" +
			"without leaks gets one line. Streams, exit status and signals are the program's own; the status is 1 if there are\n" +
			"leaks and that is 0.\n\n" +
			"With a FILE that such a check wrote, shows that. With a heap profile of a program that goes on running, shows\n" +
			"its suspects: the places whose blocks have become more for as long as the program runs, and of which the old\n" +
			"ones stay. With two profiles of the same program, shows how much these have grown from one to the other.",
		Example: "  tcm leaks -- ./server --once\n  tcm leaks --mode strict -- ./tests\n  tcm leaks /tmp/server.1234._main_-end.heap.pb.gz\n" +
			"  tcm leaks server.heap.pb.gz\n  tcm leaks server.0001.heap.pb.gz server.0009.heap.pb.gz",
		RunE: func(command *cobra.Command, words []string) error {
			if len(words) == 0 {
				return errors.New("no program to run; usage: tcm " + command.Use)
			}
			if err := checkTop(flags.top); err != nil {
				return err
			}
			made, err := loadAll(command, words)
			if err != nil {
				return err
			}
			if made == nil {
				return flags.run(command, words)
			}
			return flags.showFiles(command, made, words)
		},
	}
	command.Flags().SetInterspersed(false)
	set := command.Flags()
	set.StringVar(&flags.library, "library", "", "preload this library (default: "+project.FullLibraryName+" beside tcm)")
	set.StringVar(&flags.mode, "mode", "normal", "when and what is checked, as of HEAPCHECK: minimal, normal, strict, draconian or as-is")
	set.StringVar(&flags.suppressions, "suppressions", "", "a file with lines leak:PATTERN for what shall not be reported")
	addLeaksReport(command, &flags)
	return command
}

// addLeaksReport adds the flags that the report at the end takes as well.
func addLeaksReport(command *cobra.Command, flags *leakFlags) {
	set := command.Flags()
	set.StringVar(&flags.root, "sysroot", "", "folder that has the mapped files, for profiles of another machine or container")
	set.IntVar(&flags.top, "top", 20, "number of places that are shown; 0 is all")
	set.BoolVar(&flags.fullNames, "full-names", false, "keep parameters and template arguments of C++ names")
	set.BoolVar(&flags.asJSON, "json", false, "print JSON")
}

// loadAll returns no profiles if the words are a program with its arguments, which the first one tells.
func loadAll(command *cobra.Command, words []string) ([]*profile.Profile, error) {
	if command.ArgsLenAtDash() >= 0 || len(words) > 2 {
		return nil, nil
	}
	var made []*profile.Profile
	for i, word := range words {
		one, err := profiles.Load(word)
		if err != nil && i == 0 {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		made = append(made, one)
	}
	return made, nil
}

// showFiles shows what a check found, or the suspects of heap profiles.
func (f *leakFlags) showFiles(command *cobra.Command, made []*profile.Profile, names []string) error {
	if len(made) == 1 && isCheck(made[0], names[0]) {
		_, err := f.show(command, made[0], names[0], command.OutOrStdout())
		return err
	}
	return f.showSuspects(command, made, names)
}

// variables make each process write what it leaks to a file in the folder, and leave its exit status alone.
func (f *leakFlags) variables(library string) (map[string]string, error) {
	made := map[string]string{"LD_PRELOAD": launch.Preload([]string{library}),
		"HEAPCHECK":                  f.mode,
		"TCMALLOC_HEAP_CHECK_REPORT": "0", "TCMALLOC_HEAP_CHECK_EXIT_CODE": "0"}
	if f.suppressions == "" {
		return made, nil
	}
	absolute, err := filepath.Abs(f.suppressions)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(absolute); err != nil {
		return nil, fmt.Errorf("--suppressions %s: %w", f.suppressions, text.WithoutPath(err))
	}
	made["TCMALLOC_HEAP_CHECK_SUPPRESSIONS"] = absolute
	return made, nil
}

// run does not return unless it fails before the program is started.
func (f *leakFlags) run(command *cobra.Command, words []string) error {
	switch f.mode {
	case "minimal", "normal", "strict", "draconian", "as-is":
	default:
		return fmt.Errorf("--mode %s: expected minimal, normal, strict, draconian or as-is", f.mode)
	}
	library, err := project.FullLibrary(f.library, rootFlag(command))
	if err != nil {
		return err
	}
	if err := checkOurs(library); err != nil {
		return err
	}
	if !identify.Defines(library, leakCheckSymbol) {
		return fmt.Errorf("%s does not look for leaks; %s does", library, project.FullLibraryName)
	}
	if err := runner.FindProgram(words[0]); err != nil {
		return err
	}
	variables, err := f.variables(library)
	if err != nil {
		return err
	}
	folder, err := runfolder.Make("tcm-leaks-")
	if err != nil {
		return err
	}
	defer folder.Remove()
	folder.Set("HEAP_CHECK_DUMP_DIRECTORY", folder.Path(""))
	return execute(command, f.report(words[0]), folder, variables, words)
}

// leakCheckSymbol is a function that only libraries with the leak checker have.
const leakCheckSymbol = "__lsan_do_leak_check"

// report is the command that shows what was leaked.
func (f *leakFlags) report(program string) []string {
	return []string{leaksReportCommand, "--program", program, "--sysroot", f.root, "--top", strconv.Itoa(f.top),
		"--full-names=" + strconv.FormatBool(f.fullNames), "--json=" + strconv.FormatBool(f.asJSON)}
}

const leaksReportCommand = "leaks-report"

// leaksReport is what the launcher asks for when the program has ended.
type leaksReport struct {
	folder  *runfolder.Folder
	program string
	flags   leakFlags
}

func newLeaksReport() *cobra.Command {
	var report leaksReport
	command := newReport(leaksReportCommand, func(command *cobra.Command, folder *runfolder.Folder) error {
		report.folder = folder
		return report.show(command)
	})
	set := command.Flags()
	set.StringVar(&report.program, "program", "", "the program")
	addLeaksReport(command, &report.flags)
	return command
}

// show shows what the program leaked, and programs that it started and that have leaks. The error is errLeaks if there
// are any.
func (r *leaksReport) show(command *cobra.Command) error {
	measured, err := launch.Read(command.InOrStdin())
	if err != nil || measured.StartErrno != 0 {
		return err
	}
	names, err := r.folder.Names("", checkSuffix)
	if err != nil {
		return err
	}
	own := fmt.Sprintf(".%d%s", measured.Pid, checkSuffix)
	checked, leaks, reason := false, false, ""
	for _, name := range names {
		isOwn := strings.HasSuffix(name, own)
		made, err := loadProcessProfile(r.folder, name)
		if err != nil {
			fmt.Fprintf(command.ErrOrStderr(), "tcm: what a process leaks is left out: %s: %v\n", name, err)
			continue
		}
		if isOwn {
			reason = ownMalloc(made)
			checked = reason == ""
		}
		if len(made.Sample) == 0 && !(isOwn && checked) {
			continue
		}
		lost, err := r.flags.show(command, made, strings.TrimSuffix(name, checkSuffix), command.ErrOrStderr())
		leaks = leaks || lost
		// The status tells of leaks even where nobody reads which they are.
		if err != nil && !leaks {
			return err
		}
	}
	if !checked {
		err = r.showUnchecked(command.ErrOrStderr(), reason, measured.Signal)
	}
	if leaks {
		return errLeaks
	}
	return err
}

// ownMalloc says that a check found nothing because the checked program has a malloc of its own, or nothing. The program
// is the first file that is mapped.
func ownMalloc(made *profile.Profile) string {
	if len(made.Sample) > 0 || len(made.Mapping) == 0 {
		return ""
	}
	path := made.Mapping[0].File
	reason := report.OwnMalloc(path)
	if reason == "" || hasLeakChecker(path) {
		return ""
	}
	return reason
}

// leakCheckWords are of a message that only the leak checker has.
const leakCheckWords = " detected leaks of "

// hasLeakChecker returns true for a program that is linked with the archive, of whose functions a program exports few.
func hasLeakChecker(program string) bool {
	content, err := os.ReadFile(program)
	return err == nil && bytes.Contains(content, []byte(leakCheckWords))
}

// showUnchecked says that nothing is known of the program's own process, for this reason or else for one that is looked for.
func (r *leaksReport) showUnchecked(to io.Writer, reason string, signal int) error {
	var lost error
	if reason == "" {
		reason, lost = whyNothing(r.folder, r.program, fullArchive, signal)
	}
	note := r.program + " was not checked: " + reason
	if r.flags.asJSON {
		return cmp.Or(writeJSON(to, leakReport{Program: filepath.Base(r.program), Note: note, Places: []leakPlace{}}), lost)
	}
	fmt.Fprintln(to, "tcm:", note)
	return lost
}

// checkSuffix ends the names of the files that a check at exit writes, after the program and its process.
const checkSuffix = "._main_-end.heap.pb.gz"

// leakPlace is a stack that allocated what is lost.
type leakPlace struct {
	Bytes           int64            `json:"bytes"`
	Objects         int64            `json:"objects"`
	IndirectBytes   int64            `json:"indirect_bytes"`
	IndirectObjects int64            `json:"indirect_objects"`
	Frames          []mistakes.Frame `json:"frames"`
}

type leakReport struct {
	Program string `json:"program"`
	// Note says why nothing is known of the program, if that is so.
	Note    string      `json:"note,omitempty"`
	Bytes   int64       `json:"bytes"`
	Objects int64       `json:"objects"`
	Places  []leakPlace `json:"places"`
}

// show prints a profile of leaked blocks. It returns true if there are any.
func (f *leakFlags) show(command *cobra.Command, made *profile.Profile, title string, to io.Writer) (bool, error) {
	complain(command.ErrOrStderr(), symbols.Symbolize(made, symbols.Options{Root: f.root, FullNames: f.fullNames})...)
	report := reportLeaks(made, title)
	if f.asJSON {
		return report.Objects > 0, writeJSON(to, report)
	}
	return report.Objects > 0, report.write(text.NewPrintable(to), f.top)
}

// reportLeaks puts what one place lost directly and indirectly together, the largest first. Calls that look alike, as
// those of one line, are one place.
func reportLeaks(made *profile.Profile, title string) *leakReport {
	report := &leakReport{Program: title, Places: []leakPlace{}}
	places := map[string]int{}
	for _, sample := range made.Sample {
		if len(sample.Value) < 2 {
			continue
		}
		frames := withoutAllocator(framesOf(sample.Location))
		key := fmt.Sprint(frames)
		at, found := places[key]
		if !found {
			at = len(report.Places)
			places[key] = at
			report.Places = append(report.Places, leakPlace{Frames: frames})
		}
		place := &report.Places[at]
		objects, bytes := sample.Value[0], sample.Value[1]
		if labels := sample.Label["lost"]; len(labels) > 0 && labels[0] == "indirectly" {
			place.IndirectObjects += objects
			place.IndirectBytes += bytes
		} else {
			place.Objects += objects
			place.Bytes += bytes
		}
		report.Objects += objects
		report.Bytes += bytes
	}
	sort.SliceStable(report.Places, func(i, j int) bool {
		a, b := report.Places[i], report.Places[j]
		return a.Bytes+a.IndirectBytes > b.Bytes+b.IndirectBytes
	})
	return report
}

// rustStart ends the name of the function by which Rust's start calls main. Rust's own stacks end there as well.
const rustStart = "_rust_begin_short_backtrace"

// framesOf leaves out what is below main.
func framesOf(locations []*profile.Location) []mistakes.Frame {
	var made []mistakes.Frame
	for _, location := range locations {
		object := ""
		if location.Mapping != nil && location.Mapping.File != "" {
			object = filepath.Base(location.Mapping.File)
		}
		if len(location.Line) == 0 {
			made = append(made, mistakes.Frame{Function: profiles.AddressName(location, object), Object: object})
		}
		for _, line := range location.Line {
			frame := mistakes.Frame{Line: line.Line, Object: object}
			if line.Function != nil {
				frame.Function, frame.File = line.Function.Name, line.Function.Filename
			}
			if strings.HasSuffix(frame.Function, rustStart) && len(made) > 0 {
				return made
			}
			made = append(made, frame)
			if frame.Function == "main" {
				return made
			}
		}
	}
	return made
}

// withoutAllocator leaves out the innermost frames if an allocator is a part of the program, but never all.
func withoutAllocator(frames []mistakes.Frame) []mistakes.Frame {
	for i, frame := range slices.Backward(frames) {
		if profiles.IsAllocator(frame.Function) && i+1 < len(frames) {
			return frames[i+1:]
		}
	}
	return frames
}

func (r *leakReport) write(to io.Writer, top int) error {
	if r.Objects == 0 {
		_, err := fmt.Fprintf(to, "%s: no leaks\n", r.Program)
		return err
	}
	var page strings.Builder
	fmt.Fprintf(&page, "%s leaks %s in %s, allocated at %s\n", r.Program, text.Bytes(r.Bytes), text.Counted(r.Objects, "block"), text.Counted(int64(len(r.Places)), "place"))
	shown := firstOf(r.Places, top)
	for _, place := range shown {
		writePlace(&page, place.title(), place.Frames)
	}
	writeLeftOut(&page, len(r.Places)-len(shown), "place")
	_, err := io.WriteString(to, page.String())
	return err
}

func (p leakPlace) title() string {
	direct := fmt.Sprintf("%s in %s", text.Bytes(p.Bytes), text.Counted(p.Objects, "block"))
	indirect := fmt.Sprintf("%s in %s", text.Bytes(p.IndirectBytes), text.Counted(p.IndirectObjects, "block"))
	switch {
	case p.IndirectObjects == 0:
		return direct
	case p.Objects == 0:
		return indirect + ", to which only other leaks lead"
	}
	return direct + ", and " + indirect + " to which only other leaks lead"
}

// writePlace adds a place in the program, whose innermost call comes first, to a page.
func writePlace(page *strings.Builder, title string, frames []mistakes.Frame) {
	page.WriteString("\n" + title + "\n")
	for _, frame := range frames {
		page.WriteString("    " + frame.Text() + "\n")
	}
}

// writeLeftOut adds a line about those that a page does not show, if there are any.
func writeLeftOut(page *strings.Builder, left int, noun string) {
	if left > 0 {
		fmt.Fprintf(page, "\n%s more; --top 0 shows all\n", text.Counted(int64(left), noun))
	}
}

// firstOf returns at most `top` elements; all of them if that is 0.
func firstOf[T any](all []T, top int) []T {
	if top > 0 && len(all) > top {
		return all[:top]
	}
	return all
}
