// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tcm/internal/bench"
	"tcm/internal/doctor"
	"tcm/internal/identify"
	"tcm/internal/launch"
	"tcm/internal/peers"
	"tcm/internal/project"
	"tcm/internal/runner"
	"tcm/internal/text"
)

// quietWatch is how long the machine is watched before the first run.
const quietWatch = 2 * time.Second

type benchFlags struct {
	workloads, allocators []string
	runs, repeats         int
	timeout               seconds
	baseline              string
	library               string
	out, json             string
	from                  []string
	list, details         bool
	build                 string
	input                 string
	explain               string
	// program is what follows the flags.
	program []string
}

func newBench() *cobra.Command {
	var flags benchFlags
	command := &cobra.Command{
		Use:   "bench [flags] [-- PROGRAM ARGUMENT...]",
		Short: "Run a program, or workloads, under several allocators in turn and compare them",
		Long: "Runs PROGRAM, or each chosen workload of a checkout, under each chosen allocator, interleaved and\n" +
			"several times, and reports time, CPU time, peak resident memory and page faults, and their ratios,\n" +
			"as a table, as JSON and as charts. Says when the machine was not quiet. PROGRAM runs under all\n" +
			"allocators that are there: glibc's, ours, what tcm peers built, and what the system's packages\n" +
			"brought. Its output is thrown away, its standard input is empty unless --input names a file.\n\n" +
			"The workloads fall into two sets by a hash of their names; the means of each are reported by themselves.\n" +
			"--explain runs one workload under ours and the fastest peer, or the one that --baseline names, and compares\n" +
			"instructions, misses of simulated caches and TLBs, page faults, system calls, slow paths and the locality of\n" +
			"blocks, and lists the functions that differ most. It needs valgrind and takes minutes.",
		Example: "  tcm bench -- sort /usr/share/dict/words\n  tcm bench --allocators ours,jemalloc,./libmine.so --runs 7 -- python3 script.py\n" +
			"  tcm bench --list\n  tcm bench --workloads 'quick,t-test1' --allocators 'ours,*mimalloc*' --runs 3\n" +
			"  tcm bench --workloads untuned --runs 3\n  tcm bench --explain json_like-1t --baseline jemalloc\n" +
			"  tcm bench --from a/samples.json,b/samples.json --out joined",
		RunE: func(command *cobra.Command, program []string) error {
			if len(program) == 0 && command.ArgsLenAtDash() >= 0 {
				return errors.New("no program follows \"--\": tcm bench -- PROGRAM ARGUMENT... runs one, tcm bench without \"--\" the workloads of a checkout")
			}
			flags.program = program
			return runBench(command, &flags)
		},
	}
	// The program's own flags begin at its name.
	command.Flags().SetInterspersed(false)
	flags.timeout = seconds(2 * time.Minute)
	set := command.Flags()
	set.StringSliceVar(&flags.workloads, "workloads", nil, "names, families, tags or patterns of them; \"all\" (default: the tag default)")
	set.StringSliceVar(&flags.allocators, "allocators", nil, "names, patterns or paths of libraries; the baseline is always among them (default: glibc, ours and every other one that is there; ours-per-thread, ours-per-cpu, ours-huge, ours-full, ours-hardened and ours-debug only if named)")
	set.IntVar(&flags.runs, "runs", 5, "rounds")
	set.IntVar(&flags.repeats, "repeats", 2, "how often a disturbed run is repeated at most")
	set.Var(&flags.timeout, "timeout", "limit for one run, in seconds or as 90s or 2m")
	set.StringVar(&flags.baseline, "baseline", bench.Glibc, "the allocator that ratios refer to")
	set.StringVar(&flags.library, "library", "", "our allocator (default: "+project.LibraryName+" beside tcm)")
	set.Var((*outputName)(&flags.out), "out", "folder for samples.json, table and charts (default: a new one in build/bench of the checkout, or here)")
	set.Var((*outputName)(&flags.json), "json", "write the results as JSON to this file as well; - is standard output, instead of the table")
	set.StringVar(&flags.input, "input", "", "file that PROGRAM reads as its standard input")
	set.StringVar(&flags.explain, "explain", "", "say why this workload takes longer, or not, than under the best peer or --baseline")
	set.StringSliceVar(&flags.from, "from", nil, "run nothing: report from these samples.json, joined")
	set.BoolVar(&flags.list, "list", false, "show workloads and allocators, run nothing")
	set.BoolVar(&flags.details, "details", false, "print every figure, not only ratios")
	set.StringVar(&flags.build, "build", "", "the build that has the workloads (default: build/release)")
	return command
}

// modes are flags that leave others without an effect.
var modes = []struct {
	flag     string
	program  bool
	excluded []string
}{
	{"explain", false, []string{"workloads", "from", "list", "input", "out", "details"}},
	{"from", false, []string{"workloads", "allocators", "runs", "repeats", "timeout", "baseline", "library", "list", "input", "build"}},
	{"list", true, []string{"workloads", "allocators", "runs", "repeats", "timeout", "baseline", "input", "out", "details", "build"}},
}

// check returns an error for flags that mean nothing, or nothing together.
func (f *benchFlags) check(command *cobra.Command) error {
	if f.runs < 1 || f.repeats < 0 || f.timeout <= 0 {
		return errors.New("--runs must be at least 1, --repeats at least 0 and --timeout above 0")
	}
	given := command.Flags().Changed
	for _, mode := range modes {
		refused := slices.ContainsFunc(mode.excluded, given)
		switch excluded := "--" + strings.Join(mode.excluded, ", --"); {
		case !given(mode.flag):
		case !mode.program && (refused || len(f.program) > 0):
			return fmt.Errorf("--%s goes with neither a program nor %s", mode.flag, excluded)
		case refused:
			return fmt.Errorf("--%s goes with none of %s", mode.flag, excluded)
		}
	}
	if f.json != "-" {
		if err := prepareOutputs(f.inputs(), output{flag: "--json", path: &f.json}); err != nil {
			return err
		}
	}
	return f.checkInput()
}

// inputs are the words that may name files to read.
func (f *benchFlags) inputs() []string { return slices.Concat(f.from, f.program, []string{f.input}) }

// checkInput makes the path of the program's input absolute, and returns an error if there is no such file.
func (f *benchFlags) checkInput() error {
	if f.input == "" {
		return nil
	}
	if len(f.program) == 0 {
		return errors.New("--input goes with a program; workloads have inputs of their own")
	}
	absolute, err := filepath.Abs(f.input)
	if err != nil {
		return err
	}
	info, err := os.Stat(absolute)
	switch {
	case err != nil:
		return fmt.Errorf("--input %s: %w", f.input, text.WithoutPath(err))
	case info.IsDir():
		return fmt.Errorf("--input %s: it is a folder", f.input)
	}
	f.input = absolute
	return nil
}

func runBench(command *cobra.Command, flags *benchFlags) error {
	if err := flags.check(command); err != nil {
		return err
	}
	if flags.explain != "" {
		return explainWorkload(command, flags)
	}
	if len(flags.from) > 0 {
		return reportFrom(command, flags)
	}
	checkout, err := project.Find(rootFlag(command))
	if err != nil && len(flags.program) == 0 {
		if !flags.list || !errors.Is(err, project.ErrNoCheckout) {
			return fmt.Errorf("the workloads are in a checkout: %w; a program of your own runs without one: tcm bench -- PROGRAM", err)
		}
		fmt.Fprintf(command.ErrOrStderr(), "no workloads to show (%v); the allocators that are here run "+
			"a program of your own: tcm bench -- PROGRAM\n", err)
	}
	plan, err := newPlan(command, flags, checkout)
	if err != nil || plan == nil {
		return err
	}
	return measure(command, flags, checkout, plan)
}

// reportFrom reports from samples that are there. Those of one file may be written over themselves, but no joined ones over
// a part.
func reportFrom(command *cobra.Command, flags *benchFlags) error {
	if flags.out != "" && len(flags.from) > 1 {
		samples := filepath.Join(flags.out, bench.SamplesName)
		if err := (output{flag: "--out"}).checkReplaced(samples, flags.from); err != nil {
			return fmt.Errorf("cannot write %s: %w", samples, err)
		}
	}
	results, err := bench.LoadResults(flags.from)
	if err != nil {
		return err
	}
	return reportBench(command, flags, flags.out, results)
}

// measure carries a plan out and reports what there is in the end, also of one that was called off.
func measure(command *cobra.Command, flags *benchFlags, checkout project.Checkout, plan *bench.Plan) error {
	out, err := outFolder(flags.out, checkout)
	if err != nil {
		return err
	}
	samples := filepath.Join(out, bench.SamplesName)
	if err := prepareOutputs(flags.inputs(), output{flag: "--out", path: &samples}); err != nil {
		return err
	}
	plan.Checkpoint = func(results *bench.Results) error { return writeWhole(samples, results.WriteSamples) }
	quiet, err := bench.ObserveQuiet(quietWatch)
	if err != nil {
		return err
	}
	if !quiet.IsQuiet {
		fmt.Fprintf(command.ErrOrStderr(), "the machine is not quiet: others use %.2f CPUs, the load is %.2f\n",
			quiet.Others, quiet.LoadAverage)
	}
	results, runErr := plan.Run(command.Context(), quiet)
	if len(results.Workloads) == 0 {
		return runErr
	}
	return errors.Join(runErr, reportBench(command, flags, out, results), results.OwnFailure())
}

// newPlan returns nothing where only a list was asked for. checkout is empty outside of one.
func newPlan(command *cobra.Command, flags *benchFlags, checkout project.Checkout) (*bench.Plan, error) {
	workloads, err := candidates(flags, checkout)
	if err != nil {
		return nil, err
	}
	allocators, err := allAllocators(flags, rootFlag(command), checkout)
	if err != nil {
		return nil, err
	}
	if flags.list {
		return nil, flags.show(command.OutOrStdout(), map[string]any{"workloads": workloads, "allocators": allocators},
			func(output io.Writer) error { return printLists(output, workloads, allocators) })
	}
	plan := &bench.Plan{
		Build: bench.Build(flags.build),
		Settings: bench.Settings{
			Runs: flags.runs, Repeats: flags.repeats, TimeoutSeconds: time.Duration(flags.timeout).Seconds(),
			Baseline: flags.baseline, NoiseLimit: bench.NoiseLimit,
		},
		Progress: command.ErrOrStderr(),
		Live:     isTerminal(os.Stderr),
	}
	if plan.Build == "" {
		plan.Build = bench.Build(checkout.ReleaseBuild())
	}
	if plan.Workloads, err = bench.SelectWorkloads(workloads, flags.workloads); err != nil {
		return nil, err
	}
	if plan.Allocators, err = bench.SelectAllocators(allocators, flags.allocators); err != nil {
		return nil, err
	}
	if plan.Allocators, err = bench.WithBaseline(plan.Allocators, allocators, flags.baseline); err != nil {
		return nil, err
	}
	warnOfMissing(command.ErrOrStderr(), flags, allocators)
	warnOfEnvironment(command.ErrOrStderr())
	absent, err := plan.CheckPrograms()
	if err != nil {
		return nil, err
	}
	if len(absent) > 0 {
		fmt.Fprintf(command.ErrOrStderr(), "without %s: not installed\n", strings.Join(absent, ", "))
	}
	plan.Launcher, err = launch.Find(rootFlag(command))
	return plan, err
}

// candidates are the workloads to choose from: the user's program alone, where one is named; none
// outside of a checkout.
func candidates(flags *benchFlags, checkout project.Checkout) ([]bench.Workload, error) {
	if len(flags.program) == 0 {
		if checkout == "" {
			return []bench.Workload{}, nil
		}
		return bench.LoadWorkloads(checkout.Workloads())
	}
	if len(flags.workloads) > 0 {
		return nil, fmt.Errorf("either --workloads or a program: %q is taken for one", flags.program[0])
	}
	if err := runner.FindProgram(flags.program[0]); err != nil {
		return nil, err
	}
	return []bench.Workload{bench.OwnProgram(flags.program, flags.input)}, nil
}

// warnOfMissing says which allocators a comparison with all goes without.
func warnOfMissing(output io.Writer, flags *benchFlags, allocators []bench.Allocator) {
	if len(flags.allocators) > 0 {
		return
	}
	var missing []string
	for _, allocator := range allocators {
		if allocator.Missing != "" && !allocator.OnRequest {
			missing = append(missing, allocator.Name)
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(output, "without %s: not built; tcm peers builds them\n", strings.Join(missing, ", "))
	}
}

// warnOfEnvironment says what the environment does to the runs, and what not.
func warnOfEnvironment(output io.Writer) {
	if preloaded := os.Getenv("LD_PRELOAD"); preloaded != "" {
		fmt.Fprintf(output, "LD_PRELOAD=%s is left out, so that each allocator runs alone\n", preloaded)
	}
	if variables := bench.AllocatorVariables(os.Environ()); len(variables) > 0 {
		fmt.Fprintf(output, "every program runs with %s of the environment\n", strings.Join(variables, " "))
	}
}

// allAllocators lists glibc, ours, the peers of a checkout, and what the user or, for a program of
// the user's own, the system has besides.
func allAllocators(flags *benchFlags, root string, checkout project.Checkout) ([]bench.Allocator, error) {
	ours := bench.Allocator{Name: bench.Ours}
	path, err := project.Library(flags.library, root)
	switch {
	case err == nil:
		if _, err := identify.File(path); err != nil {
			return nil, fmt.Errorf("cannot preload %s: %w", path, err)
		}
		ours.Libraries = []string{path}
	case flags.library != "":
		return nil, err
	default:
		ours.Missing = err.Error()
	}
	full := bench.Allocator{Name: bench.OursFull, OnRequest: true}
	if path, err := project.FullLibrary("", root); err != nil {
		full.Missing = err.Error()
	} else {
		full.Libraries = []string{path}
	}
	allocators := []bench.Allocator{{Name: bench.Glibc}, ours,
		with(ours, bench.OursPerThread, doctor.FrontEndVariable, "per_thread"),
		with(ours, bench.OursPerCPU, doctor.FrontEndVariable, doctor.PerCPU),
		with(ours, bench.OursHuge, "TCMALLOC_PAGE_HEAP", "huge"), full,
		with(full, bench.OursHardened, modeVariable, hardened), with(full, bench.OursDebug, modeVariable, "debug")}
	if checkout != "" {
		built, err := peerAllocators(checkout)
		if err != nil {
			return nil, err
		}
		allocators = append(allocators, built...)
	}
	if len(flags.program) > 0 || checkout == "" {
		allocators = bench.AddSystem(allocators, identify.System())
	}
	return bench.AddFiles(allocators, flags.allocators)
}

func peerAllocators(checkout project.Checkout) ([]bench.Allocator, error) {
	set, err := peers.Load(checkout)
	if err != nil {
		return nil, err
	}
	var allocators []bench.Allocator
	for _, peer := range set.Peers {
		allocator := bench.Allocator{
			Name: peer.Name, Version: peer.Version, Libraries: set.Paths(peer), Variables: peer.Environment,
		}
		if !set.IsBuilt(peer) {
			allocator.Missing = "not built; run tcm peers"
		}
		allocators = append(allocators, allocator)
	}
	return allocators, nil
}

// with is our allocator with one setting of its own.
func with(ours bench.Allocator, name, variable, value string) bench.Allocator {
	ours.Name = name
	ours.Variables = map[string]string{variable: value}
	ours.OnRequest = true
	return ours
}

func printLists(output io.Writer, workloads []bench.Workload, allocators []bench.Allocator) error {
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	if len(workloads) > 0 {
		fmt.Fprintln(table, "workload\tset\tfamily\tthreads\ttags\tdescription")
	}
	for _, workload := range workloads {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", workload.Name, bench.SetOf(workload.Name), workload.Family, workload.Threads,
			strings.Join(workload.Tags, " "), workload.Description)
	}
	if len(workloads) > 0 {
		fmt.Fprintln(table, "\t\t\t\t\t")
	}
	fmt.Fprintln(table, "allocator\tversion\t\t\t\tstate")
	for _, allocator := range allocators {
		state := "usable"
		if allocator.Missing != "" {
			state = allocator.Missing
		}
		fmt.Fprintf(table, "%s\t%s\t\t\t\t%s\n", allocator.Name, allocator.Version, state)
	}
	return table.Flush()
}

func outFolder(asked string, checkout project.Checkout) (string, error) {
	now := time.Now().Format("20060102-150405")
	switch {
	case asked != "":
	case checkout != "":
		asked = checkout.Path("build", "bench", now)
	default:
		asked = "tcm-bench-" + now
	}
	return asked, os.MkdirAll(asked, 0o755)
}

// show writes what was found as text, or as JSON where that goes to standard output, and the JSON to the file that the user
// asked for, if any.
func (f *benchFlags) show(output io.Writer, value any, write func(io.Writer) error) error {
	if f.json == "-" {
		return writeJSON(output, value)
	}
	err := write(output)
	if f.json != "" {
		err = errors.Join(err, writeWhole(f.json, func(file io.Writer) error { return writeJSON(file, value) }))
	}
	return err
}

// reportBench prints the table and, where there is a folder, fills it.
func reportBench(command *cobra.Command, flags *benchFlags, out string, results *bench.Results) error {
	err := flags.show(command.OutOrStdout(), results, func(output io.Writer) error {
		if !flags.details {
			return results.WriteTable(output)
		}
		return writeAll(output, results)
	})
	if out == "" {
		return err
	}
	return errors.Join(err, fillFolder(command.ErrOrStderr(), out, results))
}

func writeAll(output io.Writer, results *bench.Results) error {
	return errors.Join(results.WriteTable(output), results.WriteDetails(output))
}

// fillFolder writes all that is known, and says what it has written. What cannot be written keeps nothing else from it.
func fillFolder(messages io.Writer, out string, results *bench.Results) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	type content struct {
		name  string
		write func(io.Writer) error
	}
	files := []content{{bench.SamplesName, results.WriteSamples},
		{"table.txt", func(file io.Writer) error { return writeAll(file, results) }}}
	if !results.IsOwn() {
		files = append(files, content{bench.MarkdownName, results.WriteMarkdown})
	}
	var written []string
	var failures []error
	for _, file := range files {
		err := writeWhole(filepath.Join(out, file.name), file.write)
		if err == nil {
			written = append(written, file.name)
		}
		failures = append(failures, err)
	}
	charts, err := results.WriteCharts(out)
	for _, path := range charts {
		written = append(written, filepath.Base(path))
	}
	if len(written) > 0 {
		fmt.Fprintf(messages, "written: %s: %s\n", out, strings.Join(written, ", "))
	}
	return errors.Join(append(failures, err)...)
}

func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
