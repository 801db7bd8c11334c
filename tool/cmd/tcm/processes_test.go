// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"tcm/internal/project"
)

// TestReasonsThatAreKnown has programs that leave nothing, each for one reason that is told without others beside it.
func TestReasonsThatAreKnown(t *testing.T) {
	tcm := install(t)
	folder := t.TempDir()
	source, static := filepath.Join(folder, "plain.c"), filepath.Join(folder, "plain")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	build(t, "cc", "-static", "-o", static, source)
	for _, test := range []struct {
		words   []string
		find    func(string, string) (string, error)
		said    string
		archive string
	}{
		{[]string{"cpu"}, project.ProfilerLibrary, " wrote no CPU profile: ", "libprofiler.a"},
		{[]string{"leaks"}, project.FullLibrary, " was not checked: ", fullArchive},
		{[]string{"run", "-q", "--heap-profile", filepath.Join(folder, "heap")}, project.FullLibrary, " wrote no heap profile: ", fullArchive},
	} {
		library, err := test.find("", "")
		if err != nil {
			t.Skip(err)
		}
		for _, program := range []struct {
			words  []string
			reason string
		}{
			{[]string{static}, "plain is linked statically, so nothing can be preloaded; link it with " + test.archive},
			{[]string{"sh", "-c", "kill -9 $$"}, "a signal ended the program before its exit handlers"},
		} {
			words := append(append(test.words[:len(test.words):len(test.words)], "--library", library, "--"), program.words...)
			if got := tcm.run(t, words...); got.errors != "tcm: "+program.words[0]+test.said+program.reason+"\n" {
				t.Errorf("%q: %+v", words, got)
			}
		}
	}
}
