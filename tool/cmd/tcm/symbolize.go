// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tcm/internal/mistakes"
	"tcm/internal/symbols"
	"tcm/internal/text"
)

func newSymbolize() *cobra.Command {
	var options symbols.Options
	command := &cobra.Command{
		Use:   "symbolize [flags] [FILE]",
		Short: "Turn the addresses in messages of the allocator into functions, files and lines",
		Long: "Copies FILE, or standard input, and replaces the lines of stacks in messages of the allocator, such as\n\n" +
			"    @ 0x55d41c2a111f /usr/bin/server+0x111f (build id 93ac61ec)\n\n" +
			"by the functions there, inlined ones included, with files and lines as far as the debugging information of the\n" +
			"file tells, or what is installed apart. All other lines stay as they are. A file that is not the one that ran is not used.",
		Example: "  ./server 2>&1 | tcm symbolize\n  tcm symbolize server.log",
		Args:    atMostOneFile,
		RunE: func(command *cobra.Command, words []string) error {
			input := command.InOrStdin()
			if len(words) == 1 && words[0] != "-" {
				file, err := os.Open(words[0])
				if err != nil {
					return fmt.Errorf("%s: %w", words[0], text.WithoutPath(err))
				}
				defer file.Close()
				input = file
			}
			return copySymbolized(command, input, options)
		},
	}
	addSymbolFlags(command, &options)
	return command
}

func atMostOneFile(command *cobra.Command, names []string) error {
	if len(names) > 1 {
		return fmt.Errorf("one file is copied at a time, and %q is another; usage: tcm %s", names[1], command.Use)
	}
	return nil
}

func addSymbolFlags(command *cobra.Command, options *symbols.Options) {
	command.Flags().StringVar(&options.Root, "sysroot", "", "folder that has the mapped files, for messages of another machine or container")
	command.Flags().BoolVar(&options.FullNames, "full-names", false, "keep parameters and template arguments of C++ names")
}

func copySymbolized(command *cobra.Command, input io.Reader, options symbols.Options) error {
	symbolizer := mistakes.NewSymbolizer(options)
	err := symbolizer.Copy(command.OutOrStdout(), input)
	complain(command.ErrOrStderr(), symbolizer.Problems()...)
	return err
}
