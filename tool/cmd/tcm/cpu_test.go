// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tcm/internal/project"
)

// burner takes 300 ms of CPU time in one function.
const burner = `
#include <time.h>
__attribute__((noinline)) void burn(void) {
  struct timespec used;
  do {
    for (volatile int i = 0; i < 100000; i = i + 1) {}
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < 300000000);
}
int main(void) {
  burn();
  return 4;
}
`

func TestCPU(t *testing.T) {
	library, err := project.ProfilerLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	tcm := install(t)
	folder := t.TempDir()
	source, program := filepath.Join(folder, "burner.c"), filepath.Join(folder, "burner")
	if err := os.WriteFile(source, []byte(burner), 0o644); err != nil {
		t.Fatal(err)
	}
	build(t, "cc", "-g", "-O1", "-o", program, source)

	t.Run("table", func(t *testing.T) {
		got := tcm.run(t, "cpu", "--library", library, "--cum", "--", program)
		if got.status.ExitStatus() != 4 || !strings.HasPrefix(got.errors, "cpu: ") || !strings.Contains(got.errors, "burn (burner)") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("files", func(t *testing.T) {
		for _, name := range []string{"cpu.pb.gz", "cpu.prof"} {
			profile, page := filepath.Join(folder, name), filepath.Join(folder, "page.html")
			got := tcm.run(t, "cpu", "--library", library, "--quiet", "--frequency", "1000", "-o", profile, "--html", page, program)
			if got.status.ExitStatus() != 4 || got.errors != "" {
				t.Errorf("%+v", got)
			}
			content, err := os.ReadFile(page)
			if err != nil || !strings.Contains(string(content), "burn") {
				t.Errorf("%v: %.80s", err, content)
			}
			again := tcm.run(t, "heap", profile)
			if !strings.HasPrefix(again.output, "cpu: ") || !strings.Contains(again.output, "burn (burner)") {
				t.Errorf("%+v", again)
			}
		}
	})
	t.Run("several processes", func(t *testing.T) {
		profile := filepath.Join(folder, "script.pb.gz")
		script := program + "; exec " + program
		got := tcm.run(t, "cpu", "--library", library, "-o", profile, "--", "sh", "-c", script)
		if got.status.ExitStatus() != 4 || !strings.Contains(got.errors, "burn (burner)") {
			t.Errorf("%+v", got)
		}
		again := tcm.run(t, "heap", profile)
		var milliseconds float64
		if _, err := fmt.Sscanf(again.output, "cpu: %f ms", &milliseconds); err != nil || milliseconds < 450 {
			t.Errorf("not the 600 ms of both: %v, %+v", err, again)
		}
	})
	t.Run("files that cannot be written", func(t *testing.T) {
		for script, status := range map[string]int{program: 4, program + "; true": exitUsage} {
			for _, flag := range []string{"-o", "--html"} {
				got, kept := tcm.runKept(t, "cpu", "--library", library, flag, "/dev/full", "--", "sh", "-c", script)
				if got.status.ExitStatus() != status || !strings.Contains(got.errors, "burn (burner)") || len(kept) == 0 {
					t.Errorf("%s: %+v", flag, got)
				}
			}
		}
	})
	t.Run("no profile", func(t *testing.T) {
		got := tcm.run(t, "cpu", "--library", library, "sh", "-c", "kill -9 $$")
		if !got.status.Signaled() || strings.Count(got.errors, "\n") != 1 || !strings.Contains(got.errors, "wrote no CPU profile") {
			t.Errorf("%+v", got)
		}
	})
}

func TestComplaintsOfCPU(t *testing.T) {
	for _, words := range [][]string{
		{"cpu"}, {"cpu", "--frequency", "0", "true"}, {"cpu", "--frequency", "4001", "true"}, {"cpu", "--top", "-1", "true"},
		{"cpu", "-o", "/nonexistent/profile", "true"}, {"cpu", "--html", t.TempDir(), "true"}, {"cpu", "--library", "/nonexistent", "true"}, {"cpu", "--library", "/proc/self/exe", "true"},
	} {
		output, _, err := called(words...)
		if err == nil || output != "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q, %v", words, output, err)
		}
	}
}
