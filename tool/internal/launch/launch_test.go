// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testTimeout ends what hangs; nothing here takes a second.
const testTimeout = 30 * time.Second

func buildLauncher(t *testing.T) string {
	t.Helper()
	target := filepath.Join(t.TempDir(), programName)
	source, err := filepath.Abs("../../launch/launch.c")
	if err != nil {
		t.Fatal(err)
	}
	if err := Compile(target, "cc", "-std=c17", "-O2", "-static", "-Wall", "-Wextra", "-Werror", source); err != nil {
		t.Fatal(err)
	}
	return target
}

func TestParse(t *testing.T) {
	result, err := Parse([]byte(`{"wall_ns":5,"user_us":6,"system_us":7,"max_rss_kib":8,"average_rss_kib":4,"minor_faults":9,"major_faults":1,"exit":2,"signal":0,"start_errno":0,"pid":12}` + "\n"))
	want := Result{WallNs: 5, UserUs: 6, SystemUs: 7, MaxRSSKiB: 8, AverageRSSKiB: 4, MinorFaults: 9, MajorFaults: 1, Exit: 2, Pid: 12}
	if err != nil || result != want {
		t.Errorf("%+v, %v", result, err)
	}
	for _, line := range []string{"", "{", "{}", "7"} {
		if _, err := Parse([]byte(line)); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

func TestFailure(t *testing.T) {
	for want, result := range map[string]Result{
		"":                                       {},
		"exit status 3":                          {Exit: 3},
		"crash: signal 11 (segmentation fault)":  {Exit: -1, Signal: 11},
		"not started: no such file or directory": {Exit: 127, StartErrno: 2},
	} {
		if got := result.Failure(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRun(t *testing.T) {
	launcher := buildLauncher(t)
	run := func(script string, variables map[string]string) (Result, string) {
		t.Helper()
		var output bytes.Buffer
		result, err := Run(context.Background(), launcher, Command{
			Program: []string{"sh", "-c", script}, Variables: variables, Input: strings.NewReader("in\n"),
			Output: &output, Timeout: testTimeout,
		})
		if err != nil {
			t.Fatal(err)
		}
		return result, output.String()
	}
	if result, output := run(`read x; echo "$x $A $B"; exit 7`, map[string]string{"A": "1=2", "B": "two words"}); result.Exit != 7 ||
		result.Signal != 0 || output != "in 1=2 two words\n" || result.WallNs <= 0 || result.MaxRSSKiB <= 0 || result.MinorFaults <= 0 {
		t.Errorf("%+v, %q", result, output)
	}
	if result, _ := run(`kill -SEGV $$`, nil); result.Signal != int(syscall.SIGSEGV) || result.Exit != -1 {
		t.Errorf("%+v", result)
	}
	// The descriptor for the result is not the program's.
	if result, _ := run(`: <&3`, nil); result.Exit == 0 {
		t.Error("the program has descriptor 3")
	}
}

// The tool's own memory must not count as the program's.
func TestPeakResidentIsTheProgramsOwn(t *testing.T) {
	ballast := bytes.Repeat([]byte{1}, 64<<20)
	result, err := Run(context.Background(), buildLauncher(t), Command{Program: []string{"/bin/true"}, Timeout: testTimeout})
	if err != nil || result.MaxRSSKiB > 16<<10 {
		t.Errorf("%d KiB, %v", result.MaxRSSKiB, err)
	}
	if ballast[len(ballast)-1] != 1 {
		t.Error("the ballast is gone")
	}
}

// Half of the time there are some hundred mebibytes more than in the other half.
func TestAverageResident(t *testing.T) {
	launcher := buildLauncher(t)
	average := func(every time.Duration) (average, peak int64) {
		t.Helper()
		result, err := Run(context.Background(), launcher, Command{
			Program: []string{"python3", "-c", "import time; time.sleep(.2); x = b'1' * (100 << 20); time.sleep(.2)"},
			Timeout: testTimeout, SampleEvery: every,
		})
		if err != nil || result.Exit != 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.AverageRSS(), result.MaxRSS()
	}
	if got, peak := average(2 * time.Millisecond); got <= 10<<20 || got >= peak-10<<20 {
		t.Errorf("average %d, peak %d", got, peak)
	}
	if got, _ := average(0); got != 0 {
		t.Errorf("%d without samples", got)
	}
}

func TestProgramThatCannotStart(t *testing.T) {
	result, err := Run(context.Background(), buildLauncher(t), Command{Program: []string{"/nonexistent"}, Timeout: testTimeout})
	if err != nil || result.StartErrno != int(syscall.ENOENT) || result.Exit != 127 {
		t.Errorf("%+v, %v", result, err)
	}
}

// awaitNoWriter fails if something that was started with the other end of a pipe as its output lives on.
func awaitNoWriter(t *testing.T, reader *os.File) {
	t.Helper()
	if err := reader.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	if count, err := reader.Read(make([]byte, 1)); count != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a grandchild lives on: %d, %v", count, err)
	}
}

func TestChildrenEndWithTheirProgram(t *testing.T) {
	launcher := buildLauncher(t)
	for script, want := range map[string]error{"sleep 100 & wait": ErrTimeout, "sleep 100 & exit 0": nil} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		limit := testTimeout
		if want != nil {
			limit = 50 * time.Millisecond
		}
		_, err = Run(context.Background(), launcher, Command{Program: []string{"sh", "-c", script}, Output: writer, Timeout: limit})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", script, err)
		}
		writer.Close()
		awaitNoWriter(t, reader)
	}
}

func TestRunGroup(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	command := exec.CommandContext(context.Background(), "sh", "-c", "sleep 100 & exit 7")
	command.Stdout = writer
	if err := RunGroup(command); command.ProcessState.ExitCode() != 7 {
		t.Errorf("%v", err)
	}
	writer.Close()
	awaitNoWriter(t, reader)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := RunGroup(exec.CommandContext(ctx, "sleep", "100")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := RunGroup(exec.CommandContext(context.Background(), "/nonexistent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	process, err := Start(buildLauncher(t), Command{
		Program: []string{"sh", "-c", `trap 'exit 42' USR1; echo ready; while :; do sleep 0.01; done`},
		Output:  writer, Timeout: testTimeout,
	})
	writer.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(process.command.Process.Pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	result, err := process.Wait(context.Background())
	if err != nil || result.Exit != 42 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestPreload(t *testing.T) {
	t.Setenv("LD_PRELOAD", "")
	if got := Preload([]string{"a", "b"}); got != "a:b" {
		t.Errorf("%q", got)
	}
	t.Setenv("LD_PRELOAD", "c:d")
	if got := Preload([]string{"a"}); got != "a:c:d" {
		t.Errorf("%q", got)
	}
}
