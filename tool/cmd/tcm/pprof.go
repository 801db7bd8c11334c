// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/chzyer/readline"
	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"tcm/internal/profiles"
	"tcm/internal/symbols"
)

var errNoProfile = errors.New("no profile to show; usage: tcm pprof [OPTION...] [PROGRAM] PROFILE...")

func newPprof() *cobra.Command {
	return &cobra.Command{
		Use:   "pprof [ARGUMENT...]",
		Short: "The command line of pprof, with its web interface",
		Long: "Runs the pprof tool, all of which is part of tcm. It also reads the profiles of jemalloc, and finds the\n" +
			"functions of profiles in files without binutils; disassembly needs objdump. tcm pprof --help has its options.",
		Example:            "  tcm pprof -top heap.pb.gz\n  tcm pprof -http localhost:8080 heap.pb.gz\n  tcm pprof -peek 'Cache' -base old.heap new.heap",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				return errNoProfile
			}
			// The driver does not know of the context that ends other commands.
			signal.Reset(endings...)
			// It reads the command line of the process.
			os.Args = append([]string{"tcm pprof"}, words...)
			options := &driver.Options{Fetch: localFiles{}}
			if ownSymbols(words) {
				options.Sym = localSymbols{}
			}
			if readline.IsTerminal(int(os.Stdin.Fd())) && readline.IsTerminal(int(os.Stdout.Fd())) {
				reader, err := readline.New("")
				if err != nil {
					return err
				}
				defer reader.Close()
				options.UI = &terminal{reader}
			}
			err := driver.PProf(options)
			if err != nil && strings.Contains(err.Error(), "no profile source specified") {
				return errNoProfile
			}
			return err
		},
	}
}

// ownSymbols is true where the profiles are files; servers are asked for the functions of theirs.
func ownSymbols(words []string) bool {
	if len(words) == 0 {
		return false
	}
	for _, word := range words {
		if strings.HasPrefix(strings.TrimLeft(word, "-"), "symbolize") && strings.HasPrefix(word, "-") {
			return false
		}
	}
	info, err := os.Stat(words[len(words)-1])
	return err == nil && !info.IsDir()
}

// localFiles reads profiles from files, in the formats of tcm heap.
type localFiles struct{}

// Fetch leaves to pprof what is no such file.
func (localFiles) Fetch(source string, _, _ time.Duration) (*profile.Profile, string, error) {
	if info, err := os.Stat(source); err != nil || !info.Mode().IsRegular() {
		return nil, "", nil
	}
	made, err := profiles.Load(source)
	if errors.Is(err, profiles.ErrFormat) {
		return nil, "", nil
	}
	return made, "", err
}

// localSymbols finds functions as tcm heap does.
type localSymbols struct{}

// Symbolize adds the functions that are missing.
func (localSymbols) Symbolize(_ string, _ driver.MappingSources, made *profile.Profile) error {
	for _, mapping := range made.Mapping {
		// The program is named on the command line as it is found from here.
		if mapping.File != "" && !filepath.IsAbs(mapping.File) {
			if absolute, err := filepath.Abs(mapping.File); err == nil {
				if _, err := os.Stat(absolute); err == nil {
					mapping.File = absolute
				}
			}
		}
	}
	complain(os.Stderr, symbols.Symbolize(made, symbols.Options{})...)
	return nil
}

// terminal reads the commands of pprof's own prompt, with a history and editing.
type terminal struct{ reader *readline.Instance }

// ReadLine returns the next command.
func (t *terminal) ReadLine(prompt string) (string, error) {
	t.reader.SetPrompt(prompt)
	return t.reader.Readline()
}

// Print writes a message above the prompt.
func (t *terminal) Print(words ...any) {
	fmt.Fprintln(t.reader.Stderr(), strings.TrimSuffix(fmt.Sprint(words...), "\n"))
}

// PrintErr writes a complaint above the prompt.
func (t *terminal) PrintErr(words ...any) { t.Print(words...) }

// IsTerminal is true because there is no other use.
func (t *terminal) IsTerminal() bool { return true }

// WantBrowser opens the web interface in a browser.
func (t *terminal) WantBrowser() bool { return true }

// SetAutoComplete is not used: pprof completes nothing on its own.
func (t *terminal) SetAutoComplete(func(string) string) {}
