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
	// Noise is what others had of the CPUs meanwhile.
	Noise bench.Noise `json:"noise"`
	// helpers is the CPU time of programs that belong to the case and are not measured.
	helpers time.Duration
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
	// Ours to glibc's, by the pairs of runs.
	Time   bench.Comparison `json:"time"`
	CPU    bench.Comparison `json:"cpu"`
	Memory bench.Comparison `json:"memory"`
	// Noisy counts the runs that stayed disturbed.
	Noisy int `json:"noisy_runs"`
}

func (c *Comparison) evaluate() {
	c.Glibc.evaluate()
	c.Ours.evaluate()
	compare := func(of func(Figures) float64) bench.Comparison {
		return bench.Compare(c.Ours.column(of), c.Glibc.column(of))
	}
	c.Time, c.CPU, c.Memory = compare(seconds), compare(cpuSeconds), compare(peakResident)
	c.Noisy = c.Glibc.noisy() + c.Ours.noisy()
}

func seconds(f Figures) float64      { return f.Seconds }
func cpuSeconds(f Figures) float64   { return f.CPUSeconds }
func peakResident(f Figures) float64 { return f.PeakResident }

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
		comparison.evaluate()
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

// runSide adds a run, unless an earlier one failed: the quietest of those that it takes until one
// is quiet.
func (d *Demo) runSide(ctx context.Context, one Case, library string, side *Side) {
	if side.Failure != "" {
		return
	}
	var kept Figures
	for attempt := range mostRepeats + 1 {
		figures, err := runOnce(ctx, one, map[string]string{"LD_PRELOAD": launch.Preload([]string{library})})
		if err != nil {
			side.Failure = err.Error()
			return
		}
		if attempt == 0 || figures.Noise.Worst() < kept.Noise.Worst() {
			kept = figures
		}
		if kept.Noise.IsQuiet() {
			break
		}
	}
	side.Runs = append(side.Runs, kept)
}

// mostRepeats is how often a disturbed run is repeated.
const mostRepeats = 2

func runOnce(ctx context.Context, one Case, variables map[string]string) (Figures, error) {
	before, err := bench.ReadBusy()
	if err != nil {
		return Figures{}, err
	}
	begin := time.Now()
	figures, err := one.run(ctx, variables)
	if err != nil {
		return figures, err
	}
	wall := time.Since(begin)
	after, err := bench.ReadBusy()
	own := time.Duration(figures.CPUSeconds*float64(time.Second)) + figures.helpers
	figures.Noise = bench.NoiseBetween(before, after, own, wall)
	return figures, err
}

func (s *Side) column(of func(Figures) float64) []float64 {
	values := make([]float64, len(s.Runs))
	for i, run := range s.Runs {
		values[i] = of(run)
	}
	return values
}

func (s *Side) noisy() int {
	count := 0
	for _, run := range s.Runs {
		if !run.Noise.IsQuiet() {
			count++
		}
	}
	return count
}

func (s *Side) evaluate() {
	if s.Failure != "" {
		return
	}
	s.Figures = Figures{
		Seconds:      bench.Median(s.column(seconds)),
		CPUSeconds:   bench.Median(s.column(cpuSeconds)),
		PeakResident: bench.Median(s.column(peakResident)),
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
	fmt.Fprintln(table, "\ttime\t\tours to glibc\tCPU\t\tours to glibc\tpeak memory\t\tours to glibc\t")
	fmt.Fprintln(table, "\tglibc\tours\t\tglibc\tours\t\tglibc\tours\t\t")
	rounds, noisy, all := 0, 0, 0
	for _, comparison := range comparisons {
		if comparison.Failed() {
			fmt.Fprintf(table, "%s\tfailed\t\t\t\t\t\t\t\t\t\n", comparison.Name)
			continue
		}
		base, ours := comparison.Glibc, comparison.Ours
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", comparison.Name,
			text.Seconds(base.Seconds), text.Seconds(ours.Seconds), comparison.Time,
			text.Seconds(base.CPUSeconds), text.Seconds(ours.CPUSeconds), comparison.CPU,
			text.Bytes(int64(base.PeakResident)), text.Bytes(int64(ours.PeakResident)), comparison.Memory)
		rounds = max(rounds, comparison.Time.Rounds)
		noisy += comparison.Noisy
		all += len(base.Runs) + len(ours.Runs)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	writeConditions(output, rounds, noisy, all)
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

// writeConditions says what the figures are and how far to trust them.
func writeConditions(output io.Writer, rounds, noisy, all int) {
	fmt.Fprintf(output, "\nMedians of %s. Ratios, below 1 is better, are medians over the rounds; %s.\n", text.Counted(int64(rounds), "round"), bench.Brackets(rounds))
	if noisy > 0 {
		fmt.Fprintf(output, "The machine was NOT QUIET: other programs disturbed %d of %d runs, although each was repeated.\n", noisy, all)
	}
	fmt.Fprintln(output)
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
		group := func(what string, of func(Figures) float64, compared bench.Comparison, write func(float64) string) {
			base, ours := of(comparison.Glibc.Figures), of(comparison.Ours.Figures)
			made.Groups = append(made.Groups, chart.BarGroup{
				Title: comparison.Name + ": " + what,
				Bars: []chart.Bar{
					{Series: 0, Value: base, Label: write(base)},
					{Series: 1, Value: ours, Label: write(ours) + ", " + compared.String()},
				},
			})
		}
		group("time", seconds, comparison.Time, text.Seconds)
		group("peak resident memory", peakResident, comparison.Memory,
			func(bytes float64) string { return text.Bytes(int64(math.Round(bytes))) })
	}
	return made.SVG()
}
