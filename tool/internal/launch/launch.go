// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package launch runs programs through tcm_launch, the small C program that measures what its
// only child costs (tool/launch/launch.c says why the tool cannot do that itself).
package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tcm/internal/project"
)

const programName = "tcm_launch"

// resultDescriptor is the number under which os/exec hands over the first extra file.
const resultDescriptor = "3"

// Result is what a program cost and how it ended.
type Result struct {
	WallNs    int64 `json:"wall_ns"`
	UserUs    int64 `json:"user_us"`
	SystemUs  int64 `json:"system_us"`
	MaxRSSKiB int64 `json:"max_rss_kib"`
	// AverageRSSKiB is 0 where the resident size was not sampled, or the program ended before.
	AverageRSSKiB int64 `json:"average_rss_kib"`
	MinorFaults   int64 `json:"minor_faults"`
	MajorFaults   int64 `json:"major_faults"`
	// Exit is the exit status, or -1 where a signal ended the program.
	Exit   int `json:"exit"`
	Signal int `json:"signal"`
	// StartErrno is not 0 where the program could not be started at all.
	StartErrno int `json:"start_errno"`
	// Pid is the number that the program's process had.
	Pid int `json:"pid"`
}

// Read reads the line that tcm_launch hands to the command that follows the program.
func Read(input io.Reader) (Result, error) {
	line, err := io.ReadAll(input)
	if err != nil {
		return Result{}, err
	}
	return Parse(line)
}

// Parse reads the line that tcm_launch writes.
func Parse(line []byte) (Result, error) {
	result := Result{WallNs: -1}
	if err := json.Unmarshal(line, &result); err != nil {
		return Result{}, fmt.Errorf("%s wrote no result: %w", programName, err)
	}
	if result.WallNs < 0 {
		return Result{}, fmt.Errorf("%s wrote a result without wall_ns: %q", programName, line)
	}
	return result, nil
}

// Wall is the time from start to end.
func (r Result) Wall() time.Duration { return time.Duration(r.WallNs) }

// User is the CPU time in user mode, of the program and the children it waited for.
func (r Result) User() time.Duration { return time.Duration(r.UserUs) * time.Microsecond }

// System is the CPU time in the kernel.
func (r Result) System() time.Duration { return time.Duration(r.SystemUs) * time.Microsecond }

// MaxRSS is the peak resident size in bytes.
func (r Result) MaxRSS() int64 { return r.MaxRSSKiB * 1024 }

// AverageRSS is the average resident size in bytes, or 0 where there is none.
func (r Result) AverageRSS() int64 { return r.AverageRSSKiB * 1024 }

// Failure says in a few words how the program failed, or nothing where it ended with status 0.
func (r Result) Failure() string {
	switch {
	case r.StartErrno != 0:
		return "not started: " + syscall.Errno(r.StartErrno).Error()
	case r.Signal != 0:
		return "crash: " + SignalName(r.Signal)
	case r.Exit != 0:
		return fmt.Sprintf("exit status %d", r.Exit)
	}
	return ""
}

// SignalName returns what the system calls a signal, its number included.
func SignalName(signal int) string {
	return fmt.Sprintf("signal %d (%s)", signal, syscall.Signal(signal))
}

// installedFolder is where an installation has tcm_launch, seen from the folder of tcm.
const installedFolder = "../libexec/tcmalloc"

// Find returns tcm_launch from beside tcm or from where it is installed, else from the checkout,
// where it is compiled when it is missing or older than its source.
func Find(root string) (string, error) {
	if program, err := project.Program(); err == nil {
		for _, folder := range []string{".", installedFolder} {
			path := filepath.Join(filepath.Dir(program), folder, programName)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path, nil
			}
		}
	}
	checkout, err := project.Find(root)
	if err != nil {
		return "", fmt.Errorf("the installation is incomplete: %s is neither beside tcm nor in %s", programName, installedFolder)
	}
	return Build(checkout)
}

// Build compiles tcm_launch in a checkout unless it is newer than its source.
func Build(checkout project.Checkout) (string, error) {
	source := checkout.Path("tool", "launch", "launch.c")
	target := filepath.Join(checkout.PeerBuild(), "bin", programName)
	if IsNewer(target, source) {
		return target, nil
	}
	return target, Compile(target, "cc", "-std=c17", "-O2", "-static", source)
}

// Compile runs a compiler with its output at target. Another tcm may do the same at this moment,
// so the result is moved into place when it is complete.
func Compile(target, compiler string, arguments ...string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	partial := fmt.Sprintf("%s.%d", target, os.Getpid())
	defer os.Remove(partial)
	command := exec.Command(compiler, append(arguments, "-o", partial)...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, output)
	}
	return os.Rename(partial, target)
}

// IsNewer says whether target exists and is newer than every source.
func IsNewer(target string, sources ...string) bool {
	info, err := os.Stat(target)
	if err != nil {
		return false
	}
	for _, source := range sources {
		made, err := os.Stat(source)
		if err != nil || made.ModTime().After(info.ModTime()) {
			return false
		}
	}
	return true
}

// Words returns the command line of tcm_launch that gives the program these variables; options
// are put before them.
func Words(launcher string, options []string, variables map[string]string, program []string) []string {
	words := append([]string{launcher}, options...)
	names := make([]string, 0, len(variables))
	for name := range variables {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		words = append(words, "--set", name+"="+variables[name])
	}
	return append(append(words, "--"), program...)
}

// Preload returns the value of LD_PRELOAD that puts these libraries before what is there already.
func Preload(libraries []string) string {
	if inherited := os.Getenv("LD_PRELOAD"); inherited != "" {
		libraries = append(append([]string{}, libraries...), inherited)
	}
	return strings.Join(libraries, ":")
}

// Command is one measured run.
type Command struct {
	Program   []string
	Variables map[string]string
	Directory string
	Input     io.Reader
	Output    io.Writer
	Errors    io.Writer
	Timeout   time.Duration
	// SampleEvery is how often the resident size is read for its average, in whole milliseconds;
	// 0 is never.
	SampleEvery time.Duration
}

// ErrTimeout says that a program ran longer than it was allowed to and was killed.
var ErrTimeout = errors.New("timeout")

// Process is a program under measurement.
type Process struct {
	command *exec.Cmd
	results *os.File
	ended   chan struct{}
	waitErr error
	timeout time.Duration
}

// Start starts a program in a process group of its own, which ends with it.
func Start(launcher string, run Command) (*Process, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer writer.Close()
	options := []string{"--fd", resultDescriptor}
	if run.SampleEvery > 0 {
		options = append(options, "--sample", strconv.FormatInt(run.SampleEvery.Milliseconds(), 10))
	}
	words := Words(launcher, options, run.Variables, run.Program)
	command := exec.Command(words[0], words[1:]...)
	command.Dir = run.Directory
	command.Stdin = run.Input
	command.Stdout = run.Output
	command.Stderr = run.Errors
	command.ExtraFiles = []*os.File{writer}
	if err := startGroup(command); err != nil {
		reader.Close()
		return nil, err
	}
	process := &Process{command: command, results: reader, ended: make(chan struct{}), timeout: run.Timeout}
	go func() {
		process.waitErr = waitGroup(command)
		close(process.ended)
	}()
	return process, nil
}

// Kill ends the program and all its children.
func (p *Process) Kill() {
	// The group is gone if everything in it has ended.
	_ = killGroup(p.command.Process.Pid)
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait waits for the end of the program, kills it when its time is over or the context is done,
// and returns what it cost.
func (p *Process) Wait(ctx context.Context) (Result, error) {
	defer p.results.Close()
	limit := make(<-chan time.Time)
	if p.timeout > 0 {
		timer := time.NewTimer(p.timeout)
		defer timer.Stop()
		limit = timer.C
	}
	var reason error
	select {
	case <-p.ended:
	case <-limit:
		reason = ErrTimeout
	case <-ctx.Done():
		reason = ctx.Err()
	}
	if reason != nil {
		p.Kill()
		<-p.ended
		return Result{}, reason
	}
	line, err := io.ReadAll(p.results)
	if err != nil {
		return Result{}, err
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return Result{}, fmt.Errorf("%s ended without a result: %w", programName, p.waitErr)
	}
	return Parse(line)
}

// Run starts a program and waits for it.
func Run(ctx context.Context, launcher string, run Command) (Result, error) {
	process, err := Start(launcher, run)
	if err != nil {
		return Result{}, err
	}
	return process.Wait(ctx)
}
