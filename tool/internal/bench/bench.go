// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"tcm/internal/launch"
	"tcm/internal/text"
)

// residentInterval is how often the resident size of a workload is read. That takes a few
// microseconds of a CPU.
const residentInterval = 5 * time.Millisecond

// MostOutput is how much is kept of the end of a program's output, whose last line is what counts.
const MostOutput = 64 << 10

// Plan is what to run, and how.
type Plan struct {
	Workloads  []Workload
	Allocators []Allocator
	Settings   Settings
	Build      Build
	Launcher   string
	// Progress gets one line for each workload.
	Progress io.Writer
	// Live says that Progress is a terminal, on which a line may be rewritten.
	Live bool
	// Checkpoint is called after each workload with what is known so far.
	Checkpoint func(*Results) error
}

// CheckPrograms leaves optional workloads out whose programs are not installed, and returns their
// names, each with the package that has the program; any other missing program is an error.
func (p *Plan) CheckPrograms() ([]string, error) {
	var present []Workload
	var absent, unbuilt []string
	for _, workload := range p.Workloads {
		missing := p.Build.Missing(workload)
		switch {
		case missing == "":
			present = append(present, workload)
		case workload.Optional:
			absent = append(absent, leftOut(workload))
		case !slices.Contains(unbuilt, missing):
			unbuilt = append(unbuilt, missing)
		}
	}
	if len(unbuilt) > 0 {
		return nil, fmt.Errorf("not there: %s; build the release preset", strings.Join(unbuilt, ", "))
	}
	if len(present) == 0 {
		return nil, fmt.Errorf("none of the chosen workloads has its program here: %s", strings.Join(absent, ", "))
	}
	p.Workloads = present
	return absent, nil
}

// leftOut says which workload is left out and what would bring it back.
func leftOut(workload Workload) string {
	if workload.Package == "" {
		return workload.Name
	}
	return fmt.Sprintf("%s (package %s)", workload.Name, workload.Package)
}

// Run runs the plan. When the context is done it returns what it has, marked as incomplete,
// together with the context's error.
func (p *Plan) Run(ctx context.Context, quiet Quiet) (*Results, error) {
	results := &Results{
		Started:    time.Now().UTC().Truncate(time.Second),
		Machine:    ThisMachine(),
		QuietFirst: quiet,
		Settings:   p.Settings,
		Variables:  AllocatorVariables(os.Environ()),
		Allocators: p.Allocators,
	}
	begin := time.Now()
	progress := newProgress(p, begin)
	for _, workload := range p.Workloads {
		result, err := p.runWorkload(ctx, workload, progress)
		if err == nil {
			results.Workloads = append(results.Workloads, result)
		}
		results.Seconds = time.Since(begin).Seconds()
		results.Complete = len(results.Workloads) == len(p.Workloads)
		results.Evaluate()
		if err != nil {
			return results, err
		}
		progress.workloadDone(&results.Workloads[len(results.Workloads)-1])
		if err := p.Checkpoint(results); err != nil {
			return results, err
		}
	}
	return results, nil
}

// runWorkload runs every allocator once per round, each round beginning with another one, so that
// neither drift of the machine nor a neighbour's leftovers favour anyone.
func (p *Plan) runWorkload(ctx context.Context, workload Workload, progress *progress) (WorkloadResult, error) {
	result := WorkloadResult{Workload: workload, Cells: make([]Cell, len(p.Allocators))}
	for i, allocator := range p.Allocators {
		result.Cells[i].Allocator = allocator.Name
	}
	failed := make([]bool, len(p.Allocators))
	for round := 0; round < p.Settings.Runs; round++ {
		for turn := range p.Allocators {
			index := (round + turn) % len(p.Allocators)
			progress.step(workload.Name, round, p.Allocators[index].Name)
			if failed[index] {
				continue
			}
			sample, err := p.measure(ctx, workload, p.Allocators[index])
			if err != nil {
				return result, err
			}
			sample.Round = round
			failed[index] = sample.Failure != ""
			result.Cells[index].Samples = append(result.Cells[index].Samples, sample)
		}
	}
	return result, nil
}

// measure runs a workload until the machine was quiet meanwhile, but not more often than the
// settings allow, and returns the least disturbed run.
func (p *Plan) measure(ctx context.Context, workload Workload, allocator Allocator) (Sample, error) {
	var kept Sample
	for attempt := 0; attempt <= p.Settings.Repeats; attempt++ {
		sample, err := p.runOnce(ctx, workload, allocator)
		if err != nil {
			return Sample{}, err
		}
		if sample.Failure != "" {
			return sample, nil
		}
		if attempt == 0 || sample.Noise.Worst() < kept.Noise.Worst() {
			kept = sample
		}
		kept.Repeats = attempt
		if kept.Noise.IsQuiet() {
			break
		}
	}
	return kept, nil
}

// runOnce returns an error only where measuring is impossible or was called off; a workload that
// fails is a result.
func (p *Plan) runOnce(ctx context.Context, workload Workload, allocator Allocator) (Sample, error) {
	before, err := ReadBusy()
	if err != nil {
		return Sample{}, err
	}
	output, complaints := text.Tail{Size: MostOutput}, text.Tail{Size: MostOutput}
	var input io.Reader
	if workload.Input != "" {
		file, err := os.Open(workload.Input)
		if err != nil {
			return Sample{}, err
		}
		defer file.Close()
		input = file
	}
	result, err := launch.Run(ctx, p.Launcher, launch.Command{
		Program:     p.Build.Words(workload),
		Variables:   allocator.Environment(),
		Input:       input,
		Output:      &output,
		Errors:      &complaints,
		Timeout:     p.timeout(workload),
		SampleEvery: residentInterval,
	})
	if errors.Is(err, launch.ErrTimeout) {
		return Sample{Failure: fmt.Sprintf("timeout after %s", text.Seconds(p.timeout(workload).Seconds()))}, nil
	}
	if err != nil {
		return Sample{}, err
	}
	after, err := ReadBusy()
	if err != nil {
		return Sample{}, err
	}
	if failure := result.Failure(); failure != "" {
		if line := complaints.LastLine(); line != "" {
			failure += ": " + line
		}
		return Sample{Failure: failure}, nil
	}
	sample := newSample(result)
	if workload.Program != "" {
		if err := sample.add(output.LastLine()); err != nil {
			return Sample{Failure: err.Error()}, nil
		}
	}
	sample.Noise = NoiseBetween(before, after, result.User()+result.System(), result.Wall())
	return sample, nil
}

func (p *Plan) timeout(workload Workload) time.Duration {
	seconds := p.Settings.TimeoutSeconds
	if workload.TimeoutSeconds > 0 {
		seconds = workload.TimeoutSeconds
	}
	return time.Duration(seconds * float64(time.Second))
}

// Environment returns the variables that put a program under the allocator alone, whatever tcm's own environment preloads.
func (a Allocator) Environment() map[string]string {
	variables := map[string]string{}
	for name, value := range a.Variables {
		variables[name] = value
	}
	variables["LD_PRELOAD"] = strings.Join(a.Libraries, ":")
	return variables
}

// newSample has what the launcher measured.
func newSample(result launch.Result) Sample {
	return Sample{
		Seconds:         result.Wall().Seconds(),
		CPUSeconds:      (result.User() + result.System()).Seconds(),
		WallSeconds:     result.Wall().Seconds(),
		PeakResident:    float64(result.MaxRSS()),
		AverageResident: float64(result.AverageRSS()),
		Faults:          float64(result.MinorFaults + result.MajorFaults),
	}
}

// add adds what a workload says of itself: a JSON object, the last line of its output, of which
// seconds, cpu_seconds and ops have a meaning here.
func (s *Sample) add(line string) error {
	var said map[string]any
	if err := json.Unmarshal([]byte(line), &said); err != nil {
		return fmt.Errorf("no JSON object in the last line of output: %q", line)
	}
	for name, value := range said {
		number, isNumber := value.(float64)
		switch {
		case !isNumber:
			continue
		case name == "seconds":
			s.Seconds = number
		case name == "cpu_seconds":
			s.CPUSeconds = number
		case name == "ops":
			s.Ops = number
		default:
			if s.Extra == nil {
				s.Extra = map[string]float64{}
			}
			s.Extra[name] = number
		}
	}
	return nil
}
