// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"tcm/internal/peers"
	"tcm/internal/project"
)

func newPeers() *cobra.Command {
	var asJSON, list, force bool
	command := &cobra.Command{
		Use:   "peers [flags] [NAME...]",
		Short: "Obtain and build the other allocators that tcm bench compares with",
		Long: "Obtains other allocators from package registries and builds each as a shared library that is\n" +
			"proved to serve malloc and its kin of a program. What is up to date is left alone. All, or the\n" +
			"named ones; bench/peers/peers.json lists them.",
		RunE: func(command *cobra.Command, names []string) error {
			checkout, err := project.Find(rootFlag(command))
			if err != nil {
				return err
			}
			set, err := peers.Load(checkout)
			if err != nil {
				return err
			}
			statuses, err := set.List(names)
			if err == nil && !list {
				statuses, err = set.Build(command.Context(), peers.Options{
					Only: names, Force: force, Progress: command.ErrOrStderr(),
				})
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(command.OutOrStdout(), statuses)
			}
			return printPeers(command.OutOrStdout(), statuses)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	command.Flags().BoolVar(&list, "list", false, "show what is there, build nothing")
	command.Flags().BoolVar(&force, "force", false, "build what is up to date as well")
	return command
}

func printPeers(output io.Writer, statuses []peers.Status) error {
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "name\tversion\tfrom\tstate")
	for _, status := range statuses {
		state := "works"
		if !status.Works {
			state = status.Reason
		}
		if len(status.Notes) > 0 {
			state += "; " + strings.Join(status.Notes, "; ")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", status.Name, status.Version, status.Kind, state)
	}
	return table.Flush()
}
