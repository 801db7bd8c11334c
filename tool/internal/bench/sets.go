// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"crypto/sha256"
	"math"
	"strconv"

	"tcm/internal/text"
)

// Set is one of the two halves of the workloads. The allocator is tuned on one of them only, so
// that the other tells whether a change helps programs that nobody tuned for.
type Set string

// The two sets.
const (
	Development Set = "development"
	HeldOut     Set = "held out"
)

// Sets lists them in the order in which they are reported.
var Sets = []Set{Development, HeldOut}

// firstHeldOut is the least first byte of the hash of a name that is held out.
const firstHeldOut = 0x80

// SetOf returns the set of a workload. Its name alone decides, so that nobody chooses: those whose
// SHA-256 begins with a hexadecimal digit of 8 or more are held out.
func SetOf(name string) Set {
	if sha256.Sum256([]byte(name))[0] >= firstHeldOut {
		return HeldOut
	}
	return Development
}

// SetSummaries are the means over the workloads of one set.
type SetSummaries struct {
	Set Set `json:"set"`
	// Workloads counts those of the set, Timed those whose time counts.
	Workloads int       `json:"workloads"`
	Timed     int       `json:"timed"`
	Summaries []Summary `json:"summary"`
}

// Ratios to the best peer above which a workload is counted.
const (
	notable   = 1.10
	excessive = 1.25
)

// Distance is how far an allocator is from the best peer of each workload.
type Distance struct {
	// ToBest is the geometric mean of the ratios of time.
	ToBest float64 `json:"time_to_best_peer,omitempty"`
	// Notable and Excessive count the workloads in which the ratio is above 1.10 and 1.25.
	Notable   int `json:"workloads_over_1_10"`
	Excessive int `json:"workloads_over_1_25"`
}

// columns are the ratio and the counts for a table, or dashes where there is no peer.
func (d Distance) columns() [3]string {
	if d.ToBest == 0 {
		return [3]string{"-", "-", "-"}
	}
	return [3]string{text.Ratio(d.ToBest), strconv.Itoa(d.Notable), strconv.Itoa(d.Excessive)}
}

func distance(ratios []float64) Distance {
	found := Distance{ToBest: mean(ratios)}
	for _, ratio := range ratios {
		// The table shows two digits, which decide.
		shown := math.Round(ratio*100) / 100
		if shown > notable {
			found.Notable++
		}
		if shown > excessive {
			found.Excessive++
		}
	}
	return found
}

// summarizeSets computes the means of each set that has workloads.
func (r *Results) summarizeSets() []SetSummaries {
	var all []SetSummaries
	for _, set := range Sets {
		part := Results{Settings: r.Settings, Allocators: r.Allocators}
		for _, workload := range r.Workloads {
			if SetOf(workload.Name) == set {
				part.Workloads = append(part.Workloads, workload)
			}
		}
		if len(part.Workloads) == 0 {
			continue
		}
		made := SetSummaries{Set: set, Workloads: len(part.Workloads), Timed: part.timed()}
		for _, allocator := range r.Allocators {
			made.Summaries = append(made.Summaries, part.summarize(allocator.Name))
		}
		all = append(all, made)
	}
	return all
}
