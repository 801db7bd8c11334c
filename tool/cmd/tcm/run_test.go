// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tcm/internal/project"
	"tcm/internal/report"
)

// testTimeout ends what hangs.
const testTimeout = time.Minute

// forwardingMalloc is an allocator that leaves the work to libc, and no figures.
const forwardingMalloc = `
void* __libc_malloc(unsigned long);
void __libc_free(void*);
void* malloc(unsigned long size) { return __libc_malloc(size); }
void free(void* block) { __libc_free(block); }
`

// installed is a folder with tcm, its launcher, and a library that does next to nothing.
type installed struct {
	tcm, library, temporary string
}

func compile(name string, words ...string) error {
	if output, err := exec.Command(name, words...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, words, err, output)
	}
	return nil
}

func build(t *testing.T, name string, words ...string) {
	t.Helper()
	if err := compile(name, words...); err != nil {
		t.Fatal(err)
	}
}

// builtTree is the folder that every installed one is a copy of, made by the first test that wants one.
var builtTree struct {
	once   sync.Once
	folder string
	err    error
}

func TestMain(m *testing.M) {
	status := m.Run()
	_ = os.RemoveAll(builtTree.folder)
	os.Exit(status)
}

// optionsOfThisBuild returns the options that this test was built with, so that no package is compiled in two ways.
func optionsOfThisBuild() []string {
	options := []string{"-buildvcs=false"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return options
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "-trimpath", "-buildmode", "-tags":
			options = append(options, setting.Key+"="+setting.Value)
		}
	}
	return options
}

func buildTree() (string, error) {
	folder, err := os.MkdirTemp("", "tcm_test")
	if err != nil {
		return "", err
	}
	for _, name := range []string{"bin", "lib", "tmp"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			return folder, err
		}
	}
	source := filepath.Join(folder, "forward.c")
	if err := os.WriteFile(source, []byte(forwardingMalloc), 0o644); err != nil {
		return folder, err
	}
	tree := installedIn(folder)
	goBuild := append([]string{"build", "-o", tree.tcm}, optionsOfThisBuild()...)
	return folder, errors.Join(
		compile("go", append(goBuild, ".")...),
		compile("cc", "-shared", "-fPIC", "-o", tree.library, source),
		compile("cc", "-O1", "-static", "-o", filepath.Join(folder, "bin", "tcm_launch"), "../../launch/launch.c"))
}

func installedIn(folder string) installed {
	return installed{
		tcm:       filepath.Join(folder, "bin", "tcm"),
		library:   filepath.Join(folder, "lib", "libtcmalloc_minimal.so.4"),
		temporary: filepath.Join(folder, "tmp"),
	}
}

func install(t *testing.T) installed {
	t.Helper()
	builtTree.once.Do(func() { builtTree.folder, builtTree.err = buildTree() })
	if builtTree.err != nil {
		t.Fatal(builtTree.err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(builtTree.folder)); err != nil {
		t.Fatal(err)
	}
	return installedIn(folder)
}

// ended is how a command ended and what it said.
type ended struct {
	status         syscall.WaitStatus
	output, errors string
}

func (i installed) command(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, i.tcm, words...)
	command.Env = append(os.Environ(), "TMPDIR="+i.temporary)
	command.Stdin = strings.NewReader("from input\n")
	return command
}

func (i installed) run(t *testing.T, words ...string) ended {
	t.Helper()
	got, left := i.finish(t, words...)
	if len(left) > 0 {
		t.Errorf("%q leaves %v behind", words, left)
	}
	return got
}

// finish returns the names of what is left in the folder for temporary files, too.
func (i installed) finish(t *testing.T, words ...string) (got ended, left []string) {
	t.Helper()
	command := i.command(t, words...)
	var output, complaints bytes.Buffer
	command.Stdout, command.Stderr = &output, &complaints
	err := command.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(i.temporary)
	if err != nil {
		t.Error(err)
	}
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	return ended{command.ProcessState.Sys().(syscall.WaitStatus), output.String(), complaints.String()}, left
}

// runKept has tcm write to /dev/full, and returns the copy that it keeps instead.
func (i installed) runKept(t *testing.T, words ...string) (ended, []byte) {
	t.Helper()
	got, left := i.finish(t, words...)
	if len(left) != 1 {
		t.Fatalf("%q keeps %v: %+v", words, left, got)
	}
	path := filepath.Join(i.temporary, left[0])
	if !strings.HasSuffix(got.errors, "tcm: cannot write /dev/full: no space left on device; it is in "+path+" instead\n") {
		t.Errorf("%q keeps %s: %+v", words, path, got)
	}
	content, err := os.ReadFile(path)
	if err := errors.Join(err, os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	return got, content
}

// runWithoutRoom has processes that cannot write files.
func (i installed) runWithoutRoom(t *testing.T, words ...string) ended {
	t.Helper()
	words = append([]string{"-c", `ulimit -f 0; exec "$@"`, "sh", i.tcm}, words...)
	i.tcm = "sh"
	return i.run(t, words...)
}

// figures is a program's stand-in for what the allocator writes at exit.
const figures = `echo '{"pid":1,"allocations":1234567,"allocated_bytes":2097152,"peak_mapped_bytes":4194304}' >> "$TCMALLOC_EXIT_REPORT"`

func TestRun(t *testing.T) {
	tcm := install(t)

	t.Run("streams and status", func(t *testing.T) {
		got := tcm.run(t, "run", "--", "sh", "-c", `cat; echo err >&2; exit 5`)
		if got.status.ExitStatus() != 5 || got.output != "from input\n" || !strings.HasPrefix(got.errors, "err\ntcm: sh: ") {
			t.Errorf("%+v", got)
		}
		if !strings.Contains(got.errors, "no figures from the allocator: "+tcm.library+" is an unknown allocator") ||
			!strings.Contains(got.errors, tcm.tcm+" run --json") {
			t.Errorf("an empty file is not told: %s", got.errors)
		}
	})
	t.Run("figures", func(t *testing.T) {
		got := tcm.run(t, "run", "sh", "-c", figures+"; "+figures)
		if !strings.Contains(got.errors, "2 processes: 4.00 MiB allocated in about 2,500,000 blocks; the largest one: 0 B in use at exit, 4.00 MiB mapped at peak") {
			t.Errorf("%s", got.errors)
		}
	})
	t.Run("JSON", func(t *testing.T) {
		got := tcm.run(t, "run", "--json", "sh", "-c", figures)
		var made report.Report
		if err := json.Unmarshal([]byte(got.errors), &made); err != nil {
			t.Fatalf("%v: %s", err, got.errors)
		}
		if made.Allocator == nil || made.Allocator.Allocations != 1234567 || made.PeakResident <= 0 || made.Program != "sh" {
			t.Errorf("%+v", made)
		}
	})
	t.Run("quiet", func(t *testing.T) {
		got := tcm.run(t, "run", "-q", "sh", "-c", "exit 4")
		if got.errors != "" || got.status.ExitStatus() != 4 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("no full library", func(t *testing.T) {
		got := tcm.run(t, "--root", t.TempDir(), "run", "--html", "/dev/null", "true")
		if got.status.ExitStatus() != exitUsage || strings.Count(got.errors, "\n") != 1 || !strings.Contains(got.errors, "libtcmalloc.so.4") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("heap profile", func(t *testing.T) {
		profile, page := filepath.Join(t.TempDir(), "heap.pb.gz"), filepath.Join(t.TempDir(), "page.html")
		script := "cp " + shopFile(t, "shop.pb.gz", 1) + ` "$TCMALLOC_HEAP_PROFILE"; exit 3`
		got := tcm.run(t, "run", "--library", tcm.library, "--heap-profile", profile, "sh", "-c", script)
		if got.status.ExitStatus() != 3 || !strings.Contains(got.errors, "tcm: heap profile: "+profile) {
			t.Errorf("%+v", got)
		}
		// A file that is there from before does not pass for a new one.
		got = tcm.run(t, "run", "--library", tcm.library, "--heap-profile", profile, "sh", "-c", "true")
		if got.status.ExitStatus() != 0 || !strings.Contains(got.errors, "sh wrote no heap profile") {
			t.Errorf("%+v", got)
		}
		// Each process has a file of its own, and all of them are added up.
		both := strings.ReplaceAll(script, "; exit", `; cp "$TCMALLOC_HEAP_PROFILE" "$TCMALLOC_HEAP_PROFILE.pb.gz"; exit`)
		for _, name := range []string{"both.pb.gz", "both.heap"} {
			added := filepath.Join(t.TempDir(), name)
			got = tcm.run(t, "run", "-q", "--library", tcm.library, "--heap-profile", added, "sh", "-c", both)
			twice := tcm.run(t, "heap", added)
			once := tcm.run(t, "heap", profile)
			if got.errors != "" || !strings.HasPrefix(once.output, "inuse_space: 7.50 MiB") || !strings.HasPrefix(twice.output, "inuse_space: 15.0 MiB") {
				t.Errorf("%+v, %q, %q", got, once.output, twice.output)
			}
		}
		got, kept := tcm.runKept(t, "run", "--library", tcm.library, "--heap-profile", "/dev/full", "sh", "-c", strings.ReplaceAll(script, "exit 3", "exit 0"))
		whole, err := os.ReadFile(profile)
		if got.status.ExitStatus() != exitUsage || !strings.HasPrefix(got.errors, "tcm: sh: ") || err != nil || !bytes.Equal(kept, whole) {
			t.Errorf("%+v, %v", got, err)
		}
		// What a process that was killed while it wrote has left is no profile, and what is damaged is left out.
		broken := strings.ReplaceAll(script, "; exit", `; echo x > "$TCMALLOC_HEAP_PROFILE.tmp.1"; echo x > "$TCMALLOC_HEAP_PROFILE.2"; exit`)
		got = tcm.run(t, "run", "-q", "--library", tcm.library, "--heap-profile", profile, "sh", "-c", broken)
		if got.status.ExitStatus() != 3 || strings.Count(got.errors, "\n") != 1 || !strings.Contains(got.errors, ".2: not a profile") {
			t.Errorf("%+v", got)
		}
		for _, flags := range [][]string{{"-q"}, {"--json"}, {}} {
			words := append([]string{"run", "--library", tcm.library, "--html", page}, flags...)
			got = tcm.run(t, append(words, "sh", "-c", script)...)
			content, err := os.ReadFile(page)
			if got.status.ExitStatus() != 3 || err != nil || !strings.Contains(string(content), "sh at exit") {
				t.Errorf("%q: %+v, %v", flags, got, err)
			}
			if len(flags) == 0 != strings.Contains(got.errors, "tcm: flame graph: "+page) {
				t.Errorf("%q: %s", flags, got.errors)
			}
			if err := os.Remove(page); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("no room", func(t *testing.T) {
		for script, status := range map[string]int{"true": exitUsage, "exit 3": 3} {
			got := tcm.runWithoutRoom(t, "run", "-q", "--library", tcm.library, "--html", "/dev/null", "sh", "-c", script)
			if got.status.ExitStatus() != status || !strings.Contains(got.errors, "("+tcm.temporary+": file too large; TMPDIR can name another folder)\n") {
				t.Errorf("%+v", got)
			}
		}
	})
	t.Run("several types", func(t *testing.T) {
		t.Setenv("TCMALLOC_PROFILE_TYPE", "peak,heap")
		for _, flag := range []string{"--heap-profile", "--html"} {
			got := tcm.run(t, "run", "--library", tcm.library, flag, "/dev/null", "cat")
			if got.status.ExitStatus() != exitUsage || got.output != "" || !strings.HasPrefix(got.errors, "tcm: TCMALLOC_PROFILE_TYPE=peak,heap: ") {
				t.Errorf("%+v", got)
			}
		}
		if got := tcm.run(t, "run", "-q", "cat"); got.status.ExitStatus() != 0 || got.output == "" {
			t.Errorf("without a profile: %+v", got)
		}
	})
	t.Run("library without profiles", func(t *testing.T) {
		library, err := project.Library("", "")
		if err != nil {
			t.Skip(err)
		}
		got := tcm.run(t, "run", "-q", "--library", library, "--html", "/dev/null", "true")
		if got.status.ExitStatus() != 0 || !strings.Contains(got.errors, "is a library without profiles") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("preload", func(t *testing.T) {
		t.Setenv("LD_PRELOAD", "libm.so.6")
		got := tcm.run(t, "run", "-q", "sh", "-c", `echo "$LD_PRELOAD"`)
		if got.output != tcm.library+":libm.so.6\n" {
			t.Errorf("%q, want %q first", got.output, tcm.library)
		}
	})
	t.Run("death by signal", func(t *testing.T) {
		got := tcm.run(t, "run", "sh", "-c", "kill -TERM $$")
		if !got.status.Signaled() || got.status.Signal() != syscall.SIGTERM || !strings.Contains(got.errors, "ended by signal 15") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("not found", func(t *testing.T) {
		if got := tcm.run(t, "run", "nonesuch-program"); got.status.ExitStatus() != 127 || !strings.Contains(got.errors, "nonesuch-program") {
			t.Errorf("%+v", got)
		}
		if got := tcm.run(t, "run", "/etc/passwd"); got.status.ExitStatus() != 126 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("cannot execute", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(path, []byte("no program"), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := tcm.run(t, "run", path); got.status.ExitStatus() != 126 && got.status.ExitStatus() != 127 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("bad use", func(t *testing.T) {
		for _, words := range [][]string{{"run"}, {"run", "--nonsense", "ls"}, {"run", "--library", "/nonexistent.so", "ls"}, {"nonsense"}} {
			if got := tcm.run(t, words...); got.status.ExitStatus() != exitUsage || got.errors == "" {
				t.Errorf("%q: %+v", words, got)
			}
		}
	})
	t.Run("no allocator", func(t *testing.T) {
		got := tcm.run(t, "run", "--library", tcm.tcm, "true")
		if got.status.ExitStatus() != exitUsage || !strings.HasPrefix(got.errors, "tcm: cannot preload "+tcm.tcm) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a small address space", func(t *testing.T) {
		output, err := exec.Command("sh", "-c", "ulimit -v 500000; exec "+tcm.tcm+" run true").CombinedOutput()
		if err == nil || strings.Count(string(output), "\n") != 1 || !strings.HasPrefix(string(output), "tcm: the address space") {
			t.Errorf("%v: %s", err, output)
		}
	})
	t.Run("few descriptors", func(t *testing.T) {
		const shown = "inuse_space: 7.50 MiB"
		for limit, want := range map[string]string{"-n 5": "tcm: fewer than 3 more files can be open", "-n 6": shown, "-S -n 5": shown} {
			script := "ulimit " + limit + "; exec " + tcm.tcm + " heap " + shopFile(t, "shop.pb.gz", 1)
			output, err := exec.Command("sh", "-c", script).CombinedOutput()
			isRefused := want != shown
			if isRefused != (err != nil) || isRefused != (strings.Count(string(output), "\n") == 1) || !strings.HasPrefix(string(output), want) {
				t.Errorf("ulimit %s: %v: %s", limit, err, output)
			}
		}
	})
	t.Run("signals reach the program", func(t *testing.T) {
		command := tcm.command(t, "run", "-q", "sh", "-c", `trap 'echo got it; exit 9' USR2; echo ready; while :; do sleep 0.01; done`)
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 64)
		if count, err := output.Read(said); err != nil || string(said[:count]) != "ready\n" {
			t.Fatalf("%q, %v", said[:count], err)
		}
		if err := command.Process.Signal(syscall.SIGUSR2); err != nil {
			t.Fatal(err)
		}
		if count, err := output.Read(said); err != nil || string(said[:count]) != "got it\n" {
			t.Errorf("%q, %v", said[:count], err)
		}
		err = command.Wait()
		if command.ProcessState.ExitCode() != 9 {
			t.Errorf("%v", err)
		}
	})
	t.Run("ignored signals stay ignored", func(t *testing.T) {
		for _, name := range []string{"HUP", "INT"} {
			script := fmt.Sprintf(`trap '' %s; %s run -q sh -c 'kill -%s $$; echo alive'`, name, tcm.tcm, name)
			output, err := exec.Command("sh", "-c", script).CombinedOutput()
			if err != nil || string(output) != "alive\n" {
				t.Errorf("%s: %q, %v", name, output, err)
			}
		}
	})
	t.Run("signals end the report", func(t *testing.T) {
		for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			tcm.endReport(t, "exit 0", true, sent, uint32(sent))
			tcm.endReport(t, "exit 0", false, sent, uint32(sent))
		}
		tcm.endReport(t, "exit 3", true, syscall.SIGINT, 3<<8)
	})
	t.Run("a signal that ends the program leaves its report", func(t *testing.T) {
		command := tcm.command(t, "run", "sh", "-c", "kill -INT 0")
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		said, _ := command.CombinedOutput()
		if got := command.ProcessState.Sys().(syscall.WaitStatus); got.Signal() != syscall.SIGINT || !strings.Contains(string(said), "ended by signal 2") {
			t.Errorf("%#x: %s", uint32(got), said)
		}
	})
}

// endReport sends a signal to a process or its group while the report of a script waits for somebody to read its file.
func (i installed) endReport(t *testing.T, script string, toGroup bool, sent syscall.Signal, want uint32) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	script = "cp " + shopFile(t, "shop.pb.gz", 1) + ` "$TCMALLOC_HEAP_PROFILE"; ` + script
	command := i.command(t, "run", "--library", i.library, "--html", fifo, "sh", "-c", script)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.HasPrefix(line, "tcm: sh: ") {
		t.Errorf("%q, %v", line, err)
	}
	to := command.Process.Pid
	if toGroup {
		to = -to
	}
	if err := syscall.Kill(to, sent); err != nil {
		t.Error(err)
	}
	_ = command.Wait()
	if got := uint32(command.ProcessState.Sys().(syscall.WaitStatus)); got != want {
		t.Errorf("%v: status %#x, want %#x", sent, got, want)
	}
	if left, err := os.ReadDir(i.temporary); err != nil || len(left) > 0 {
		t.Errorf("%v leaves %v, %v", sent, left, err)
	}
}

// TestWordsThatAreNone names what was expected, in words of the tool's own.
func TestWordsThatAreNone(t *testing.T) {
	for _, test := range []struct {
		words string
		want  string
	}{
		{"cpu --frequency abc true", `--frequency "abc": expected a whole number; see tcm cpu --help`},
		{"cpu --top= true", `--top "": expected a whole number; see tcm cpu --help`},
		{"heap --top 9999999999999999999999 x", `--top "9999999999999999999999": the number is too large or too small; see tcm heap --help`},
		{"leaks --top 1.5 true", `--top "1.5": expected a whole number; see tcm leaks --help`},
		{"bench --runs x true", `--runs "x": expected a whole number; see tcm bench --help`},
		{"bench --timeout x true", `--timeout "x": neither a number of seconds nor a time such as 90s or 2m; see tcm bench --help`},
		{"demo --rounds -", `--rounds "-": expected a whole number; see tcm demo --help`},
		{"debug --check-interval -1 true", `--check-interval "-1": expected a whole number that is not negative; see tcm debug --help`},
		{"run --quiet=maybe true", `--quiet "maybe": expected true or false; see tcm run --help`},
		{"run --quiet --json true", "--json prints the report, and --quiet leaves it out: choose one of them"},
		{"debug --json true", "--json needs -o FILE: standard error has what the program and the allocator say as well"},
		{"harden --json true", "--json needs -o FILE: standard error has what the program and the allocator say as well"},
		{"heap --json --folded x", "--json and --folded are two forms of what is printed: choose one of them"},
		{"diff --folded --json x y", "--json and --folded are two forms of what is printed: choose one of them"},
		{"run --html=", `--html "": expected a name to write to; see tcm run --help`},
		{"run --heap-profile=", `--heap-profile "": expected a name to write to; see tcm run --help`},
		{"cpu --svg=", `--svg "": expected a name to write to; see tcm cpu --help`},
		{"cpu --output=", `--output "": expected a name to write to; see tcm cpu --help`},
		{"debug --output=", `--output "": expected a name to write to; see tcm debug --help`},
		{"harden --output=", `--output "": expected a name to write to; see tcm harden --help`},
		{"heap --html= x", `--html "": expected a name to write to; see tcm heap --help`},
		{"diff --svg= x y", `--svg "": expected a name to write to; see tcm diff --help`},
		{"bench --json= --runs 0", `--json "": expected a name to write to; see tcm bench --help`},
		{"bench --out= --runs 0", `--out "": expected a name to write to; see tcm bench --help`},
		{"demo --out= x", `--out "": expected a name to write to; see tcm demo --help`},
		{"symbolize a b", `one file is copied at a time, and "b" is another; usage: tcm symbolize [flags] [FILE]`},
		{"doctor x", `tcm doctor takes no arguments, and "x" is one; see tcm doctor --help`},
		{"demo x", `tcm demo takes no arguments, and "x" is one; see tcm demo --help`},
		{"version x y", `tcm version takes no arguments, and "x" is one; see tcm version --help`},
		{"help nosuch", `unknown command "nosuch" for "tcm"`},
		{"help run nosuch", `unknown command "nosuch" for "tcm run"`},
	} {
		output, complaints, err := called(strings.Fields(test.words)...)
		if err == nil || err.Error() != test.want || output != "" || complaints != "" {
			t.Errorf("tcm %s: %q, %q, %v", test.words, output, complaints, err)
		}
	}
}

func TestHelp(t *testing.T) {
	for words, want := range map[string]string{"help": "Available Commands:", "help run": "tcm run [flags]", "help help": "tcm help [command]"} {
		output, complaints, err := called(strings.Fields(words)...)
		if err != nil || complaints != "" || !strings.Contains(output, want) {
			t.Errorf("tcm %s: %q, %q, %v", words, output, complaints, err)
		}
	}
}

func TestVersion(t *testing.T) {
	file, err := os.ReadFile("../../../VERSION")
	if err != nil || strings.TrimSpace(string(file)) != version {
		t.Errorf("the project has version %q (%v), tcm %q", file, err, version)
	}
	var output bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"version", "--json"})
	root.SetOut(&output)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	var said map[string]string
	if err := json.Unmarshal(output.Bytes(), &said); err != nil || said["version"] != version {
		t.Errorf("%s, %v", output.String(), err)
	}
}
