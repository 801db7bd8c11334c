// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package demo runs a few real programs under glibc's malloc and under ours and shows both side
// by side.
package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"tcm/internal/bench"
	"tcm/internal/chart"
	"tcm/internal/launch"
	"tcm/internal/text"
)

// glibcLibrary preloads glibc itself: some programs are linked with an allocator of their own
// choice, redis for one, and would otherwise not run on glibc's malloc.
const glibcLibrary = "libc.so.6"

// runTimeout is far above what any case needs.
const runTimeout = time.Minute

// Figures are what one run cost.
type Figures struct {
	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpu_seconds"`
	PeakResident float64 `json:"peak_resident_bytes"`
}

// Side is a case under one allocator: the medians over the rounds.
type Side struct {
	Figures
	Failure string    `json:"failure,omitempty"`
	Runs    []Figures `json:"runs"`
}

// Comparison is one case under both allocators.
type Comparison struct {
	Name  string `json:"name"`
	About string `json:"about"`
	Glibc Side   `json:"glibc"`
	Ours  Side   `json:"ours"`
}

// Failed says whether a side has no figures.
func (c Comparison) Failed() bool { return c.Glibc.Failure != "" || c.Ours.Failure != "" }

// runFunc runs a case once with these variables.
type runFunc func(ctx context.Context, variables map[string]string) (Figures, error)

// Case is something to run.
type Case struct {
	Name  string
	About string
	run   runFunc
}

// Demo runs cases.
type Demo struct {
	Launcher string
	Library  string
	Rounds   int
	Progress io.Writer
}

// Run runs every case in turn under both allocators, beginning with the other one in each round.
func (d *Demo) Run(ctx context.Context, cases []Case) ([]Comparison, error) {
	begin := time.Now()
	all := 2 * d.Rounds * len(cases)
	done := 0
	var comparisons []Comparison
	for _, one := range cases {
		comparison := Comparison{Name: one.Name, About: one.About}
		sides := []*Side{&comparison.Glibc, &comparison.Ours}
		libraries := []string{glibcLibrary, d.Library}
		for round := range d.Rounds {
			fmt.Fprintf(d.Progress, "%s, round %d of %d%s\n", one.Name, round+1, d.Rounds, remaining(begin, done, all))
			for turn := range sides {
				index := (round + turn) % len(sides)
				d.runSide(ctx, one, libraries[index], sides[index])
				done++
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		for _, side := range sides {
			side.evaluate()
		}
		comparisons = append(comparisons, comparison)
	}
	return comparisons, nil
}

func remaining(begin time.Time, done, all int) string {
	if done == 0 {
		return ""
	}
	left := time.Since(begin).Seconds() / float64(done) * float64(all-done)
	return fmt.Sprintf(", about %.0f s left", left)
}

// runSide adds a run, unless an earlier one failed.
func (d *Demo) runSide(ctx context.Context, one Case, library string, side *Side) {
	if side.Failure != "" {
		return
	}
	figures, err := one.run(ctx, map[string]string{"LD_PRELOAD": launch.Preload([]string{library})})
	if err != nil {
		side.Failure = err.Error()
		return
	}
	side.Runs = append(side.Runs, figures)
}

func (s *Side) evaluate() {
	column := func(of func(Figures) float64) float64 {
		values := make([]float64, len(s.Runs))
		for i, run := range s.Runs {
			values[i] = of(run)
		}
		return bench.Median(values)
	}
	if s.Failure != "" {
		return
	}
	s.Figures = Figures{
		Seconds:      column(func(f Figures) float64 { return f.Seconds }),
		CPUSeconds:   column(func(f Figures) float64 { return f.CPUSeconds }),
		PeakResident: column(func(f Figures) float64 { return f.PeakResident }),
	}
}

func figuresOf(result launch.Result) Figures {
	return Figures{
		Seconds:      result.Wall().Seconds(),
		CPUSeconds:   (result.User() + result.System()).Seconds(),
		PeakResident: float64(result.MaxRSS()),
	}
}

// runProgram is the run of a program that ends by itself.
func (d *Demo) runProgram(input string, program ...string) runFunc {
	return func(ctx context.Context, variables map[string]string) (Figures, error) {
		var complaints bytes.Buffer
		result, err := launch.Run(ctx, d.Launcher, launch.Command{
			Program: program, Variables: variables, Input: strings.NewReader(input), Output: io.Discard,
			Errors: &complaints, Timeout: runTimeout,
		})
		if err == nil && result.Failure() != "" {
			err = fmt.Errorf("%s: %s", result.Failure(), strings.TrimSpace(complaints.String()))
		}
		return figuresOf(result), err
	}
}

// WriteTable prints both sides with their ratios.
func WriteTable(output io.Writer, comparisons []Comparison) error {
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ttime\t\t\tCPU\t\t\tpeak memory\t\t\t")
	fmt.Fprintln(table, "\tglibc\tours\tratio\tglibc\tours\tratio\tglibc\tours\tratio\t")
	for _, comparison := range comparisons {
		if comparison.Failed() {
			fmt.Fprintf(table, "%s\tfailed\t\t\t\t\t\t\t\t\t\n", comparison.Name)
			continue
		}
		base, ours := comparison.Glibc, comparison.Ours
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", comparison.Name,
			text.Seconds(base.Seconds), text.Seconds(ours.Seconds), text.Ratio(ours.Seconds/base.Seconds),
			text.Seconds(base.CPUSeconds), text.Seconds(ours.CPUSeconds), text.Ratio(ours.CPUSeconds/base.CPUSeconds),
			text.Bytes(int64(base.PeakResident)), text.Bytes(int64(ours.PeakResident)),
			text.Ratio(ours.PeakResident/base.PeakResident))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(output)
	for _, comparison := range comparisons {
		fmt.Fprintf(output, "%s: %s\n", comparison.Name, comparison.About)
		for _, side := range []struct{ name, failure string }{
			{"glibc", comparison.Glibc.Failure}, {"ours", comparison.Ours.Failure},
		} {
			if side.failure != "" {
				fmt.Fprintf(output, "  failed under %s: %s\n", side.name, side.failure)
			}
		}
	}
	return nil
}

// Chart draws both sides as bars.
func Chart(comparisons []Comparison) []byte {
	made := chart.Bars{
		Title:    "Real programs under glibc's malloc and under TCMalloc",
		Subtitle: "shorter is better",
		Series:   []chart.Series{chart.Reference("glibc"), chart.Style("tcmalloc", 0)},
	}
	for _, comparison := range comparisons {
		if comparison.Failed() {
			continue
		}
		group := func(what string, of func(Figures) float64, write func(float64) string) {
			base, ours := of(comparison.Glibc.Figures), of(comparison.Ours.Figures)
			change := ""
			if base > 0 {
				change = fmt.Sprintf(" (%+.0f %%)", 100*(ours/base-1))
			}
			made.Groups = append(made.Groups, chart.BarGroup{
				Title: comparison.Name + ": " + what,
				Bars: []chart.Bar{
					{Series: 0, Value: base, Label: write(base)},
					{Series: 1, Value: ours, Label: write(ours) + change},
				},
			})
		}
		group("time", func(f Figures) float64 { return f.Seconds }, text.Seconds)
		group("peak resident memory", func(f Figures) float64 { return f.PeakResident },
			func(bytes float64) string { return text.Bytes(int64(math.Round(bytes))) })
	}
	return made.SVG()
}
