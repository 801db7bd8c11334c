// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"text/tabwriter"

	"tcm/internal/text"
)

// Report compares ours with a peer.
type Report struct {
	Workload string
	// Short are the options that make the runs under tools short; none where they are not.
	Short      []string
	Ours, Peer *Side
}

// Row is one figure of both sides. Ratio is 0 where one side is nothing.
type Row struct {
	Figure string  `json:"figure"`
	Ours   float64 `json:"ours"`
	Peer   float64 `json:"peer"`
	Ratio  float64 `json:"ratio,omitempty"`
	write  func(float64) string
	// absent marks a figure that the peer cannot have.
	absent bool
}

// Group is rows that were found in the same way.
type Group struct {
	Title string `json:"title"`
	Rows  []Row  `json:"rows"`
}

func row(figure string, ours, peer float64, write func(float64) string) Row {
	made := Row{Figure: figure, Ours: ours, Peer: peer, write: write}
	if ours > 0 && peer > 0 {
		made.Ratio = ours / peer
	}
	return made
}

func whole(value float64) string   { return text.Count(int64(value + 0.5)) }
func inBytes(value float64) string { return text.Bytes(int64(value)) }
func tenths(value float64) string  { return fmt.Sprintf("%.1f", value) }

// Groups returns all figures.
func (r *Report) Groups() []Group {
	o, p := r.Ours, r.Peer
	groups := []Group{
		{Title: "as it is, medians", Rows: []Row{
			row("time", o.Seconds, p.Seconds, text.Seconds),
			row("CPU time", o.CPUSeconds, p.CPUSeconds, text.Seconds),
			row("peak resident memory", o.PeakResident, p.PeakResident, inBytes),
			row("page faults", o.Faults, p.Faults, whole),
		}},
		{Title: "neighbours: pages of 64 blocks to 1 KiB that a thread allocates one after the other", Rows: r.neighbourRows()},
		{Title: "callgrind: instructions", Rows: r.instructionRows()},
		{Title: "callgrind: simulated memory (" + CacheWords + "; " + TLBWords + ")", Rows: r.memoryRows()},
	}
	if o.Calls != nil && p.Calls != nil {
		groups = append(groups, Group{Title: "strace", Rows: []Row{
			row("system calls", float64(o.Calls.total()), float64(p.Calls.total()), whole),
			row("  of memory (mmap, madvise, brk ...)", float64(o.Calls.sum(memoryCalls)), float64(p.Calls.sum(memoryCalls)), whole),
			row("  of waiting (futex, sched_yield ...)", float64(o.Calls.sum(waitingCalls)), float64(p.Calls.sum(waitingCalls)), whole),
		}})
	}
	return groups
}

func (r *Report) neighbourRows() []Row {
	ourPages, ourLeast := r.Ours.Neighbours.perGroup()
	peerPages, peerLeast := r.Peer.Neighbours.perGroup()
	return []Row{
		row("allocations", r.Ours.allocations(), r.Peer.allocations(), whole),
		row("reallocations", float64(r.Ours.Neighbours.Reallocations), float64(r.Peer.Neighbours.Reallocations), whole),
		row("pages of 4 KiB per 64 neighbours", ourPages, peerPages, tenths),
		row("  that they would fill", ourLeast, peerLeast, tenths),
	}
}

func (r *Report) instructionRows() []Row {
	ourOwn, ourRest := r.Ours.split(r.Ours.Caches)
	peerOwn, peerRest := r.Peer.split(r.Peer.Caches)
	entered, _ := r.Ours.SlowPaths()
	slow := row("slow paths per million allocations", entered, 0, whole)
	slow.absent = true
	return []Row{
		row("instructions", r.Ours.Caches.Total().Instructions, r.Peer.Caches.Total().Instructions, whole),
		row("  in the allocator", ourOwn.Instructions, peerOwn.Instructions, whole),
		row("  in the allocator, per allocation", each(ourOwn.Instructions, r.Ours), each(peerOwn.Instructions, r.Peer), tenths),
		row("  elsewhere", ourRest.Instructions, peerRest.Instructions, whole),
		slow,
	}
}

func each(value float64, side *Side) float64 {
	if side.allocations() == 0 {
		return 0
	}
	return value / side.allocations()
}

func (r *Report) memoryRows() []Row {
	var rows []Row
	add := func(figure string, of func(*Side) *Profile, field func(Cost) float64) {
		ourOwn, ourRest := r.Ours.split(of(r.Ours))
		peerOwn, peerRest := r.Peer.split(of(r.Peer))
		rows = append(rows,
			row(figure, field(ourOwn)+field(ourRest), field(peerOwn)+field(peerRest), whole),
			row("  in the allocator", field(ourOwn), field(peerOwn), whole),
			row("  elsewhere", field(ourRest), field(peerRest), whole))
	}
	caches := func(s *Side) *Profile { return s.Caches }
	tlbs := func(s *Side) *Profile { return s.TLBs }
	near, far := func(c Cost) float64 { return c.Near }, func(c Cost) float64 { return c.Far }
	add("misses of the first cache, data", caches, near)
	add("misses of the second cache, data", caches, far)
	add("misses of the first cache, code", caches, func(c Cost) float64 { return c.Code })
	add("misses of the first TLB, data", tlbs, near)
	add("page walks, data", tlbs, far)
	return rows
}

// mostFunctions is how many functions are listed.
const mostFunctions = 15

// Write writes the report for people.
func (r *Report) Write(output io.Writer) error {
	fmt.Fprintf(output, "%s: %s and %s\n", r.Workload, r.Ours.Allocator, r.Peer.Allocator)
	if len(r.Short) > 0 {
		fmt.Fprintf(output, "All but the first group is of a short run, with %q.\n", r.Short)
	}
	fmt.Fprintln(output, "Under callgrind threads run one at a time, and our caches are those of threads.")
	r.writeGroups(output)
	r.writeSlowPaths(output)
	return r.writeDifferences(output)
}

// writeGroups aligns the figures of all groups with each other.
func (r *Report) writeGroups(output io.Writer) {
	lines := [][]string{{"", r.Ours.Allocator, r.Peer.Allocator, "ratio"}}
	for _, group := range r.Groups() {
		lines = append(lines, []string{group.Title})
		for _, one := range group.Rows {
			lines = append(lines, []string{"  " + one.Figure, one.write(one.Ours), one.peer(), ratio(one.Ratio)})
		}
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i := 0; len(line) > 1 && i < len(line); i++ {
			widths[i] = max(widths[i], len(line[i]))
		}
	}
	fmt.Fprintln(output)
	for _, line := range lines {
		if len(line) == 1 {
			fmt.Fprintln(output, line[0])
			continue
		}
		fmt.Fprintf(output, "%-*s", widths[0], line[0])
		for i := 1; i < len(line); i++ {
			fmt.Fprintf(output, "  %*s", widths[i], line[i])
		}
		fmt.Fprintln(output)
	}
}

func (r Row) peer() string {
	if r.absent {
		return "-"
	}
	return r.write(r.Peer)
}

func ratio(value float64) string {
	if value == 0 {
		return "-"
	}
	return text.Ratio(value)
}

func (r *Report) writeSlowPaths(output io.Writer) {
	_, paths := r.Ours.SlowPaths()
	if len(paths) == 0 {
		return
	}
	fmt.Fprintf(output, "\nSlow paths of %s, inner ones included\n", r.Ours.Allocator)
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "per million allocations\tinstructions each\t ")
	for _, path := range paths {
		fmt.Fprintf(table, "%s\t%s\t %s\n", whole(path.PerMillion), whole(path.Instructions), clip(path.Name))
	}
	table.Flush()
}

func (r *Report) writeDifferences(output io.Writer) error {
	fmt.Fprintf(output, "\nFunctions by themselves that differ most, by an estimate of cycles: instructions, %d for each miss of the first\n"+
		"cache, %d of the second, %d for each page walk\n", cyclesOfNearMiss, cyclesOfFarMiss, cyclesOfWalk)
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "cycles\tinstructions\tinstructions\tL2 misses\tL2 misses\tpage walks\tpage walks\t \n")
	fmt.Fprintf(table, "difference\t%[1]s\t%[2]s\t%[1]s\t%[2]s\t%[1]s\t%[2]s\t \n", r.Ours.Allocator, r.Peer.Allocator)
	for _, one := range Differences(r.Ours, r.Peer, mostFunctions) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t %s\n", signed(one.cycles()), whole(one.Ours.Instructions), whole(one.Peer.Instructions),
			whole(one.Ours.FarMisses), whole(one.Peer.FarMisses), whole(one.Ours.Walks), whole(one.Peer.Walks), clip(one.Name))
	}
	return table.Flush()
}

func signed(value float64) string {
	if value < 0 {
		return "-" + whole(-value)
	}
	return "+" + whole(value)
}

// clip keeps a name of templates from filling the screen.
func clip(name string) string {
	const most = 70
	if len(name) <= most {
		return name
	}
	return name[:most-3] + "..."
}

// JSON is what programs may read.
func (r *Report) JSON() any {
	entered, paths := r.Ours.SlowPaths()
	return map[string]any{
		"workload": r.Workload, "short_run": r.Short, "ours": r.Ours.Allocator, "peer": r.Peer.Allocator, "groups": r.Groups(),
		"caches": CacheWords, "tlbs": TLBWords, "slow_paths_per_million_allocations": entered, "slow_paths": paths,
		"system_calls": map[string]SystemCalls{"ours": r.Ours.Calls, "peer": r.Peer.Calls},
		"functions":    Differences(r.Ours, r.Peer, 10*mostFunctions),
	}
}
