// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package report turns what the launcher measured and what the allocator wrote at exit into the
// short report at the end of tcm run.
package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"tcm/internal/launch"
	"tcm/internal/text"
)

// Variable names the file to which each process with the allocator appends one line as it exits.
const Variable = "TCMALLOC_EXIT_REPORT"

// Allocator holds the figures of the allocator. What was allocated is summed over the processes that
// wrote figures; what is in use or mapped is that of the process with the highest peak, because
// processes need not have run at the same time.
type Allocator struct {
	Processes      int   `json:"processes"`
	AllocatedBytes int64 `json:"allocated_bytes"`
	Allocations    int64 `json:"allocations"`
	// AllocationsAreEstimated is true in every report: the library counts large blocks and estimates the rest from samples.
	AllocationsAreEstimated bool  `json:"allocations_are_estimated"`
	LiveBytes               int64 `json:"live_bytes"`
	MappedBytes             int64 `json:"mapped_bytes"`
	PeakMappedBytes         int64 `json:"peak_mapped_bytes"`
	// FrontEnd and its reason are those of the process that ended last, which is the program itself
	// unless it left processes behind.
	FrontEnd       string `json:"front_end,omitempty"`
	FrontEndReason string `json:"front_end_reason,omitempty"`
}

// line is what one process writes.
type line struct {
	Pid             *int64 `json:"pid"`
	AllocatedBytes  int64  `json:"allocated_bytes"`
	Allocations     int64  `json:"allocations"`
	LiveBytes       int64  `json:"live_bytes"`
	MappedBytes     int64  `json:"mapped_bytes"`
	PeakMappedBytes int64  `json:"peak_mapped_bytes"`
	FrontEnd        string `json:"front_end"`
	FrontEndReason  string `json:"front_end_reason"`
}

// FiguresName is the file with these lines in the private folder of a run.
const FiguresName = "figures"

// maxLine is far above the length of any line that the library writes.
const maxLine = 64 << 10

// ParseAllocator combines the lines of the processes. A line that is cut off or is something else is
// left out: a process may have been killed while it wrote.
func ParseAllocator(input io.Reader) (Allocator, error) {
	var sum Allocator
	lines := bufio.NewReaderSize(input, maxLine)
	inLongLine := false
	for {
		content, isCut, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		if !isCut && !inLongLine {
			sum.add(content)
		}
		inLongLine = isCut
	}
}

// add adds what one process wrote, if it is that.
func (a *Allocator) add(content []byte) {
	var one line
	if json.Unmarshal(bytes.TrimSpace(content), &one) != nil || one.Pid == nil {
		return
	}
	if a.Processes == 0 || one.PeakMappedBytes > a.PeakMappedBytes {
		a.LiveBytes, a.MappedBytes, a.PeakMappedBytes = one.LiveBytes, one.MappedBytes, one.PeakMappedBytes
	}
	a.Processes++
	a.AllocatedBytes += one.AllocatedBytes
	a.Allocations += one.Allocations
	a.FrontEnd, a.FrontEndReason = one.FrontEnd, one.FrontEndReason
}

// Report is what tcm run tells.
type Report struct {
	Program       string  `json:"program"`
	WallSeconds   float64 `json:"wall_seconds"`
	UserSeconds   float64 `json:"user_seconds"`
	SystemSeconds float64 `json:"system_seconds"`
	PeakResident  int64   `json:"peak_resident_bytes"`
	MinorFaults   int64   `json:"minor_faults"`
	MajorFaults   int64   `json:"major_faults"`
	Exit          int     `json:"exit"`
	Signal        int     `json:"signal"`
	// Allocator is missing where no process left figures. Silence says why it is, or why there is
	// nothing in it.
	Allocator *Allocator `json:"allocator,omitempty"`
	Silence   string     `json:"no_figures_because,omitempty"`
}

// New combines both sources.
func New(run Run, result launch.Result, allocator Allocator) Report {
	report := Report{
		Program:       filepath.Base(run.Program),
		WallSeconds:   result.Wall().Seconds(),
		UserSeconds:   result.User().Seconds(),
		SystemSeconds: result.System().Seconds(),
		PeakResident:  result.MaxRSS(),
		MinorFaults:   result.MinorFaults,
		MajorFaults:   result.MajorFaults,
		Exit:          result.Exit,
		Signal:        result.Signal,
	}
	if allocator.Processes > 0 {
		allocator.AllocationsAreEstimated = true
		report.Allocator = &allocator
		if allocator.AllocatedBytes == 0 {
			report.Silence = idle(run.Program)
		}
	} else {
		report.Silence = silence(run, result)
	}
	return report
}

// Text is the report for people, with a line break at its end. The commands are those that ask for
// more, as this user would call them.
func (r Report) Text(commands Commands) string {
	var out strings.Builder
	fmt.Fprintf(&out, "tcm: %s: %s wall, %s user + %s system, %s peak resident",
		r.Program, text.Seconds(r.WallSeconds), text.Seconds(r.UserSeconds),
		text.Seconds(r.SystemSeconds), text.Bytes(r.PeakResident))
	if r.Signal != 0 {
		fmt.Fprintf(&out, ", ended by %s", launch.SignalName(r.Signal))
	}
	out.WriteString("\n")
	switch {
	case r.Allocator == nil:
		fmt.Fprintf(&out, "tcm: no figures from the allocator: %s\n", r.Silence)
	case r.Silence != "":
		fmt.Fprintf(&out, "tcm: the allocator was not called: %s\n", r.Silence)
	default:
		r.Allocator.text(&out)
	}
	program := cmp.Or(commands.Program, r.Program)
	fmt.Fprintf(&out, "tcm: all figures: %s --json %s; other allocators: %s -- %s\n", commands.Run, program, commands.Bench, program)
	return out.String()
}

// Commands are how this user calls tcm run and tcm bench, and the program with its arguments, all as
// words for a shell.
type Commands struct{ Run, Bench, Program string }

// The number of blocks is an estimate from samples, each of which stands for the bytes since the one before it, divided by
// the size of its block: in the mean for blocksOfSample blocks if these are the smallest, else for fewer. The larger the
// number, the more samples are behind it, and its relative error is about 1/sqrt(samples) at most. Bytes would not tell,
// because they may be those of few large blocks. Where tcm run --json ran programs of perl, python3 and bash eight times each,
// numbers below leastEstimate had standard deviations of up to 61 %, with 100 MiB also, and those above of 7 to 16 %.
const (
	leastSamples = 50
	// sampleDistance is in bytes, the library's mean (src/cache/event_clock.h:kMeanInterval).
	sampleDistance = 128 << 10
	smallestBlock  = 16
	blocksOfSample = sampleDistance / smallestBlock
	// leastEstimate is the number of blocks from which on the estimate is shown.
	leastEstimate = leastSamples * blocksOfSample
)

func (a Allocator) text(out *strings.Builder) {
	out.WriteString("tcm: ")
	if a.Processes > 1 {
		fmt.Fprintf(out, "%d processes: ", a.Processes)
	}
	fmt.Fprintf(out, "%s allocated", text.Bytes(a.AllocatedBytes))
	if a.Allocations >= leastEstimate {
		fmt.Fprintf(out, " in about %s blocks", text.About(a.Allocations))
	}
	if a.Processes > 1 {
		out.WriteString("; the largest one:")
	} else {
		out.WriteString(",")
	}
	fmt.Fprintf(out, " %s in use at exit, %s mapped at peak\n", text.Bytes(a.LiveBytes), text.Bytes(a.PeakMappedBytes))
	if a.FrontEndReason != "" {
		fmt.Fprintf(out, "tcm: caches: %s\n", a.FrontEndReason)
	}
}
