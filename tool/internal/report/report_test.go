// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tcm/internal/launch"
)

const oneLine = `{"pid":1,"allocated_bytes":100,"allocations":10,"live_bytes":5,"mapped_bytes":1000,"peak_mapped_bytes":2000}` + "\n"

func TestParseAllocator(t *testing.T) {
	one := Allocator{Processes: 1, AllocatedBytes: 100, Allocations: 10, LiveBytes: 5, MappedBytes: 1000, PeakMappedBytes: 2000}
	two := Allocator{Processes: 2, AllocatedBytes: 200, Allocations: 20, LiveBytes: 5, MappedBytes: 1000, PeakMappedBytes: 2000}
	larger := Allocator{Processes: 2, AllocatedBytes: 101, Allocations: 11, LiveBytes: 1, MappedBytes: 3000, PeakMappedBytes: 3000}
	for _, test := range []struct {
		input string
		want  Allocator
	}{
		{"", Allocator{}},
		{oneLine, one},
		{oneLine + oneLine, two},
		{oneLine + `{"pid":2,"allocated_bytes":1,"allocations":1,"live_bytes":1,"mapped_bytes":3000,"peak_mapped_bytes":3000}`, larger},
		{oneLine + oneLine[:40], one},
		{oneLine + `{"pid":2,"front_end":"per_cpu","front_end_reason":"why"}`, Allocator{Processes: 2, AllocatedBytes: 100, Allocations: 10, LiveBytes: 5, MappedBytes: 1000, PeakMappedBytes: 2000, FrontEnd: "per_cpu", FrontEndReason: "why"}},
		{"{}\nrubbish\n" + oneLine, one},
		{oneLine + strings.Repeat("x", 3*maxLine) + "\n" + oneLine, two},
		{oneLine + strings.Repeat("x", maxLine) + oneLine, one},
	} {
		if got, err := ParseAllocator(strings.NewReader(test.input)); err != nil || got != test.want {
			t.Errorf("%.500q: %+v, %v", test.input, got, err)
		}
	}
}

// called is how the commands are called here.
var called = Commands{Run: "./run", Bench: "build/tcm bench"}

func TestReport(t *testing.T) {
	result := launch.Result{WallNs: 15e8, UserUs: 12e5, SystemUs: 1e5, MaxRSSKiB: 2048, MinorFaults: 3}
	prog := Run{Program: "/usr/bin/prog", Library: "/nonexistent"}
	full := New(prog, result, Allocator{Processes: 2, Allocations: 1234567, AllocatedBytes: 1 << 20, FrontEndReason: "per thread; why"})
	for _, want := range []string{
		"prog: 1.50 s wall, 1.20 s user + 100 ms system, 2.00 MiB peak resident",
		"2 processes: 1.00 MiB allocated in about 1,200,000 blocks; the largest one: 0 B in use at exit",
		"caches: per thread; why\n", "all figures: ./run --json prog; other allocators: build/tcm bench -- prog\n",
	} {
		if !strings.Contains(full.Text(called), want) {
			t.Errorf("no %q in\n%s", want, full.Text(called))
		}
	}
	words := called
	words.Program = "prog -x 'a b'"
	if want := "all figures: ./run --json prog -x 'a b'; other allocators: build/tcm bench -- prog -x 'a b'\n"; !strings.Contains(full.Text(words), want) {
		t.Errorf("no %q in\n%s", want, full.Text(words))
	}
	if silent := New(prog, result, Allocator{Processes: 1, AllocatedBytes: 1, Allocations: 1}); strings.Contains(silent.Text(called), "caches") || strings.Contains(silent.Text(called), "about") {
		t.Errorf("a library that does not tell:\n%s", silent.Text(called))
	}
	if nothing := New(prog, result, Allocator{Processes: 1}); !strings.Contains(nothing.Text(called), "not called: the program allocated nothing\n") {
		t.Errorf("%s", nothing.Text(called))
	}
	if data, err := json.Marshal(full); err != nil || !strings.Contains(string(data), `"allocations":1234567,"allocations_are_estimated":true`) {
		t.Errorf("%s, %v", data, err)
	}
	result.Exit, result.Signal = -1, 9
	empty := New(prog, result, Allocator{})
	for _, want := range []string{"ended by signal 9 (killed)", "no figures from the allocator: a signal ended the program"} {
		if !strings.Contains(empty.Text(called), want) {
			t.Errorf("no %q in\n%s", want, empty.Text(called))
		}
	}
	data, err := json.Marshal(empty)
	if err != nil || strings.Contains(string(data), "allocator\":") || !strings.Contains(string(data), `"signal":9`) {
		t.Errorf("%s, %v", data, err)
	}
}

// TestBlocksOfFewSamples has no numbers of blocks that may be half as large as they are said to be, or twice.
func TestBlocksOfFewSamples(t *testing.T) {
	for blocks, isShown := range map[int64]bool{0: false, 8800: false, 400000: false, leastEstimate: true, 2000000: true} {
		made := New(Run{Program: "prog"}, launch.Result{}, Allocator{Processes: 1, AllocatedBytes: 100 << 20, Allocations: blocks})
		if shown := made.Text(called); strings.Contains(shown, "MiB allocated in about ") != isShown {
			t.Errorf("%d blocks:\n%s", blocks, shown)
		}
		if made.Allocator.Allocations != blocks {
			t.Errorf("%d blocks are %d in JSON", blocks, made.Allocator.Allocations)
		}
	}
}

func build(t *testing.T, words ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "made")
	command := exec.Command("cc", append(words, "-xc", "-", "-o", path)...)
	command.Stdin = strings.NewReader("int main(void) { return 0; }\n" +
		"#ifndef PLAIN\nvoid free(void* block) { (void)block; }\n" +
		"void* malloc(unsigned long size) { static char room[64]; return size ? room : 0; }\n#endif\n" +
		"#ifdef GO\nconst char versions[] __attribute__((section(\".go.buildinfo\"), used)) = \"go\";\n#endif\n")
	if output, err := command.CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, output)
	}
	return path
}

func TestSilence(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	static := build(t, "-static", "-DPLAIN")
	if err := os.WriteFile(script, []byte("#!"+static+" -x\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		run    Run
		signal int
		want   string
	}{
		{Run{Program: "true", Library: build(t, "-shared", "-fPIC")}, 0, "an unknown allocator, which leaves none"},
		{Run{Program: static}, 0, "made is linked statically"},
		{Run{Program: script}, 9, "made is linked statically"},
		{Run{Program: build(t)}, 9, "a signal ended the program"},
		{Run{Program: build(t)}, 0, "without its exit handlers"},
		{Run{Program: build(t, "-static", "-DPLAIN", "-DGO")}, 0, "made is a Go program without libc"},
		{Run{Program: build(t, "-DGO")}, 0, "made is a Go program, whose runtime"},
	} {
		if got := silence(test.run, launch.Result{Signal: test.signal}); !strings.Contains(got, test.want) {
			t.Errorf("%v: %q, want %q", test.run, got, test.want)
		}
	}
}
