// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tcm/internal/runfolder"
	"tcm/internal/runner"
	"tcm/internal/text"
)

// heapProfilerVariable is the user's own, and begins the names of the files to which the library writes.
const heapProfilerVariable = "HEAPPROFILE"

// markOfParent is the bit of the first byte by which gperftools marks the value for programs that it starts.
const markOfParent = 0x80

// execute becomes the launcher of the program. It does not return unless it fails.
func execute(command *cobra.Command, report []string, folder *runfolder.Folder, variables map[string]string, program []string) error {
	complainOfProfiler(command.ErrOrStderr())
	return runner.Exec(rootFlag(command), report, folder, variables, program)
}

// complainOfProfiler says before a program starts that its heap profiles will be lost. The program may make the folder
// itself, so that this is no error.
func complainOfProfiler(to io.Writer) {
	prefix := os.Getenv(heapProfilerVariable)
	if prefix == "" || prefix[0]&markOfParent != 0 {
		return
	}
	path, err := filepath.Abs(prefix + ".0001.heap")
	if err == nil {
		err = checkNew(path)
	}
	if err != nil {
		complain(to, fmt.Sprintf("%s=%s: as it is now, no heap profile can be written: %v", heapProfilerVariable, prefix, text.WithoutPath(err)))
	}
}
