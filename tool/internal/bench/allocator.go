// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"path"
	"strings"
)

// Names of the allocators that are no peers.
const (
	// Glibc is the malloc that programs have anyway.
	Glibc = "glibc"
	// Ours is this project's allocator.
	Ours = "ours"
	// OursPerThread and OursPerCPU are the same with one kind of caches, whatever the program does.
	OursPerThread = "ours-per-thread"
	OursPerCPU    = "ours-per-cpu"
	// OursHuge is the same with the hugepage-aware page heap.
	OursHuge = "ours-huge"
)

// Allocator is one that workloads can run under.
type Allocator struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Libraries are preloaded; none for glibc.
	Libraries []string `json:"libraries,omitempty"`
	// Variables are set for the program.
	Variables map[string]string `json:"variables,omitempty"`
	// OnRequest leaves it out where no allocators are named.
	OnRequest bool `json:"on_request,omitempty"`
	// Missing says why the allocator cannot be used.
	Missing string `json:"missing,omitempty"`
}

// SelectAllocators returns the allocators that any selector, a name or a pattern, fits, in the
// order of the list. Without selectors these are all that can be used and that need
// not be asked for. A selector that fits only
// allocators that cannot be used is an error.
func SelectAllocators(allocators []Allocator, selectors []string) ([]Allocator, error) {
	if len(selectors) == 0 {
		var usable []Allocator
		for _, allocator := range allocators {
			if allocator.Missing == "" && !allocator.OnRequest {
				usable = append(usable, allocator)
			}
		}
		return usable, nil
	}
	chosen := make([]bool, len(allocators))
	for _, selector := range selectors {
		if err := choose(allocators, selector, chosen); err != nil {
			return nil, err
		}
	}
	var selected []Allocator
	for i, allocator := range allocators {
		if chosen[i] {
			selected = append(selected, allocator)
		}
	}
	return selected, nil
}

func choose(allocators []Allocator, selector string, chosen []bool) error {
	found := false
	var missing []string
	for i, allocator := range allocators {
		fits, err := path.Match(selector, allocator.Name)
		if err != nil {
			return fmt.Errorf("allocator pattern %q: %w", selector, err)
		}
		switch {
		case fits && allocator.Missing != "":
			missing = append(missing, allocator.Name+": "+allocator.Missing)
		case fits:
			chosen[i] = true
			found = true
		}
	}
	if found {
		return nil
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s", strings.Join(missing, "; "))
	}
	return fmt.Errorf("no allocator fits %q; tcm bench --list shows them", selector)
}
