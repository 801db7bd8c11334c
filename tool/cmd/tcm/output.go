// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"tcm/internal/text"
)

// version is that of the whole project, which the file VERSION says to others.
const version = "0.1.0"

func versionText() string { return fmt.Sprintf("tcm %s (%s)\n", version, runtime.Version()) }

func writeJSON(output io.Writer, value any) error {
	encoder := json.NewEncoder(output)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// complain prints what went wrong, a line each. Names that others chose cannot bring characters to the terminal that do
// more than show.
func complain(to io.Writer, problems ...string) {
	to = text.NewPrintable(to)
	for _, problem := range problems {
		fmt.Fprintln(to, "tcm:", problem)
	}
}

func newVersion() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the version of the tool",
		Args:  noWords,
		RunE: func(command *cobra.Command, _ []string) error {
			output := command.OutOrStdout()
			if asJSON {
				return writeJSON(output, map[string]string{"version": version, "go": runtime.Version()})
			}
			_, err := fmt.Fprint(output, versionText())
			return err
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return command
}
