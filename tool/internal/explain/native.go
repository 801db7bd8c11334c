// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// SystemCalls counts them by name.
type SystemCalls map[string]int64

// memoryCalls are those by which an allocator gets memory, gives it back or changes it.
var memoryCalls = []string{"brk", "madvise", "mmap", "mprotect", "mremap", "munmap", "process_madvise"}

// waitingCalls are those of threads that wait for each other.
var waitingCalls = []string{"futex", "membarrier", "sched_yield"}

func (s SystemCalls) sum(names []string) int64 {
	var sum int64
	for _, name := range names {
		sum += s[name]
	}
	return sum
}

func (s SystemCalls) total() int64 {
	var total int64
	for _, count := range s {
		total += count
	}
	return total
}

// ParseSystemCalls reads the table that `strace -c` writes.
func ParseSystemCalls(table []byte) (SystemCalls, error) {
	const leastColumns, countColumn = 5, 3
	counts := SystemCalls{}
	for _, line := range strings.Split(string(table), "\n") {
		words := strings.Fields(line)
		if len(words) < leastColumns || words[0] == "%" || strings.HasPrefix(words[0], "--") {
			continue
		}
		name := words[len(words)-1]
		count, err := strconv.ParseInt(words[countColumn], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("no table of strace -c: %q", line)
		}
		if name != "total" {
			counts[name] += count
		}
	}
	if len(counts) == 0 {
		return nil, fmt.Errorf("no table of strace -c")
	}
	return counts, nil
}

// Neighbours is what bench/workloads/trace/neighbours.cc counts: groups of 64 blocks that a thread
// allocated one after the other, the pages that the blocks of each group lie in, and their bytes.
type Neighbours struct {
	Allocations   int64 `json:"allocations"`
	Reallocations int64 `json:"reallocations"`
	Groups        int64 `json:"groups"`
	Pages         int64 `json:"pages"`
	Bytes         int64 `json:"bytes"`
}

// ParseNeighbours adds up the lines of all processes.
func ParseNeighbours(lines []byte) (Neighbours, error) {
	var sum Neighbours
	for _, line := range bytes.Split(bytes.TrimSpace(lines), []byte("\n")) {
		var one Neighbours
		if err := json.Unmarshal(line, &one); err != nil {
			return Neighbours{}, fmt.Errorf("no count of neighbours: %q", line)
		}
		sum.Allocations += one.Allocations
		sum.Reallocations += one.Reallocations
		sum.Groups += one.Groups
		sum.Pages += one.Pages
		sum.Bytes += one.Bytes
	}
	return sum, nil
}

const pageBytes = 4096

// perGroup returns the pages that a group lies in, and those that it would fill without a gap.
func (n Neighbours) perGroup() (pages, filled float64) {
	if n.Groups == 0 {
		return 0, 0
	}
	return float64(n.Pages) / float64(n.Groups), float64(n.Bytes) / float64(n.Groups) / pageBytes
}
