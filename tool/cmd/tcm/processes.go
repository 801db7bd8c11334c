// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/pprof/profile"

	"tcm/internal/profiles"
	"tcm/internal/text"
)

// processProfiles are what the processes of a run have left in the private folder of the run.
type processProfiles struct {
	files  []string
	merged *profile.Profile
}

// readProcessProfiles reads the files whose names begin with the prefix. One that cannot be read is named and left
// out. The profile is nil if there is none.
func readProcessProfiles(prefix string, complaints io.Writer) (processProfiles, error) {
	var made processProfiles
	names, err := filepath.Glob(globQuoted.Replace(prefix) + "*")
	if err != nil {
		return made, err
	}
	var all []*profile.Profile
	for _, name := range names {
		if isUnfinished(name) {
			continue
		}
		one, err := profiles.Load(name)
		if err != nil {
			fmt.Fprintf(complaints, "tcm: the profile of a process is left out: %s: %v\n", filepath.Base(name), withoutName(err, name))
			continue
		}
		made.files = append(made.files, name)
		all = append(all, one)
	}
	if len(all) > 0 {
		made.merged, err = profiles.Merge(all)
	}
	return made, err
}

// isUnfinished returns true for what a process that was killed while it wrote, or writes still, has left.
func isUnfinished(name string) bool { return strings.Contains(filepath.Base(name), ".tmp.") }

// globQuoted keeps what is special in patterns.
var globQuoted = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`)

func withoutName(err error, name string) string { return strings.TrimPrefix(err.Error(), name+": ") }

// title names a program with what it started.
func (p *processProfiles) title(program string) string {
	program = filepath.Base(program)
	if len(p.files) == 1 {
		return program
	}
	return fmt.Sprintf("%s, %s processes", program, text.Count(int64(len(p.files))))
}

// keep writes the file that the user asked for, if any. The profiles of several processes become one, which only
// profile.proto can hold.
func (p *processProfiles) keep(output string) error {
	if output == "" {
		return nil
	}
	if len(p.files) > 1 {
		return writeWhole(output, p.merged.Write)
	}
	content, err := os.ReadFile(p.files[0])
	if err != nil {
		return err
	}
	return writeWhole(output, func(file io.Writer) error {
		_, err := file.Write(content)
		return err
	})
}
