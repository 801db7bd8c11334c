// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tcm/internal/project"
)

// TestHeapProfilerThatCannotWrite has the tool tell of the folder before the program says anything.
func TestHeapProfilerThatCannotWrite(t *testing.T) {
	tcm := install(t)
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing")
	want := "tcm: HEAPPROFILE=" + missing + "/x: as it is now, no heap profile can be written: there is no folder " + missing + "\n"
	commands := [][]string{{"run", "-q", "--library", tcm.library}}
	for command, find := range map[string]func(string, string) (string, error){
		"cpu": project.ProfilerLibrary, "debug": project.DebugLibrary, "harden": project.FullLibrary, "leaks": project.FullLibrary,
	} {
		if library, err := find("", ""); err == nil {
			commands = append(commands, []string{command, "--library", library})
		}
	}
	for _, words := range commands {
		words = append(words, "--", "sh", "-c", "echo begun >&2; exit 3")
		t.Setenv(heapProfilerVariable, missing+"/x")
		got := tcm.run(t, words...)
		first, rest, _ := strings.Cut(got.errors, "begun\n")
		if got.status.ExitStatus() != 3 || !strings.HasPrefix(first, want) || strings.Contains(rest, "as it is now") {
			t.Errorf("%q: %+v", words, got)
		}
		for _, prefix := range []string{"", filepath.Join(folder, "x"), "\xaf" + missing[1:] + "/x"} {
			t.Setenv(heapProfilerVariable, prefix)
			if got := tcm.run(t, words...); strings.Contains(got.errors, heapProfilerVariable+"=") {
				t.Errorf("%q: %q: %+v", prefix, words, got)
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(left) > 0 {
		t.Errorf("%q is left, %v", left, err)
	}
}

func TestHeapProfilerWithoutRights(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Setenv(heapProfilerVariable, filepath.Join(folder, "x"))
	var said strings.Builder
	complainOfProfiler(&said)
	if !strings.HasSuffix(said.String(), "no heap profile can be written: permission denied\n") {
		t.Error(said.String())
	}
}
