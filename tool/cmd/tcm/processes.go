// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"tcm/internal/profiles"
	"tcm/internal/report"
	"tcm/internal/runfolder"
	"tcm/internal/text"
)

// newReport makes a hidden command that the launcher asks for when the program has ended. It shows what is in the folder
// of the run, and removes that. What the processes wrote cannot bring characters to the terminal that do more than show.
func newReport(use string, show func(*cobra.Command, *runfolder.Folder) error) *cobra.Command {
	return &cobra.Command{
		Use:    use,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			folder, err := runfolder.OfRun()
			if err != nil {
				return err
			}
			defer removeAtEnd(folder)()
			// A reader of standard error that goes away, or a limit on the size of files, must not leave the folder behind.
			signal.Ignore(syscall.SIGPIPE, syscall.SIGXFSZ)
			command.SetErr(text.NewPrintable(command.ErrOrStderr()))
			// The status stays the program's where nobody reads on.
			return exceptClosedPipe(show(command, folder))
		},
	}
}

// errLost says that nothing could be written to the folder of a run, so that what it was made for is lost. The user was told.
var errLost = errors.New("the folder of the run has no room")

// lostFor returns errLost if there is a reason for which nothing can be written.
func lostFor(noRoom error) error {
	if noRoom == nil {
		return nil
	}
	return errLost
}

// whyNothing says why a program left nothing in the folder of its run. archive is what it can be linked with where nothing
// can be preloaded. That is no failure of tcm, so that the exit status stays the program's, unless the error is errLost.
func whyNothing(folder *runfolder.Folder, program, archive string, signal int) (string, error) {
	if reason := report.Unreachable(program, archive); reason != "" {
		return reason, nil
	}
	noRoom := folder.NoRoom()
	return report.Unwritten(program, signal, noRoom), lostFor(noRoom)
}

// mostProfile bounds what is read of the profile of a process, and what that may become when it is unpacked.
const mostProfile = 256 << 20

func loadProcessProfile(folder *runfolder.Folder, name string) (*profile.Profile, error) {
	content, err := folder.Read(name, mostProfile)
	if err != nil {
		return nil, err
	}
	return profiles.ParseWithin(content, mostProfile)
}

// processProfiles are what the processes of a run have left in the private folder of the run.
type processProfiles struct {
	folder *runfolder.Folder
	files  []string
	merged *profile.Profile
}

// readProcessProfiles reads the files whose names begin with the prefix. One that cannot be read is named and left
// out. The profile is nil if there is none.
func readProcessProfiles(folder *runfolder.Folder, prefix string, complaints io.Writer) (processProfiles, error) {
	made := processProfiles{folder: folder}
	names, err := folder.Names(prefix, "")
	if err != nil {
		return made, err
	}
	var all []*profile.Profile
	for _, name := range names {
		if isUnfinished(name) {
			continue
		}
		one, err := loadProcessProfile(folder, name)
		if err != nil {
			fmt.Fprintf(complaints, "tcm: the profile of a process is left out: %s: %v\n", name, err)
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
func isUnfinished(name string) bool { return strings.Contains(name, ".tmp.") }

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
		return writeResult(output, p.merged.Write)
	}
	content, err := p.folder.Read(p.files[0], mostProfile)
	if err != nil {
		return err
	}
	return writeResult(output, func(file io.Writer) error {
		_, err := file.Write(content)
		return err
	})
}
