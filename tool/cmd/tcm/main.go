// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Command tcm runs programs under TCMalloc and compares it with other allocators.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	_ "tcm/internal/limits" // ends with one line where Go cannot run
	"tcm/internal/runner"
)

// exitUsage is the exit status for a command that could not begin, as of env and nohup, or for which what was asked for
// could not be written.
const exitUsage = 125

// exitProblems is the exit status of tcm doctor where it has found problems.
const exitProblems = 1

// exitLeaks is the exit status of tcm leaks where the program has leaks and ended with status 0.
const exitLeaks = 1

// exitInterrupted is the exit status for a command that was called off.
const exitInterrupted = 130

// exitClosedPipe is the exit status where nobody reads what is written any more: the one that shells have for SIGPIPE.
const exitClosedPipe = 128 + int(syscall.SIGPIPE)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), heeded()...)
	defer stop()
	err := newRoot().ExecuteContext(ctx)
	if err == nil {
		return
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "tcm: interrupted")
		os.Exit(exitInterrupted)
	}
	if errors.Is(err, errProblems) {
		os.Exit(exitProblems)
	}
	if errors.Is(err, errLeaks) {
		os.Exit(exitLeaks)
	}
	if errors.Is(err, errLost) {
		os.Exit(exitUsage)
	}
	if exceptClosedPipe(err) == nil {
		os.Exit(exitClosedPipe)
	}
	// Suggestions for a mistyped command end in blank lines.
	complain(os.Stderr, strings.TrimSpace(err.Error()))
	var notStarted *runner.StartError
	if errors.As(err, &notStarted) {
		os.Exit(notStarted.Status)
	}
	os.Exit(exitUsage)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "tcm",
		Short:         "Run programs under TCMalloc, and compare it with other allocators",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", ofFlag(err), command.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetVersionTemplate(versionText())
	root.PersistentFlags().String("root", "", "the checkout of TCMalloc (default: the one around tcm or the working directory)")
	root.AddCommand(newRun(), newRunReport(), newCPU(), newCPUReport(), newHeap(), newDiff(), newLeaks(), newLeaksReport(), newDebug(), newHarden(), newCheckReport(), newSymbolize(), newPprof(), newDemo(), newBench(), newPeers(), newDoctor(), newVersion(), newTexts())
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Run, help.RunE = nil, showHelp
	}
	return root
}

// showHelp shows the help of the command that the words name.
func showHelp(help *cobra.Command, words []string) error {
	command, unknown, err := help.Root().Find(words)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		return fmt.Errorf("unknown command %q for %q", unknown[0], command.CommandPath())
	}
	command.InitDefaultHelpFlag()
	command.InitDefaultVersionFlag()
	return command.Help()
}

// ofFlag says what the value of a flag has to be, if the error is that it is something else.
func ofFlag(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	var reason string
	switch kind := invalid.GetFlag().Value.Type(); {
	case errors.Is(err, strconv.ErrRange):
		reason = "the number is too large or too small"
	case kind == "int":
		reason = "expected a whole number"
	case kind == "uint64":
		reason = "expected a whole number that is not negative"
	case kind == "bool":
		reason = "expected true or false"
	default:
		reason = invalid.Unwrap().Error()
	}
	return fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(), reason)
}

// noWords refuses words behind a command that has no use for any.
func noWords(command *cobra.Command, words []string) error {
	if len(words) > 0 {
		return fmt.Errorf("%s takes no arguments, and %q is one; see %[1]s --help", command.CommandPath(), words[0])
	}
	return nil
}

func rootFlag(command *cobra.Command) string {
	root, err := command.Flags().GetString("root")
	if err != nil {
		panic(err)
	}
	return root
}
