// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

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
	complainOfProfilers(command.ErrOrStderr(), true)
	return runner.Exec(rootFlag(command), report, folder, variables, program)
}

// complainOfProfilers says before a program starts that the profiles that the user's own variables ask for will be lost. The
// program may make the folder itself, so that this is no error. atExit is false where the command sets the name of the
// profile at exit itself.
func complainOfProfilers(to io.Writer, atExit bool) {
	if prefix := os.Getenv(heapProfilerVariable); prefix != "" && prefix[0]&markOfParent == 0 {
		complainOfProfile(to, heapProfilerVariable, prefix+".0001.heap")
	}
	if name := os.Getenv(runner.HeapProfileVariable); name != "" && atExit {
		complainOfProfile(to, runner.HeapProfileVariable, placeholder.ReplaceAllString(name, "0"))
	}
}

// placeholder stands in the name of the profile at exit for the number of the process, for instance.
var placeholder = regexp.MustCompile("%[ptnk%]")

// complainOfProfile says that a file that a variable asks for cannot be written, if that is so.
func complainOfProfile(to io.Writer, variable, file string) {
	path, err := filepath.Abs(file)
	if err == nil {
		err = checkNew(path)
	}
	if err != nil {
		complain(to, fmt.Sprintf("%s=%s: as it is now, no heap profile can be written: %v", variable, os.Getenv(variable), text.WithoutPath(err)))
	}
}
