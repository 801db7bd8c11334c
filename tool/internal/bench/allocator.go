// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tcm/internal/identify"
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
	// OursFull is the library with profiles, OursHardened and OursDebug the same in modes that check blocks.
	OursFull     = "ours-full"
	OursHardened = "ours-hardened"
	OursDebug    = "ours-debug"
)

// isOurs returns true for this project's allocator in any form, which is no peer.
func isOurs(name string) bool { return name == Ours || strings.HasPrefix(name, Ours+"-") }

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

// identity tells the allocator from others that may have its name.
func (a Allocator) identity() string {
	return strings.TrimSpace(fmt.Sprintf("%s %v %v", a.Version, a.Libraries, a.Variables))
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

// WithBaseline returns the chosen allocators with the one that ratios refer to, in its place in the
// list.
func WithBaseline(chosen, all []Allocator, baseline string) ([]Allocator, error) {
	isBaseline := func(allocator Allocator) bool { return allocator.Name == baseline }
	if slices.ContainsFunc(chosen, isBaseline) {
		return chosen, nil
	}
	index := slices.IndexFunc(all, isBaseline)
	switch {
	case index < 0:
		return nil, fmt.Errorf("no allocator is called %q, which --baseline names; tcm bench --list shows them", baseline)
	case all[index].Missing != "":
		return nil, fmt.Errorf("the baseline %s: %s", baseline, all[index].Missing)
	}
	return append([]Allocator{all[index]}, chosen...), nil
}

// AddSystem adds the allocators that the system's packages brought, each kind that is not among the
// usable ones. It replaces a peer of that name that is not built.
func AddSystem(allocators []Allocator, system []identify.Allocator) []Allocator {
	for _, one := range system {
		isBuilt := func(allocator Allocator) bool {
			return allocator.Missing == "" && strings.HasPrefix(allocator.Name, one.Kind)
		}
		if slices.ContainsFunc(allocators, isBuilt) {
			continue
		}
		allocators = slices.DeleteFunc(slices.Clone(allocators), func(allocator Allocator) bool { return allocator.Name == one.Kind })
		allocators = append(allocators, Allocator{Name: one.Kind, Version: one.Version, Libraries: []string{one.Path}})
	}
	return allocators
}

// AddFiles adds the libraries that selectors name by their paths, under these names.
func AddFiles(allocators []Allocator, selectors []string) ([]Allocator, error) {
	for _, selector := range selectors {
		if !strings.Contains(selector, "/") {
			continue
		}
		file, err := filepath.Abs(selector)
		if err != nil {
			return nil, err
		}
		one, err := identify.File(file)
		if err != nil {
			return nil, fmt.Errorf("cannot preload %s: %w", selector, err)
		}
		allocators = append(allocators, Allocator{Name: selector, Version: one.String(), Libraries: []string{file}})
	}
	return allocators, nil
}

// allocatorPrefixes begin the names of variables that allocators obey.
var allocatorPrefixes = []string{"GLIBC_TUNABLES", "MALLOC_", "TCMALLOC_", "MIMALLOC_", "_RJEM_MALLOC_", "TBB_MALLOC_"}

// AllocatorVariables returns the variables of an environment that allocators obey, in the order of the alphabet.
func AllocatorVariables(environment []string) []string {
	found := []string{}
	for _, one := range environment {
		if slices.ContainsFunc(allocatorPrefixes, func(prefix string) bool { return strings.HasPrefix(one, prefix) }) {
			found = append(found, one)
		}
	}
	slices.Sort(found)
	return found
}
