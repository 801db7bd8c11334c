// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package explain finds out why a workload takes longer under one allocator than under another. It
// counts what does not depend on the machine: instructions, misses of simulated caches and TLBs,
// system calls, and the pages that neighbouring blocks lie in.
package explain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"tcm/internal/bench"
	"tcm/internal/launch"
	"tcm/internal/temporary"
	"tcm/internal/text"
)

// memory is what callgrind simulates behind a program: two levels of caches. Their lines may be
// pages; then they are TLBs.
type memory struct {
	// Each is bytes, ways and bytes in a line.
	code, data, last string
}

var (
	caches = memory{code: "32768,8,64", data: "32768,8,64", last: "2097152,16,64"}
	tlbs   = memory{code: "262144,8,4096", data: "262144,4,4096", last: "8388608,8,4096"}
)

// CacheWords and TLBWords say what is simulated.
const (
	CacheWords = "caches of 32 KiB and 2 MiB"
	TLBWords   = "TLBs of 64 and 2048 pages of 4 KiB"
)

// simulatorLimit is how long a program may take under callgrind, which is 50 to 100 times as slow.
const simulatorLimit = 30 * time.Minute

// NeighboursName is the library that counts pages of neighbours, in the folder lib of a build.
const NeighboursName = "libneighbours.so"

// CheckTools returns an error that says what to install where a tool is missing that nothing
// replaces.
func CheckTools(build bench.Build) error {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return errors.New("--explain counts instructions with valgrind, which is not installed: apt-get install valgrind")
	}
	if _, err := os.Stat(neighboursPath(build)); err != nil {
		return fmt.Errorf("not there: %s; build the release preset", neighboursPath(build))
	}
	return nil
}

func neighboursPath(build bench.Build) string {
	return filepath.Join(string(build), "lib", NeighboursName)
}

// LoadShort reads the options that make a run of each program short.
func LoadShort(file string) (map[string][]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var short map[string][]string
	if err := json.Unmarshal(data, &short); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return short, nil
}

// Collector runs a workload under tools.
type Collector struct {
	Build    bench.Build
	Workload bench.Workload
	// Short are options that make a run short.
	Short    []string
	Progress func(string)
}

// Collect fills in all of a side that does not come from runs of the benchmark. Sides are collected
// at the same time, because nothing that is counted depends on the time.
func (c *Collector) Collect(ctx context.Context, sides map[*Side]bench.Allocator) error {
	var tasks []func(context.Context) error
	for side, allocator := range sides {
		paths, err := realPaths(allocator.Libraries)
		if err != nil {
			return err
		}
		side.Libraries = paths
		side.Allocator = allocator.Name
		tasks = append(tasks,
			func(ctx context.Context) (err error) {
				side.Caches, err = c.simulate(ctx, allocator, caches, "caches")
				return err
			},
			func(ctx context.Context) (err error) {
				side.TLBs, err = c.simulate(ctx, allocator, tlbs, "TLBs")
				return err
			},
			func(ctx context.Context) (err error) { side.Neighbours, err = c.neighbours(ctx, allocator); return err },
			func(ctx context.Context) (err error) { side.Calls, err = c.systemCalls(ctx, allocator); return err })
	}
	return inParallel(ctx, tasks, runtime.NumCPU())
}

func realPaths(libraries []string) ([]string, error) {
	var paths []string
	for _, library := range libraries {
		path, err := filepath.EvalSymlinks(library)
		if err != nil {
			return nil, err
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// inParallel runs tasks, so many at a time. The first one that fails calls off the others, and its error is returned.
func inParallel(ctx context.Context, tasks []func(context.Context) error, most int) error {
	ctx, callOff := context.WithCancelCause(ctx)
	defer callOff(nil)
	var group sync.WaitGroup
	room := make(chan struct{}, most)
	for _, task := range tasks {
		group.Add(1)
		go func() {
			defer group.Done()
			room <- struct{}{}
			defer func() { <-room }()
			if ctx.Err() != nil {
				return
			}
			if err := task(ctx); err != nil {
				callOff(err)
			}
		}()
	}
	group.Wait()
	return context.Cause(ctx)
}

func (c *Collector) words() []string { return append(c.Build.Words(c.Workload), c.Short...) }

// simulate runs the workload under callgrind with a memory of this kind.
func (c *Collector) simulate(ctx context.Context, allocator bench.Allocator, behind memory, what string) (*Profile, error) {
	folder, err := temporary.Folder("tcm-explain-", "the profiles of callgrind")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	words := append([]string{
		"valgrind", "-q", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=" + filepath.Join(folder, "profile.%p"),
		"--cache-sim=yes", "--I1=" + behind.code, "--D1=" + behind.data, "--LL=" + behind.last,
	}, c.words()...)
	if err := c.run(ctx, allocator.Name+": callgrind with "+what, words, allocator.Environment()); err != nil {
		return nil, err
	}
	return ReadProfiles(filepath.Join(folder, "profile.*"))
}

// systemCalls counts nothing where there is no strace, or where it may not trace.
func (c *Collector) systemCalls(ctx context.Context, allocator bench.Allocator) (SystemCalls, error) {
	if _, err := exec.LookPath("strace"); err != nil {
		c.Progress(allocator.Name + ": no system calls without strace: apt-get install strace")
		return nil, nil
	}
	table, err := temporary.File("tcm-explain-", "what strace counts")
	if err != nil {
		return nil, err
	}
	defer os.Remove(table.Name())
	defer table.Close()
	words := []string{"strace", "-f", "-c", "-o", table.Name()}
	// strace itself runs without the allocator.
	for name, value := range allocator.Environment() {
		words = append(words, "-E", name+"="+value)
	}
	if err := c.run(ctx, allocator.Name+": strace", append(words, c.words()...), nil); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(table.Name())
	if err != nil {
		return nil, err
	}
	return ParseSystemCalls(data)
}

func (c *Collector) neighbours(ctx context.Context, allocator bench.Allocator) (Neighbours, error) {
	counts, err := temporary.File("tcm-explain-", "what is counted of neighbouring blocks")
	if err != nil {
		return Neighbours{}, err
	}
	defer os.Remove(counts.Name())
	defer counts.Close()
	path, err := filepath.Abs(neighboursPath(c.Build))
	if err != nil {
		return Neighbours{}, err
	}
	variables := allocator.Environment()
	variables["NEIGHBOURS_FILE"] = counts.Name()
	variables["LD_PRELOAD"] = strings.Join(append([]string{path}, allocator.Libraries...), ":")
	if err := c.run(ctx, allocator.Name+": neighbours", c.words(), variables); err != nil {
		return Neighbours{}, err
	}
	lines, err := os.ReadFile(counts.Name())
	if err != nil {
		return Neighbours{}, err
	}
	return ParseNeighbours(lines)
}

// run runs a command, which ends with all its children.
func (c *Collector) run(ctx context.Context, what string, words []string, variables map[string]string) error {
	c.Progress(what)
	ctx, cancel := context.WithTimeout(ctx, simulatorLimit)
	defer cancel()
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Env = os.Environ()
	for name, value := range variables {
		command.Env = append(command.Env, name+"="+value)
	}
	if c.Workload.Input != "" {
		file, err := os.Open(c.Workload.Input)
		if err != nil {
			return err
		}
		defer file.Close()
		command.Stdin = file
	}
	complaints := text.Tail{Size: bench.MostOutput}
	command.Stderr = &complaints
	err := launch.RunGroup(command)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case err != nil:
		return fmt.Errorf("%s: %w: %s", what, err, complaints.LastLine())
	}
	return nil
}
