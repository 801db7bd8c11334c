// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tcm/internal/project"
	"tcm/internal/runner"
)

// TestProfilesThatCannotBeWritten has the tool tell of the folder before the program says anything.
func TestProfilesThatCannotBeWritten(t *testing.T) {
	tcm := install(t)
	commands := [][]string{{"run", "-q", "--library", tcm.library}}
	for command, find := range map[string]func(string, string) (string, error){
		"cpu": project.ProfilerLibrary, "debug": project.DebugLibrary, "harden": project.FullLibrary, "leaks": project.FullLibrary,
	} {
		if library, err := find("", ""); err == nil {
			commands = append(commands, []string{command, "--library", library})
		}
	}
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing")
	accepted := map[string][]string{
		heapProfilerVariable:       {"", filepath.Join(folder, "x"), "\xaf" + missing[1:] + "/x"},
		runner.HeapProfileVariable: {"", filepath.Join(folder, "%p%%.%n.pb.gz")},
	}
	for variable, names := range accepted {
		want := "tcm: " + variable + "=" + missing + "/x: as it is now, no heap profile can be written: there is no folder " + missing + "\n"
		for _, words := range commands {
			words = append(words, "--", "sh", "-c", "echo begun >&2; exit 3")
			t.Setenv(variable, missing+"/x")
			got := tcm.run(t, words...)
			first, rest, _ := strings.Cut(got.errors, "begun\n")
			if got.status.ExitStatus() != 3 || !strings.HasPrefix(first, want) || strings.Contains(rest, "as it is now") {
				t.Errorf("%q: %+v", words, got)
			}
			for _, name := range names {
				t.Setenv(variable, name)
				if got := tcm.run(t, words...); strings.Contains(got.errors, variable+"=") {
					t.Errorf("%q: %q: %+v", name, words, got)
				}
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
}

// TestNamesOfProfilesInMissingFolders looks at placeholders, and at commands that set the variable themselves.
func TestNamesOfProfilesInMissingFolders(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(runner.HeapProfileVariable, folder+"/%p/x%%.%t")
	var said, nothing strings.Builder
	complainOfProfilers(&said, true)
	if !strings.HasSuffix(said.String(), "there is no folder "+folder+"/0\n") {
		t.Error(said.String())
	}
	if complainOfProfilers(&nothing, false); nothing.Len() > 0 {
		t.Error(nothing.String())
	}
}

func TestProfilesWithoutRights(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{heapProfilerVariable, runner.HeapProfileVariable} {
		t.Setenv(variable, filepath.Join(folder, "x"))
	}
	var said strings.Builder
	complainOfProfilers(&said, true)
	if strings.Count(said.String(), "no heap profile can be written: permission denied\n") != 2 {
		t.Error(said.String())
	}
}
