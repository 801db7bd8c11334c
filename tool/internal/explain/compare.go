// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package explain

import (
	"math"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// Side is all that was found out about a workload under one allocator.
type Side struct {
	Allocator string
	// Libraries are the real paths of the files that are the allocator; none for glibc.
	Libraries []string
	// These are medians of runs as the workload is.
	Seconds, CPUSeconds, PeakResident, Faults float64
	// Calls is nil where there is no strace.
	Calls      SystemCalls
	Neighbours Neighbours
	// Caches and TLBs are of the same run of the program, with another memory behind it.
	Caches, TLBs *Profile
}

// glibcFunctions are those of libc that are its malloc.
var glibcFunctions = regexp.MustCompile(`^(__libc_)?(malloc|free|calloc|realloc|memalign|cfree)$|^_int_|^(malloc|ptmalloc|tcache|arena)_|` +
	`^(sysmalloc|systrim|sysmadvise|unlink_chunk|heap_|_mid_memalign|posix_memalign|aligned_alloc|new_heap|mmap_chunk|mremap_chunk|munmap_chunk|grow_heap|get_free_list|checked_request2size|__malloc)`)

// isAllocator says whether a function belongs to the allocator and not to the program.
func (s *Side) isAllocator(function Function) bool {
	if len(s.Libraries) == 0 {
		return strings.HasPrefix(filepath.Base(function.Object), "libc.so") && glibcFunctions.MatchString(function.Name)
	}
	for _, library := range s.Libraries {
		if function.Object == library {
			return true
		}
	}
	return false
}

// split returns the costs of the allocator and of everything else.
func (s *Side) split(profile *Profile) (own, rest Cost) {
	for function, cost := range profile.Self {
		if s.isAllocator(function) {
			own.add(cost)
		} else {
			rest.add(cost)
		}
	}
	return own, rest
}

// allocations counts blocks that were allocated, those that realloc moved included.
func (s *Side) allocations() float64 { return float64(s.Neighbours.Allocations) }

// Slow is a slow path and what it costs.
type Slow struct {
	Name string `json:"name"`
	// PerMillion is how often it is entered for a million allocations, Instructions what one such
	// call takes with all that it calls.
	PerMillion   float64 `json:"per_million_allocations"`
	Instructions float64 `json:"instructions_each"`
}

// slowName fits the project's own names of slow paths.
var slowName = regexp.MustCompile(`^\w*Slow$`)

func isSlow(name string) bool { return slowName.MatchString(baseName(name)) }

// baseName is a function's name without its scope, template arguments and parameters.
func baseName(name string) string {
	depth, start := 0, 0
	for i, letter := range name {
		switch letter {
		case '<':
			depth++
		case '>':
			depth--
		case ':':
			if depth == 0 {
				start = i + 1
			}
		case ' ':
			// Only the return type of a template stands before a space.
			if depth == 0 {
				start = i + 1
			}
		case '(':
			if depth == 0 && i > start {
				return cutArguments(name[start:i])
			}
		}
	}
	return cutArguments(name[start:])
}

func cutArguments(name string) string {
	before, _, _ := strings.Cut(name, "<")
	return before
}

// SlowPaths lists the slow paths of our allocator, those entered most often first, and how often any
// of them is entered from a fast path. Both are nothing for allocators of others, whose names tell
// nothing.
func (s *Side) SlowPaths() (entered float64, paths []Slow) {
	within := s.withinSlowPaths()
	byName := map[string]*Slow{}
	calls := map[string]float64{}
	for edge, along := range s.Caches.Calls {
		if !s.isAllocator(edge.Callee) || !isSlow(edge.Callee.Name) {
			continue
		}
		if !within[edge.Caller] {
			entered += along.Count
		}
		name := shortName(edge.Callee.Name)
		if byName[name] == nil {
			byName[name] = &Slow{Name: name}
		}
		calls[name] += along.Count
		byName[name].Instructions += along.Instructions
	}
	for name, path := range byName {
		path.Instructions /= calls[name]
		path.PerMillion = s.perMillion(calls[name])
		paths = append(paths, *path)
	}
	sort.Slice(paths, func(i, j int) bool {
		if paths[i].PerMillion != paths[j].PerMillion {
			return paths[i].PerMillion > paths[j].PerMillion
		}
		return paths[i].Name < paths[j].Name
	})
	return s.perMillion(entered), paths
}

// withinSlowPaths returns the functions of the allocator that are slow paths or are called by some,
// directly or not.
func (s *Side) withinSlowPaths() map[Function]bool {
	callees := map[Function][]Function{}
	var reached []Function
	for edge := range s.Caches.Calls {
		if !s.isAllocator(edge.Callee) {
			continue
		}
		callees[edge.Caller] = append(callees[edge.Caller], edge.Callee)
		if isSlow(edge.Callee.Name) {
			reached = append(reached, edge.Callee)
		}
	}
	within := map[Function]bool{}
	for len(reached) > 0 {
		function := reached[len(reached)-1]
		reached = reached[:len(reached)-1]
		if !within[function] {
			within[function] = true
			reached = append(reached, callees[function]...)
		}
	}
	return within
}

func (s *Side) perMillion(count float64) float64 {
	if s.allocations() == 0 {
		return 0
	}
	return count / s.allocations() * 1e6
}

// parameters is the list of parameters at the end of a name.
var parameters = regexp.MustCompile(`\([^()]*(\([^()]*\)[^()]*)*\)( const)?$`)

// shortName leaves out what every name of ours has, and parameters.
func shortName(name string) string {
	return strings.ReplaceAll(parameters.ReplaceAllString(name, ""), "tcmalloc::", "")
}

// Weights of the estimate by which functions are ordered, in cycles.
const (
	cyclesOfNearMiss = 10
	cyclesOfFarMiss  = 100
	cyclesOfWalk     = 30
)

// Work is what one function costs on one side.
type Work struct {
	Instructions float64 `json:"instructions"`
	NearMisses   float64 `json:"l1_misses"`
	FarMisses    float64 `json:"l2_misses"`
	Walks        float64 `json:"page_walks"`
}

func (w Work) cycles() float64 {
	return w.Instructions + cyclesOfNearMiss*w.NearMisses + cyclesOfFarMiss*w.FarMisses + cyclesOfWalk*w.Walks
}

// Difference is a function on both sides.
type Difference struct {
	Name string `json:"function"`
	Ours Work   `json:"ours"`
	Peer Work   `json:"peer"`
}

func (d Difference) cycles() float64 { return d.Ours.cycles() - d.Peer.cycles() }

// Differences returns the functions whose estimated cycles differ most, at most so many.
func Differences(ours, peer *Side, most int) []Difference {
	byName := map[string]*Difference{}
	at := func(side *Side, function Function) *Difference {
		name := side.comparable(function)
		if byName[name] == nil {
			byName[name] = &Difference{Name: name}
		}
		return byName[name]
	}
	collect := func(side *Side, work func(*Difference) *Work) {
		for function, cost := range side.Caches.Self {
			sum := work(at(side, function))
			sum.Instructions += cost.Instructions
			sum.NearMisses += cost.Near
			sum.FarMisses += cost.Far
		}
		for function, cost := range side.TLBs.Self {
			work(at(side, function)).Walks += cost.Far
		}
	}
	collect(ours, func(d *Difference) *Work { return &d.Ours })
	collect(peer, func(d *Difference) *Work { return &d.Peer })
	var all []Difference
	for _, difference := range byName {
		all = append(all, *difference)
	}
	sort.Slice(all, func(i, j int) bool {
		one, other := math.Abs(all[i].cycles()), math.Abs(all[j].cycles())
		if one != other {
			return one > other
		}
		return all[i].Name < all[j].Name
	})
	return all[:min(most, len(all))]
}

// These are the functions by which programs allocate and free. An allocator has several names for
// one function, of which callgrind knows one.
var (
	allocating = regexp.MustCompile(`^(tc_|mi_|je_)?(malloc|new\w*)$|^operator new`)
	freeing    = regexp.MustCompile(`^(tc_|mi_|je_)?(c?free|free_sized|delete\w*)$|^operator delete`)
)

// comparable names a function alike on both sides, so that one malloc stands beside the other. An
// address is a name only together with its file.
func (s *Side) comparable(function Function) string {
	name := shortName(function.Name)
	switch {
	case strings.HasPrefix(name, "0x") || strings.HasPrefix(name, "???"):
		return filepath.Base(function.Object) + ":" + name
	case s.isAllocator(function) && allocating.MatchString(name):
		return "malloc, operator new"
	case s.isAllocator(function) && freeing.MatchString(name):
		return "free, operator delete"
	}
	return name
}
