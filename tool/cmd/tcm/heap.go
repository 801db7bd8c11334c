// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"tcm/internal/flame"
	"tcm/internal/profiles"
	"tcm/internal/symbols"
)

// profileFlags are those of the commands that show profiles.
type profileFlags struct {
	sampleType, focus, ignore string
	top                       int
	cumulative, lines         bool
	allocator, fullNames      bool
	asJSON, folded            bool
	html, svg                 string
	root                      string
}

// formats of the commands that show profiles.
const formats = "Profiles are profile.proto (gzipped or not) and the texts of gperftools (heap profile:) and jemalloc\n" +
	"(heap_v2/). Functions come from the debugging information of the mapped files, their own or what is\n" +
	"installed apart by build id, else from their symbol tables; no other program is needed."

func (f *profileFlags) add(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(&f.sampleType, "type", "", "the sample type, such as inuse_space, inuse_objects or alloc_space (default: what the profile prefers, else inuse_space)")
	set.StringVar(&f.focus, "focus", "", "only stacks with a function, file or library that fits this regular expression")
	set.StringVar(&f.ignore, "ignore", "", "no stacks with a function, file or library that fits this regular expression")
	set.IntVar(&f.top, "top", 20, "number of functions in the table and in JSON; 0 is all")
	set.BoolVar(&f.cumulative, "cum", false, "sort by what functions hold together with those that they call")
	set.BoolVar(&f.lines, "lines", false, "tell the lines of a function apart")
	set.BoolVar(&f.allocator, "allocator-frames", false, "keep the functions of the allocator itself")
	set.BoolVar(&f.fullNames, "full-names", false, "keep parameters and template arguments of C++ names")
	set.BoolVar(&f.asJSON, "json", false, "print JSON")
	set.BoolVar(&f.folded, "folded", false, "print folded stacks, one a line, for other tools")
	set.Var((*outputName)(&f.html), "html", "write a flame graph for browsers to this file, instead of a table")
	set.Var((*outputName)(&f.svg), "svg", "write a flame graph as a picture to this file, instead of a table")
	set.StringVar(&f.root, "sysroot", "", "folder that has the mapped files, for profiles of another machine or container")
}

// selection checks the flags.
func (f *profileFlags) selection() (profiles.Selection, error) {
	made := profiles.Selection{Type: f.sampleType, Lines: f.lines, Allocator: f.allocator}
	err := checkTop(f.top)
	if err != nil {
		return made, err
	}
	if made.Focus, err = pattern("--focus", f.focus); err != nil {
		return made, err
	}
	made.Ignore, err = pattern("--ignore", f.ignore)
	return made, err
}

// checkTop returns an error for a number of functions or places that cannot be shown.
func checkTop(top int) error {
	if top < 0 {
		return errors.New("--top must be at least 0")
	}
	return nil
}

func pattern(flag, expression string) (*regexp.Regexp, error) {
	if expression == "" {
		return nil, nil
	}
	made, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return made, nil
}

// prepare checks the flags and the files to write, before one of the profiles with these names is read.
func (f *profileFlags) prepare(names []string) error {
	if f.asJSON && f.folded {
		return errors.New("--json and --folded are two forms of what is printed: choose one of them")
	}
	if _, err := f.selection(); err != nil {
		return err
	}
	return prepareOutputs(names, output{flag: "--html", path: &f.html}, output{flag: "--svg", path: &f.svg})
}

// load reads profiles, adds them up and finds their functions; what could not be read goes to standard error.
func (f *profileFlags) load(command *cobra.Command, names []string) (*profiles.Set, error) {
	// A pipe may have nothing to read for ever, and then nobody looks at the context that ends other commands.
	signal.Reset(endings...)
	made, err := profiles.LoadAll(names)
	if err != nil {
		return nil, err
	}
	set, err := f.find(command, made)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", names[0], err)
	}
	return set, nil
}

// find finds the functions of a profile and returns the stacks that the flags ask for.
func (f *profileFlags) find(command *cobra.Command, made *profile.Profile) (*profiles.Set, error) {
	selection, err := f.selection()
	if err != nil {
		return nil, err
	}
	f.symbolize(command, made)
	return profiles.Select(made, selection)
}

func (f *profileFlags) symbolize(command *cobra.Command, made *profile.Profile) {
	complain(command.ErrOrStderr(), symbols.Symbolize(made, symbols.Options{Root: f.root, FullNames: f.fullNames})...)
}

// show prints or draws a set as the flags say.
func (f *profileFlags) show(command *cobra.Command, set *profiles.Set, title string) error {
	output := command.OutOrStdout()
	if err := f.draw(set, title); err != nil {
		return err
	}
	switch {
	case (f.html != "" || f.svg != "") && !f.asJSON && !f.folded:
		return nil
	case f.asJSON:
		return writeJSON(output, set.Report(f.cumulative, f.top))
	case f.folded:
		return set.WriteFolded(output)
	}
	return set.WriteTable(output, f.cumulative, f.top)
}

// draw draws the flame graphs that the flags ask for. One that cannot be written keeps no other from being drawn.
func (f *profileFlags) draw(set *profiles.Set, title string) error {
	var failures []error
	for _, graph := range []struct {
		path  string
		write func(io.Writer, *profiles.Set, string) error
	}{{f.html, flame.WriteHTML}, {f.svg, flame.WriteSVG}} {
		if graph.path != "" {
			failures = append(failures, writeResult(graph.path, func(file io.Writer) error { return graph.write(file, set, title) }))
		}
	}
	return errors.Join(failures...)
}

func newHeap() *cobra.Command {
	var flags profileFlags
	command := &cobra.Command{
		Use:   "heap [flags] FILE...",
		Short: "Show which functions hold memory, from a heap profile",
		Long: "Reads heap profiles and shows the functions that hold most memory: flat is what a function itself asked\n" +
			"for, cum what it and those that it called did. Several profiles are added up; - is standard input.\n\n" + formats,
		Example: "  tcm heap heap.pb.gz\n  tcm heap --type alloc_space --cum program.0001.heap",
		Args:    atLeastOneProfile,
		RunE: func(command *cobra.Command, names []string) error {
			if err := flags.prepare(names); err != nil {
				return err
			}
			set, err := flags.load(command, names)
			if err != nil {
				return err
			}
			return flags.show(command, set, titleOf(names))
		},
	}
	flags.add(command)
	return command
}

// titleOf names the profiles of a flame graph.
func titleOf(names []string) string {
	bases := make([]string, len(names))
	for i, name := range names {
		bases[i] = filepath.Base(name)
	}
	if len(bases) > 3 {
		return fmt.Sprintf("%s and %d more", bases[0], len(bases)-1)
	}
	return strings.Join(bases, ", ")
}

func atLeastOneProfile(command *cobra.Command, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("no profile to show; usage: tcm %s", command.Use)
	}
	return nil
}

func newDiff() *cobra.Command {
	var flags profileFlags
	command := &cobra.Command{
		Use:   "diff [flags] OLD NEW",
		Short: "Show which functions hold more memory in one heap profile than in another",
		Long: "Reads two heap profiles and shows the functions that hold more, or less, in the second: the largest\n" +
			"changes first. Stacks are compared by their functions, so that both may come from different processes.\n\n" + formats,
		Example: "  tcm diff program.0001.heap program.0009.heap\n  tcm diff --focus 'Cache::' before.pb.gz after.pb.gz",
		RunE: func(command *cobra.Command, names []string) error {
			if len(names) != 2 {
				return fmt.Errorf("two profiles are compared; usage: tcm %s", command.Use)
			}
			if err := flags.prepare(names); err != nil {
				return err
			}
			before, err := flags.load(command, names[:1])
			if err != nil {
				return err
			}
			after, err := flags.load(command, names[1:])
			if err != nil {
				return err
			}
			set, err := profiles.Compare(before, after)
			if err != nil {
				return err
			}
			return flags.show(command, set, filepath.Base(names[0])+" → "+filepath.Base(names[1]))
		},
	}
	flags.add(command)
	return command
}
