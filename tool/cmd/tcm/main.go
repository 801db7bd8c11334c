// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Command tcm runs programs under TCMalloc and compares it with other allocators.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	_ "tcm/internal/addressspace" // ends with one line where Go cannot start
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
		return fmt.Errorf("%w; see %s --help", err, command.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetVersionTemplate(versionText())
	root.PersistentFlags().String("root", "", "the checkout of TCMalloc (default: the one around tcm or the working directory)")
	root.AddCommand(newRun(), newRunReport(), newCPU(), newCPUReport(), newHeap(), newDiff(), newLeaks(), newLeaksReport(), newDebug(), newHarden(), newCheckReport(), newSymbolize(), newPprof(), newDemo(), newBench(), newPeers(), newDoctor(), newVersion(), newTexts())
	return root
}

func rootFlag(command *cobra.Command) string {
	root, err := command.Flags().GetString("root")
	if err != nil {
		panic(err)
	}
	return root
}
