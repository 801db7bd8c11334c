// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tcm/internal/project"
)

// restricted gives up what its first letter names and does what its second letter names.
const restricted = `
#define _GNU_SOURCE
#include <grp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static void Burn(void) {
  struct timespec used;
  do {
    for (volatile int i = 0; i < 100000; i = i + 1) {}
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < 200000000);
}
__attribute__((noinline)) static void Lose(void) {
  for (int i = 0; i < 300; ++i) {
    void* volatile lost = malloc(100000);
    lost = 0;
  }
  volatile char room[4096];
  for (int i = 0; i < 4096; ++i) room[i] = 0;
}
int main(int argc, char** argv) {
  const struct rlimit none = {0, 0};
  char* volatile block = malloc(50);
  switch (argv[1][0]) {
    case 'u': if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) return 9; break;
    case 'r': if (chroot(argv[2]) != 0 || chdir("/") != 0) return 9; break;
    case 'f': if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 9; break;
  }
  switch (argv[1][1]) {
    case 'b': Burn(); break;
    case 'l': Lose(); break;
    case 'd': free(block); free(block); break;
  }
  return 4;
}
`

// refused is the exit status of the program where the system does not let it give up what it is to give up.
const refused = 9

// openToAll is a tree, and a program in a folder, that every user can reach, as an installation is.
func openToAll(t *testing.T) (tcm installed, program string) {
	t.Helper()
	tcm = install(t)
	folder, err := os.MkdirTemp("", "tcm_open")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	tcm.temporary = filepath.Join(folder, "tmp")
	source := filepath.Join(folder, "restricted.c")
	program = filepath.Join(folder, "restricted")
	for _, err := range []error{os.Chmod(folder, 0o755), os.Mkdir(tcm.temporary, 0o755), os.Chmod(tcm.temporary, 0o755), os.WriteFile(source, []byte(restricted), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	build(t, "cc", "-g", "-O1", "-fno-builtin", "-o", program, source)
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	return tcm, program
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a program that gives up rights")
	}
}

// asNobody starts a program with rights given up before.
var asNobody = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}

// startsAsNobody returns false where another user cannot run the program with the library.
func startsAsNobody(library, program string) bool {
	words := append(asNobody[1:len(asNobody):len(asNobody)], "test", "-r", library, "-a", "-x", program)
	return exec.Command(asNobody[0], words...).Run() == nil
}

func TestRightsGivenUp(t *testing.T) {
	needRoot(t)
	tcm, program := openToAll(t)
	find := func(find func(string, string) (string, error)) string {
		library, err := find("", "")
		if err != nil {
			t.Skip(err)
		}
		return library
	}
	full, debugging, profiler := find(project.FullLibrary), find(project.DebugLibrary), find(project.ProfilerLibrary)
	kept := filepath.Join(t.TempDir(), "kept.pb.gz")
	for _, test := range []struct {
		library, work string
		status        int
		words, want   []string
	}{
		{debugging, "d", -1, []string{"debug"}, []string{"tcm debug: restricted (process ", "gave back a block that was freed before", "main"}},
		{full, "d", -1, []string{"harden"}, []string{"tcm harden: restricted (process ", "gave back a block that was free already", "main"}},
		{full, "l", 4, []string{"leaks"}, []string{"28.6 MiB in 300 blocks\n", "Lose"}},
		{profiler, "b", 4, []string{"cpu"}, []string{"cpu: ", "Burn (restricted)"}},
		{full, "l", 4, []string{"run", "--heap-profile", kept}, []string{"MiB allocated", "tcm: heap profile: " + kept}},
	} {
		check := func(t *testing.T, started ...string) {
			t.Helper()
			words := append(append(test.words, "--library", test.library, "--"), started...)
			got := tcm.run(t, words...)
			if got.status.ExitStatus() == refused {
				t.Skip("this root may not give up rights")
			}
			if got.status.ExitStatus() != test.status {
				t.Errorf("%q: %+v", words, got)
			}
			for _, want := range test.want {
				if !strings.Contains(got.errors, want) {
					t.Errorf("%q: no %q in\n%s", words, want, got.errors)
				}
			}
		}
		t.Run(test.words[0], func(t *testing.T) { check(t, program, "u"+test.work) })
		t.Run(test.words[0]+" before", func(t *testing.T) {
			if !startsAsNobody(test.library, program) {
				t.Skip("another user cannot reach the library")
			}
			check(t, append(asNobody, program, "-"+test.work)...)
		})
	}
}

// TestReasonsThatAreNotKnown has programs that can write nothing when they end.
func TestReasonsThatAreNotKnown(t *testing.T) {
	tcm, program := openToAll(t)
	full, err := project.FullLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	for _, test := range []struct {
		letter, words, want string
		needsRoot           bool
	}{
		{"fl", "run", "could write nothing (it changed its root folder", false},
		{"fl", "leaks", "could write nothing (it changed its root folder", false},
		{"rl", "run", "could write nothing (it changed its root folder", true},
		{"rd", "harden", "no report of a mistake with blocks could be read: ", true},
	} {
		t.Run(test.letter+" "+test.words, func(t *testing.T) {
			if test.needsRoot {
				needRoot(t)
			}
			got := tcm.run(t, test.words, "--library", full, "--", program, test.letter, t.TempDir())
			if got.status.ExitStatus() == refused {
				t.Skip("this root may not change its root folder")
			}
			if !strings.Contains(got.errors, test.want) || strings.Contains(got.errors, "no mistakes were noticed") {
				t.Errorf("%s", got.errors)
			}
		})
	}
}

// TestNoRoom has programs that fill the folder of the run.
func TestNoRoom(t *testing.T) {
	tcm, program := openToAll(t)
	full, err := project.FullLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	want := "(" + tcm.temporary + ": file too large; TMPDIR can name another folder)"
	for _, words := range [][]string{{"harden"}, {"leaks"}, {"leaks", "--json"}, {"run", "--html", "/dev/null"}} {
		got := tcm.runWithoutRoom(t, append(words, "--library", full, "--", "sh", "-c", program+" -l; true")...)
		if got.status.ExitStatus() != exitUsage || !strings.Contains(got.errors, want) {
			t.Errorf("%q: %+v", words, got)
		}
	}
	profiler, err := project.ProfilerLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	got := tcm.runWithoutRoom(t, "cpu", "--library", profiler, "--", "sh", "-c", program+" -b; true")
	if got.status.ExitStatus() != exitUsage || !strings.Contains(got.errors, want) {
		t.Errorf("%+v", got)
	}
	// What the program needs not leave is not missed.
	if got := tcm.runWithoutRoom(t, "run", "--library", full, "--", program, "-l"); got.status.ExitStatus() != 4 || !strings.Contains(got.errors, want) {
		t.Errorf("%+v", got)
	}
}

// TestFolderIsInNoCommandLine has a program that looks at the launcher, as any user can.
func TestFolderIsInNoCommandLine(t *testing.T) {
	library, err := project.FullLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	tcm := install(t)
	got := tcm.run(t, "run", "-q", "--library", library, "--heap-profile", filepath.Join(t.TempDir(), "x"), "--", "sh", "-c",
		`tr '\0' ' ' < /proc/$PPID/cmdline; echo; env | grep TCM_LAUNCH_; echo "$TCMALLOC_HEAP_PROFILE"; stat -c %a "${TCMALLOC_HEAP_PROFILE%/*}" "${TCMALLOC_HEAP_PROFILE%/*/*}"`)
	lines := strings.Split(got.output, "\n")
	if len(lines) != 5 || !strings.Contains(lines[0], "tcm_launch") {
		t.Fatalf("%+v", got)
	}
	folder := filepath.Dir(lines[1])
	if name := filepath.Base(folder); len(name) != 32 || strings.Contains(lines[0], name) {
		t.Errorf("%q is in %q", name, lines[0])
	}
	modes := "700 700"
	if os.Geteuid() == 0 {
		modes = "1733 711"
	}
	if got := lines[2] + " " + lines[3]; got != modes {
		t.Errorf("the folders have the modes %s, want %s", got, modes)
	}
}

// TestHostileFiles has a program that leaves in its folder what must not be read, or shown as it is.
func TestHostileFiles(t *testing.T) {
	library, err := project.DebugLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	tcm := install(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("process 1 /x\ntcmalloc: the secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SECRET", secret)
	got := tcm.run(t, "debug", "--library", library, "--", "sh", "-c", `at=$TCMALLOC_CRASH_REPORT
mkfifo $at.1; ln -s $SECRET $at.2; mkdir $at.3; { ln $SECRET $at.4; } 2>/dev/null; ln -s /dev/zero $at.5
printf 'process 6 /bin/x\ntcmalloc: \033]0;title\007 shown \302\233 \342\200\256\n' > $at.6
printf '{"pid":1,"allocated_bytes":1,"front_end_reason":"\\u001b[2J"}\n' >> $TCMALLOC_EXIT_REPORT`)
	if !strings.Contains(got.errors, "?]0;title? shown ? ?\n") {
		t.Errorf("the report is not shown: %q", got.errors)
	}
	if strings.ContainsAny(got.errors, "\x1b\a\u009b\u202e") || strings.Contains(got.errors, "secret") {
		t.Errorf("%q", got.errors)
	}
}
