// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"tcm/internal/mistakes"
	"tcm/internal/symbols"
	"tcm/internal/text"
)

// suspect is a call site of a heap profile whose blocks become more and stay.
type suspect struct {
	Bytes          int64            `json:"bytes"`
	Blocks         int64            `json:"blocks"`
	BytesPerMinute float64          `json:"bytes_per_minute,omitempty"`
	Growth         int64            `json:"growth_bytes,omitempty"`
	OldestSeconds  float64          `json:"oldest_seconds,omitempty"`
	Confidence     float64          `json:"confidence"`
	Frames         []mistakes.Frame `json:"frames"`
}

type suspectReport struct {
	File     string    `json:"file"`
	Before   string    `json:"before,omitempty"`
	Sites    int       `json:"sites"`
	Suspects []suspect `json:"suspects"`
}

// site sums up the samples of one call site.
type site struct {
	blocks, bytes, samples int64
	growth, confidence     int64 // as the labels say
	oldest                 int64 // milliseconds
	marked                 bool
	stack                  []*profile.Location
}

// isCheck returns true for what a check of the program's pointers wrote, where there is nothing to suspect.
func isCheck(made *profile.Profile, name string) bool {
	for _, comment := range made.Comments {
		if comment == "leaked blocks" {
			return true
		}
	}
	for _, sample := range made.Sample {
		if len(sample.Label["lost"]) > 0 {
			return true
		}
	}
	return strings.HasSuffix(strings.TrimSuffix(filepath.Base(name), ".pb.gz"), "-end.heap")
}

func hasAges(made *profile.Profile) bool {
	for _, sample := range made.Sample {
		if len(sample.NumLabel["age"]) > 0 {
			return true
		}
	}
	return false
}

// placeOf names an instruction for profiles of several runs, in which objects lie elsewhere.
func placeOf(location *profile.Location) string {
	if location.Mapping == nil {
		return strconv.FormatUint(location.Address, 16)
	}
	return fmt.Sprintf("%s+%x", location.Mapping.File, location.Address-location.Mapping.Start+location.Mapping.Offset)
}

// sitesOf returns nil for a profile that is none of a heap.
func sitesOf(made *profile.Profile) map[string]*site {
	objects, space := -1, -1
	for i, kind := range made.SampleType {
		switch kind.Type {
		case "inuse_objects":
			objects = i
		case "inuse_space":
			space = i
		}
	}
	if objects < 0 || space < 0 {
		return nil
	}
	sites := map[string]*site{}
	for _, sample := range made.Sample {
		var key strings.Builder
		for _, location := range sample.Location {
			key.WriteString(placeOf(location) + "\n")
		}
		found := sites[key.String()]
		if found == nil {
			found = &site{stack: sample.Location}
			sites[key.String()] = found
		}
		found.blocks += sample.Value[objects]
		found.bytes += sample.Value[space]
		found.samples++
		found.oldest = max(found.oldest, numberOf(sample, "age"))
		if len(sample.Label["leak"]) > 0 {
			found.marked = true
			found.growth, found.confidence = numberOf(sample, "leak_growth"), numberOf(sample, "leak_confidence")
		}
	}
	return sites
}

func numberOf(sample *profile.Sample, label string) int64 {
	if numbers := sample.NumLabel[label]; len(numbers) > 0 {
		return numbers[0]
	}
	return 0
}

// suspectsOf finds the suspects of a profile by its labels.
func suspectsOf(sites map[string]*site) []suspect {
	var made []suspect
	for _, at := range sites {
		if at.marked {
			made = append(made, suspect{Bytes: at.bytes, Blocks: at.blocks, BytesPerMinute: float64(at.growth),
				OldestSeconds: float64(at.oldest) / 1000, Confidence: float64(at.confidence) / 100, Frames: framesOf(at.stack)})
		}
	}
	return made
}

// leastGrowth is the number of standard deviations beyond which a call site has become larger, not by chance.
const leastGrowth = 3

// deviationsOf returns by how many standard deviations a number has grown. Profiles of others may have bytes without blocks.
func deviationsOf(then, now int64) float64 {
	if then+now <= 0 {
		return 0
	}
	return float64(now-then) / math.Sqrt(float64(now+then))
}

// grownSince finds the call sites that have become larger since another profile: those that the later one suspects
// and, if it knows no ages, those that cannot have grown by chance.
func grownSince(before, after map[string]*site, minutes float64, ages bool) []suspect {
	var made []suspect
	for key, now := range after {
		then := before[key]
		if then == nil {
			then = &site{}
		}
		growth := now.bytes - then.bytes
		if growth <= 0 || (ages && !now.marked) {
			continue
		}
		found := suspect{Bytes: now.bytes, Blocks: now.blocks, Growth: growth, OldestSeconds: float64(now.oldest) / 1000,
			Confidence: float64(now.confidence) / 100, Frames: framesOf(now.stack)}
		if minutes > 0 {
			found.BytesPerMinute = float64(growth) / minutes
		}
		if !ages {
			deviations := deviationsOf(then.blocks, now.blocks)
			if deviations < leastGrowth {
				continue
			}
			found.Confidence = deviations / (deviations + 2*leastGrowth)
		}
		made = append(made, found)
	}
	return made
}

// showSuspects shows the suspects of a heap profile, or what has grown between two.
func (f *leakFlags) showSuspects(command *cobra.Command, made []*profile.Profile, names []string) error {
	for _, one := range made {
		complain(command.ErrOrStderr(), symbols.Symbolize(one, symbols.Options{Root: f.root, FullNames: f.fullNames})...)
	}
	last := made[len(made)-1]
	sites := sitesOf(last)
	if sites == nil {
		return fmt.Errorf("%s: no profile of a heap", names[len(names)-1])
	}
	report := &suspectReport{File: names[len(names)-1], Sites: len(sites), Suspects: []suspect{}}
	switch {
	case len(made) == 2:
		before := sitesOf(made[0])
		if before == nil {
			return fmt.Errorf("%s: no profile of a heap", names[0])
		}
		report.Before = names[0]
		minutes := float64(last.TimeNanos-made[0].TimeNanos) / 60e9
		if made[0].TimeNanos == 0 {
			minutes = 0
		}
		report.Suspects = append(report.Suspects, grownSince(before, sites, minutes, hasAges(last))...)
	case len(sites) > 0 && !hasAges(last):
		return fmt.Errorf("%s does not tell the ages of samples; give an earlier profile of the same program before it", names[0])
	default:
		report.Suspects = append(report.Suspects, suspectsOf(sites)...)
	}
	sort.Slice(report.Suspects, func(i, j int) bool {
		a, b := report.Suspects[i], report.Suspects[j]
		if a.BytesPerMinute != b.BytesPerMinute {
			return a.BytesPerMinute > b.BytesPerMinute
		}
		return a.Bytes > b.Bytes
	})
	if f.asJSON {
		return writeJSON(command.OutOrStdout(), report)
	}
	return report.write(text.NewPrintable(command.OutOrStdout()), f.top)
}

func (r *suspectReport) write(to io.Writer, top int) error {
	var page strings.Builder
	fmt.Fprintf(&page, "%s: %s of %s", r.File, text.Counted(int64(len(r.Suspects)), "suspect"), text.Counted(int64(r.Sites), "call site"))
	if r.Before != "" {
		fmt.Fprintf(&page, ", compared with %s", r.Before)
	}
	page.WriteString("\n")
	shown := firstOf(r.Suspects, top)
	for _, one := range shown {
		writePlace(&page, one.title(), one.Frames)
	}
	writeLeftOut(&page, len(r.Suspects)-len(shown), "suspect")
	_, err := io.WriteString(to, page.String())
	return err
}

func (s suspect) title() string {
	made := fmt.Sprintf("%s in %s", text.Bytes(s.Bytes), text.Counted(s.Blocks, "block"))
	switch {
	case s.BytesPerMinute > 0:
		made += fmt.Sprintf(", %s more each minute", text.Bytes(int64(s.BytesPerMinute)))
	case s.Growth > 0:
		made += fmt.Sprintf(", %s more than before", text.Bytes(s.Growth))
	}
	if s.OldestSeconds > 0 {
		made += ", the oldest " + text.Seconds(s.OldestSeconds) + " old"
	}
	return made + fmt.Sprintf(", confidence %.0f %%", 100*s.Confidence)
}
