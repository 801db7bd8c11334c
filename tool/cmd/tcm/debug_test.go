// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tcm/internal/project"
)

// mistaken makes the mistake that its first letter names.
const mistaken = `
#include <stdlib.h>
#include <unistd.h>
static char* Give(void) { return malloc(7); }  // GIVE
static void Take(char* block) { free(block); }  // TAKE
int main(int argc, char** argv) {
  char* block = Give();
  switch (argc > 1 ? argv[1][0] : 'n') {
    case 'd': Take(block); Take(block); break;  // TWICE
    case 'o': block[8] = 1; Take(block); break;  // OVERRUN
    case 'f': ((volatile char*)block)[16] = 1; break;
    case 'l': block = malloc(1 << 20); Take(block); ((volatile char*)block)[5] = 1; break;
    case '_': Take(block); _exit(0);
    default: Take(block);
  }
  return 3;
}
`

// buildMistaken returns the program that makes the mistake that its argument names.
func buildMistaken(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	source, program := filepath.Join(folder, "mistaken.c"), filepath.Join(folder, "mistaken")
	if err := os.WriteFile(source, []byte(mistaken), 0o644); err != nil {
		t.Fatal(err)
	}
	build(t, "cc", "-g", "-O1", "-fno-builtin", "-o", program, source)
	return program
}

func TestDebug(t *testing.T) {
	library, err := project.DebugLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	tcm := install(t)
	folder := t.TempDir()
	source, program := filepath.Join(folder, "mistaken.c"), filepath.Join(folder, "mistaken")
	if err := os.WriteFile(source, []byte(mistaken), 0o644); err != nil {
		t.Fatal(err)
	}
	build(t, "cc", "-g", "-O1", "-fno-builtin", "-o", program, source)
	debug := func(words ...string) ended {
		return tcm.run(t, append([]string{"debug", "--library", library}, words...)...)
	}
	check := func(t *testing.T, got ended, words ...string) {
		t.Helper()
		rest := got.errors
		for _, word := range words {
			_, after, found := strings.Cut(rest, word)
			if !found {
				t.Errorf("no %q in order in\n%s", word, got.errors)
				return
			}
			rest = after
		}
	}

	t.Run("double free", func(t *testing.T) {
		got := debug("--", program, "d")
		if !got.status.Signaled() || got.status.Signal() != syscall.SIGABRT {
			t.Errorf("%+v", got)
		}
		check(t, got, "tcmalloc: memory allocation bug", "tcm debug: mistaken (process ", "gave back a block that was freed before",
			"Noticed by free", "#0 Take  "+source+":5", ">     5 | static void Take", "#1 main", "| ", "// TWICE", "Allocated with malloc",
			"#0 Give  "+source+":4", "Deleted by", "#0 Take", "Two owners")
	})
	t.Run("overrun", func(t *testing.T) {
		check(t, debug(program, "o"), "wrote beyond the end of a block", "number 2 is 0x01", "// OVERRUN", "Next: gdb", "TCMALLOC_PAGE_FENCE 1", "Next: valgrind")
	})
	t.Run("no mistake", func(t *testing.T) {
		got := debug(program)
		if got.status.ExitStatus() != 3 || got.errors != "tcm: no mistakes were noticed in "+program+"\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("no mistake in a script", func(t *testing.T) {
		check(t, debug("bash", "-c", program+"; true"), "no mistakes were noticed in bash and 1 process that it started\n")
		check(t, debug("bash", "-c", program+"; "+program+"; true"), "no mistakes were noticed in bash and 2 processes that it started\n")
	})
	t.Run("programs of a script", func(t *testing.T) {
		report := filepath.Join(folder, "report.txt")
		script := program + " d 2>/dev/null; " + program + " o 2>/dev/null >&2; exit 5"
		got := debug("-o", report, "sh", "-c", script)
		if got.status.ExitStatus() != 5 || !strings.HasSuffix(got.errors, "tcm: 2 reports: "+report+"\n") {
			t.Errorf("%+v", got)
		}
		content, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		check(t, ended{errors: string(content)}, "freed before", "// TWICE", "beyond the end", "// OVERRUN", "Next: valgrind --trace-children=yes sh -c '")
	})
	t.Run("a file that cannot be written", func(t *testing.T) {
		got := debug("-o", "/dev/full", "sh", "-c", program+" d 2>/dev/null; true")
		if got.status.ExitStatus() != exitUsage {
			t.Errorf("%+v", got)
		}
		check(t, got, "gave back a block that was freed before", "// TWICE", "tcm: cannot write /dev/full: no space left on device\n")
	})
	t.Run("JSON", func(t *testing.T) {
		report := filepath.Join(folder, "report.json")
		debug("--json", "-o", report, program, "d")
		content, err := os.ReadFile(report)
		var made checkResult
		if err != nil || json.Unmarshal(content, &made) != nil || len(made.Reports) != 1 {
			t.Fatalf("%v: %s", err, content)
		}
		if one := made.Reports[0]; one.Program != program || len(one.Parts) != 3 || one.Parts[1].Frames[0].Function != "Give" || one.Parts[1].Frames[0].Line != 4 {
			t.Errorf("%s", content)
		}
	})
	t.Run("fault", func(t *testing.T) {
		got := debug("--page-fence", program, "f")
		if got.status.Signal() != syscall.SIGSEGV {
			t.Errorf("%+v", got)
		}
		check(t, got, "as a read or write beyond a block or after its free does", "gdb -batch")
		if _, err := exec.LookPath("gdb"); err != nil {
			t.Skip(err)
		}
		_, line, _ := strings.Cut(got.errors, "\n  gdb ")
		output, err := exec.Command("sh", "-c", "gdb "+line).CombinedOutput()
		if err == nil && strings.Contains(string(output), "ptrace") {
			t.Skip("gdb may not run programs here")
		}
		if err != nil || !strings.Contains(string(output), "has 7 bytes of malloc and is live") || !strings.Contains(string(output), " Give  ") {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("no check at the end", func(t *testing.T) {
		check(t, debug(program, "_"), "no report came from "+program+", and no figures: it ended by _exit")
	})
	t.Run("static program", func(t *testing.T) {
		static := filepath.Join(folder, "static")
		build(t, "cc", "-static", "-o", static, source)
		got := debug(static, "n")
		if got.status.ExitStatus() != 3 {
			t.Errorf("%+v", got)
		}
		check(t, got, "nothing was checked: static is linked statically", "libtcmalloc_debug.a")
	})
	t.Run("sanitizer", func(t *testing.T) {
		// A stand-in for the run-time library, which is not everywhere.
		built := filepath.Join(folder, "sanitized")
		build(t, "cc", "-D", "Give=__asan_init", "-o", built, source)
		got := debug(built)
		if got.status.ExitStatus() != exitUsage {
			t.Errorf("%+v", got)
		}
		check(t, got, "is built with the address sanitizer", "run it without tcm debug")
	})
	t.Run("symbolize", func(t *testing.T) {
		const before = "2026-11-23T12:00:00 "
		command := tcm.command(t, "symbolize")
		log := "first\r\n" + before + "    @ 0x55d0 /nowhere/server+0x1234 (build id 00ff)\n    @ 0x1 [vdso]+0x2\nlast without end"
		command.Stdin = strings.NewReader(log)
		output, err := command.Output()
		if err != nil || string(output) != log {
			t.Errorf("%v: %q", err, output)
		}
		raw := debugOutput(t, tcm, library, program)
		command = tcm.command(t, "symbolize")
		command.Stdin = strings.NewReader(raw)
		output, err = command.Output()
		if err != nil || !strings.Contains(string(output), " Take  "+source+":5\n") || strings.Count(string(output), "Noticed by free in thread") != 1 {
			t.Errorf("%v: %s", err, output)
		}
		command = tcm.command(t, "symbolize")
		command.Stdin = strings.NewReader(string(output))
		if again, err := command.Output(); err != nil || string(again) != string(output) {
			t.Errorf("a second time: %v: %s", err, again)
		}
	})
}

// debugOutput is what the library writes without tcm.
func debugOutput(t *testing.T, tcm installed, library, program string) string {
	t.Helper()
	command := tcm.command(t)
	command.Path, command.Args = program, []string{program, "d"}
	var complaints strings.Builder
	command.Stderr = &complaints
	command.Env = append(command.Env, "LD_PRELOAD="+library)
	if err := command.Run(); err == nil {
		t.Error("the program ended well")
	}
	return complaints.String()
}

func TestHardenNeedsALibraryThatKnowsIt(t *testing.T) {
	tcm := install(t)
	// tcm debug takes its word for a library of ours.
	fake := filepath.Join(filepath.Dir(tcm.library), "libtcmalloc.so.4")
	source := filepath.Join(t.TempDir(), "fake.c")
	text := forwardingMalloc + "int tcmalloc_per_cpu_caches_active(void) { return 0; }\nconst char known[] = \"TCMALLOC_CRASH_REPORT\";\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	build(t, "cc", "-shared", "-fPIC", "-o", fake, source)
	got := tcm.run(t, "harden", "true")
	if got.status.ExitStatus() != exitUsage || !strings.Contains(got.errors, `has no mode "hardened"`) || strings.Count(got.errors, "\n") != 1 {
		t.Errorf("%+v", got)
	}
}

// TestLibrariesWithoutTheMode looks at each library of this checkout.
func TestLibrariesWithoutTheMode(t *testing.T) {
	full, err := project.FullLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	tcm := install(t)
	for name, commands := range map[string]string{
		project.LibraryName: "", project.FullLibraryName: "debug harden leaks", project.DebugLibraryName: "debug leaks", "libtcmalloc_minimal_debug.so.4": "debug",
	} {
		library := filepath.Join(filepath.Dir(full), name)
		if _, err := os.Stat(library); err != nil {
			t.Log(err)
			continue
		}
		for _, command := range []string{"debug", "harden", "leaks"} {
			status := exitUsage
			if strings.Contains(commands, command) {
				status = 0
			}
			got := tcm.run(t, command, "--library", library, "--", "cat")
			if got.status.ExitStatus() != status || (got.output == "") != (status != 0) || strings.Count(got.errors, "\n") != 1 {
				t.Errorf("%s with %s: %+v", command, name, got)
			}
		}
	}
}

// TestDebugWithTheFullLibrary has a library that checks blocks only if it is told to.
func TestDebugWithTheFullLibrary(t *testing.T) {
	library, err := project.FullLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	program := buildMistaken(t)
	got := install(t).run(t, "debug", "--library", library, program, "o")
	for _, words := range []string{"wrote beyond the end of a block", "TCMALLOC_MODE debug' -ex 'set environment TCMALLOC_PAGE_FENCE 1'"} {
		if got.status.Signal() != syscall.SIGABRT || !strings.Contains(got.errors, words) {
			t.Errorf("no %q: %+v", words, got)
		}
	}
}

// TestHardenExplainsFaults uses a large block after its free, which has no message of the library.
func TestHardenExplainsFaults(t *testing.T) {
	library, err := project.FullLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	program := buildMistaken(t)
	got := install(t).run(t, "harden", "--library", library, program, "l")
	for _, words := range []string{"a large block after its free", "gdb -batch ", "TCMALLOC_MODE hardened", "'heap fault'"} {
		if got.status.Signal() != syscall.SIGSEGV || !strings.Contains(got.errors, words) {
			t.Errorf("no %q: %+v", words, got)
		}
	}
}

func TestComplaintsOfDebug(t *testing.T) {
	for _, words := range [][]string{
		{"debug"}, {"harden"}, {"debug", "--check-interval", "-1", "true"}, {"debug", "-o", "/nonexistent/report", "true"},
		{"debug", "--library", "/nonexistent", "true"}, {"debug", "--library", "/etc/passwd", "true"}, {"harden", "--page-fence", "true"},
		{"symbolize", "/nonexistent"}, {"symbolize", "one", "two"},
	} {
		output, _, err := called(words...)
		if err == nil || output != "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q, %v", words, output, err)
		}
	}
}
