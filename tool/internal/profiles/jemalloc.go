// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// The text of jemalloc has the sampling interval in its first line, and for each stack the sums of all
// threads (t*) before those of each:
//
//	heap_v2/524288
//	  t*: 28: 56637 [0: 0]
//	  t0: 28: 56637 [0: 0]
//	@ 0x55d0 0x55e0
//	  t*: 13: 6688 [0: 0]
//	  t0: 13: 6688 [0: 0]
var (
	jemallocHeader = regexp.MustCompile(`^heap_v2/(\d+)\s*\n`)
	jemallocSums   = regexp.MustCompile(`^\s*t\*: *(\d+): *(\d+) *\[ *(\d+): *(\d+) *\]$`)
	jemallocThread = regexp.MustCompile(`^\s*t\d+:`)
)

func isJemalloc(data []byte) bool { return jemallocHeader.Match(data) }

// jemallocReader holds what the lines before said.
type jemallocReader struct {
	made      *profile.Profile
	locations map[uint64]*profile.Location
	stack     []*profile.Location
	// inStack is true from the line of a stack to that of its sums.
	inStack bool
}

func parseJemalloc(data []byte) (*profile.Profile, error) {
	interval, err := strconv.ParseInt(string(jemallocHeader.FindSubmatch(data)[1]), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("a damaged heap profile: %w", err)
	}
	reader := jemallocReader{
		made: &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"},
				{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
			PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"},
			Period:     interval,
			DropFrames: allocatorFrames,
		},
		locations: map[uint64]*profile.Location{},
	}
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 1<<20)
	scanner.Scan()
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == mapSection {
			return reader.finish(scanner)
		}
		if err := reader.add(line); err != nil {
			return nil, err
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("a damaged heap profile: %w", err)
	}
	return nil, errNoMappings
}

func (r *jemallocReader) add(line string) error {
	switch {
	case line == "" || jemallocThread.MatchString(line):
		return nil
	case strings.HasPrefix(line, "@"):
		return r.addStack(line)
	}
	sums := jemallocSums.FindStringSubmatch(line)
	if sums == nil {
		return fmt.Errorf("a damaged or cut off heap profile: %q", line)
	}
	if !r.inStack {
		// The sums of the whole heap.
		return nil
	}
	r.inStack = false
	values := make([]int64, 4)
	for i := range values {
		value, err := strconv.ParseInt(sums[i+1], 10, 64)
		if err != nil {
			return fmt.Errorf("a damaged heap profile: %w", err)
		}
		values[i] = value
	}
	liveObjects, liveBytes := unsample(values[0], values[1], r.made.Period)
	allObjects, allBytes := unsample(values[2], values[3], r.made.Period)
	// Without prof_accum, jemalloc does not count what was freed.
	r.made.Sample = append(r.made.Sample, &profile.Sample{
		Location: r.stack, Value: []int64{allObjects, allBytes, liveObjects, liveBytes}})
	return nil
}

func (r *jemallocReader) addStack(line string) error {
	r.stack, r.inStack = nil, true
	for _, word := range strings.Fields(line)[1:] {
		address, err := strconv.ParseUint(word, 0, 64)
		if err != nil || address == 0 {
			return fmt.Errorf("a damaged heap profile: %q is no address", word)
		}
		// The address is where the call returns to, and may belong to the next line.
		address--
		location := r.locations[address]
		if location == nil {
			location = &profile.Location{Address: address}
			r.locations[address] = location
			r.made.Location = append(r.made.Location, location)
		}
		r.stack = append(r.stack, location)
	}
	return nil
}

func (r *jemallocReader) finish(scanner *bufio.Scanner) (*profile.Profile, error) {
	if r.inStack {
		return nil, errors.New("a damaged heap profile: a stack without figures")
	}
	if err := r.made.ParseMemoryMapFromScanner(scanner); err != nil {
		return nil, fmt.Errorf("a damaged heap profile: %w", oneLine(err))
	}
	dropUncounted(r.made)
	if err := r.made.CheckValid(); err != nil {
		return nil, oneLine(err)
	}
	return r.made, nil
}

// unsample estimates what there is from what was sampled: an object of `bytes` is sampled with the
// probability 1 - exp(-bytes/interval).
func unsample(objects, bytes, interval int64) (int64, int64) {
	if objects == 0 || bytes == 0 || interval <= 1 {
		return objects, bytes
	}
	scale := -1 / math.Expm1(-float64(bytes)/float64(objects)/float64(interval))
	return int64(float64(objects) * scale), int64(float64(bytes) * scale)
}

// dropUncounted leaves out the sums of all allocations where they were not kept.
func dropUncounted(made *profile.Profile) {
	for _, one := range made.Sample {
		if one.Value[1] != 0 {
			return
		}
	}
	made.SampleType = made.SampleType[2:]
	for _, one := range made.Sample {
		one.Value = one.Value[2:]
	}
}
