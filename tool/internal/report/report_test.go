// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"strings"
	"testing"

	"tcm/internal/launch"
)

const oneLine = `{"pid":1,"allocated_bytes":100,"allocations":10,"live_bytes":5,"mapped_bytes":1000,"peak_mapped_bytes":2000}` + "\n"

func TestParseAllocator(t *testing.T) {
	one := Allocator{Processes: 1, AllocatedBytes: 100, Allocations: 10, LiveBytes: 5, MappedBytes: 1000, PeakMappedBytes: 2000}
	two := Allocator{Processes: 2, AllocatedBytes: 200, Allocations: 20, LiveBytes: 10, MappedBytes: 2000, PeakMappedBytes: 4000}
	for _, test := range []struct {
		input string
		want  Allocator
	}{
		{"", Allocator{}},
		{oneLine, one},
		{oneLine + oneLine, two},
		{oneLine + oneLine[:40], one},
		{oneLine + `{"pid":2,"front_end":"per_cpu","front_end_reason":"why"}`, Allocator{Processes: 2, AllocatedBytes: 100, Allocations: 10, LiveBytes: 5, MappedBytes: 1000, PeakMappedBytes: 2000, FrontEnd: "per_cpu", FrontEndReason: "why"}},
		{"{}\nrubbish\n" + oneLine, one},
	} {
		if got, err := ParseAllocator(strings.NewReader(test.input)); err != nil || got != test.want {
			t.Errorf("%q: %+v, %v", test.input, got, err)
		}
	}
}

func TestReport(t *testing.T) {
	result := launch.Result{WallNs: 15e8, UserUs: 12e5, SystemUs: 1e5, MaxRSSKiB: 2048, MinorFaults: 3}
	full := New("prog", result, Allocator{Processes: 2, Allocations: 1234567, AllocatedBytes: 1 << 20, FrontEndReason: "per thread; why"})
	for _, want := range []string{"prog: 1.50 s wall, 1.20 s user + 100 ms system, 2.00 MiB peak resident", "1.00 MiB allocated in all in about 1,234,567 blocks", "2 processes", "caches: per thread; why\n", "tcm run --json"} {
		if !strings.Contains(full.Text(), want) {
			t.Errorf("no %q in\n%s", want, full.Text())
		}
	}
	if silent := New("prog", result, Allocator{Processes: 1}); strings.Contains(silent.Text(), "caches") || strings.Contains(silent.Text(), "about") {
		t.Errorf("a library that does not tell:\n%s", silent.Text())
	}
	result.Exit, result.Signal = -1, 9
	empty := New("prog", result, Allocator{})
	for _, want := range []string{"ended by signal 9 (killed)", "no figures from the allocator"} {
		if !strings.Contains(empty.Text(), want) {
			t.Errorf("no %q in\n%s", want, empty.Text())
		}
	}
	data, err := json.Marshal(empty)
	if err != nil || strings.Contains(string(data), "allocator") || !strings.Contains(string(data), `"signal":9`) {
		t.Errorf("%s, %v", data, err)
	}
}
