// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBenchOfAProgram(t *testing.T) {
	tcm := install(t)
	out := filepath.Join(t.TempDir(), "out")
	got := tcm.run(t, "bench", "--allocators", "ours,"+tcm.library, "--runs", "1", "--timeout", "20", "--out", out, "--", "sh", "-c", "true")
	if got.status.ExitStatus() != 0 || !strings.Contains(got.output, "ours") || !strings.Contains(got.output, "glibc") {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"samples.json", "table.txt", "comparison.svg"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
	again := tcm.run(t, "bench", "--from", filepath.Join(out, "samples.json"))
	if again.output != got.output {
		t.Errorf("%q\nbecame %q", got.output, again.output)
	}
	for want, words := range map[string][]string{
		`neither a number of seconds nor a time`: {"--timeout", "soon", "--", "true"},
		`no allocator fits "odd"`:                {"--allocators", "odd", "--", "true"},
		`no allocator is called "odd"`:           {"--baseline", "odd", "--", "true"},
		`cannot start nonesuch-program`:          {"--", "nonesuch-program"},
		`cannot preload /etc/passwd`:             {"--allocators", "/etc/passwd", "--", "true"},
		`either --workloads or a program`:        {"--workloads", "quick", "true"},
	} {
		if got := tcm.run(t, append([]string{"bench"}, words...)...); got.status.ExitStatus() == 0 || !strings.Contains(got.errors, want) {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

func TestBenchSaysWhatTheEnvironmentDoes(t *testing.T) {
	tcm := install(t)
	t.Setenv("LD_PRELOAD", "libm.so.6")
	t.Setenv("MALLOC_ARENA_MAX", "2")
	got := tcm.run(t, "bench", "--allocators", "ours", "--runs", "1", "--out", t.TempDir(), "--",
		"sh", "-c", `case $LD_PRELOAD in *libm*) exit 3; esac`)
	if got.status.ExitStatus() != 0 || !strings.Contains(got.errors, "LD_PRELOAD=libm.so.6 is left out") ||
		!strings.Contains(got.output, "every program ran with MALLOC_ARENA_MAX=2\n") {
		t.Errorf("%+v", got)
	}
}

func TestBenchWithoutAProgram(t *testing.T) {
	tcm := install(t)
	for _, words := range [][]string{{"--"}, {"--runs", "1", "--"}, {"--list", "--"}} {
		got := tcm.run(t, append([]string{"bench"}, words...)...)
		if got.status.ExitStatus() == 0 || !strings.Contains(got.errors, `no program follows "--"`) {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

func TestListOutsideOfACheckout(t *testing.T) {
	tcm := install(t)
	t.Chdir("/")
	got := tcm.run(t, "bench", "--list")
	if got.status.ExitStatus() != 0 || !strings.Contains(got.output, "ours") || strings.Contains(got.output, "workload") {
		t.Errorf("%+v", got)
	}
	for _, want := range []string{"no workloads to show", "no checkout of TCMalloc found", "--root", "tcm bench -- PROGRAM"} {
		if !strings.Contains(got.errors, want) {
			t.Errorf("no %q in %q", want, got.errors)
		}
	}
	got = tcm.run(t, "bench", "--list", "--json", "-")
	if got.status.ExitStatus() != 0 || !strings.Contains(got.output, `"workloads": []`) {
		t.Errorf("%+v", got)
	}
	for want, words := range map[string][]string{
		"is no checkout of TCMalloc":         {"bench", "--list", "--root", "/etc"},
		"the workloads are in a checkout":    {"bench"},
		"a program of your own runs without": {"bench", "--workloads", "quick"},
	} {
		if got := tcm.run(t, words...); got.status.ExitStatus() == 0 || !strings.Contains(got.errors, want) {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

func TestSeconds(t *testing.T) {
	for word, want := range map[string]time.Duration{"5": 5 * time.Second, "0.5": time.Second / 2, "2m": 2 * time.Minute} {
		var value seconds
		if err := value.Set(word); err != nil || time.Duration(value) != want {
			t.Errorf("%q: %v, %v", word, value, err)
		}
	}
	for _, word := range []string{"", "x", "NaN", "Inf", "5 s"} {
		var value seconds
		if err := value.Set(word); err == nil {
			t.Errorf("%q is taken for %v", word, value)
		}
	}
}

func TestBenchRefusesFlagsWithoutEffect(t *testing.T) {
	tcm := install(t)
	for want, words := range map[string][]string{
		"--explain goes with neither a program nor --workloads, ": {"--explain", "tight-1t-64", "--", "true"},
		"--explain goes with neither a program nor":               {"--explain", "tight-1t-64", "--list"},
		"or with the best of --allocators, not with both":         {"--explain", "tight-1t-64", "--baseline", "glibc", "--allocators", "ours"},
		"--from goes with neither a program nor --workloads, ":    {"--from", "x", "--", "true"},
		"--from goes with neither a program":                      {"--from", "x", "--allocators", "nosuch"},
		"--from goes with neither":                                {"--from", "x", "--baseline", "ours"},
		"--list goes with none of --workloads, ":                  {"--list", "--workloads", "nosuch"},
		"--list goes with none of":                                {"--list", "--input", "/nonexistent", "--", "true"},
		"--input goes with a program":                             {"--input", "/etc/passwd"},
		"--input /nonexistent: no such file or directory":         {"--input", "/nonexistent", "--", "true"},
		"--input /etc: it is a folder":                            {"--input", "/etc", "--", "true"},
	} {
		if got := tcm.run(t, append([]string{"bench"}, words...)...); got.status.ExitStatus() != exitUsage || !strings.Contains(got.errors, want) {
			t.Errorf("%q: %+v", words, got)
		}
	}
	list := filepath.Join(t.TempDir(), "list.json")
	got := tcm.run(t, "bench", "--list", "--json", list, "--", "true")
	content, err := os.ReadFile(list)
	if got.status.ExitStatus() != 0 || !strings.Contains(got.output, "glibc") || err != nil || !strings.Contains(string(content), `"allocators": [`) {
		t.Errorf("%+v, %v, %s", got, err, content)
	}
}

// TestBenchSaysWhatItHasWritten fills a folder in which one file cannot be written.
func TestBenchSaysWhatItHasWritten(t *testing.T) {
	tcm := install(t)
	out := t.TempDir()
	if err := os.Mkdir(filepath.Join(out, "table.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	got := tcm.run(t, "bench", "--allocators", "glibc", "--runs", "1", "--out", out, "--", "true")
	if got.status.ExitStatus() != exitUsage || !strings.Contains(got.errors, "written: "+out+": samples.json, comparison.svg\n") ||
		!strings.Contains(got.errors, "table.txt") || !strings.Contains(got.output, "page faults") {
		t.Errorf("%+v", got)
	}
}

// TestBenchEndsWithItsProgram ends tcm bench as the end of a session does.
func TestBenchEndsWithItsProgram(t *testing.T) {
	tcm := install(t)
	started := filepath.Join(t.TempDir(), "started")
	program := "echo $$ > " + started + ".part; mv " + started + ".part " + started + "; exec sleep 60"
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		command := tcm.command(t, "bench", "--allocators", "glibc", "--runs", "1", "--out", t.TempDir(), "--", "sh", "-c", program)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		pid := numberIn(t, started)
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		if command.ProcessState.ExitCode() != exitInterrupted || !isGone(pid) {
			t.Errorf("%v: %v", signal, command.ProcessState)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := os.Remove(started); err != nil {
			t.Fatal(err)
		}
	}
}

// numberIn waits for a file with a number.
func numberIn(t *testing.T, path string) int {
	t.Helper()
	for end := time.Now().Add(testTimeout); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if content, err := os.ReadFile(path); err == nil {
			number, err := strconv.Atoi(strings.TrimSpace(string(content)))
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("no %s", path)
	return 0
}

// isGone waits a second for the end of a process, which nobody need have reaped.
func isGone(pid int) bool {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(status), ") Z ") {
			return true
		}
	}
	return false
}
