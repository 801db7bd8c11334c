// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/pprof/profile"

	"tcm/internal/project"
)

// leakProfile has a place that lost one block of 100 bytes, with two of 10 that it led to, and a place of which
// only such blocks are lost.
func leakProfile() *profile.Profile {
	mapping := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, File: "/nowhere/shop"}
	make := &profile.Function{ID: 1, Name: "Make", Filename: "shop.cc"}
	main := &profile.Function{ID: 2, Name: "main", Filename: "shop.cc"}
	start := &profile.Function{ID: 3, Name: "_start"}
	location := func(id uint64, function *profile.Function, line int64) *profile.Location {
		return &profile.Location{ID: id, Mapping: mapping, Address: 0x1000 + id, Line: []profile.Line{{Function: function, Line: line}}}
	}
	made, below, outermost := location(1, make, 7), location(2, main, 20), location(3, start, 0)
	label := func(text string) map[string][]string { return map[string][]string{"lost": {text}} }
	return &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		Sample: []*profile.Sample{
			{Location: []*profile.Location{below, outermost}, Value: []int64{1, 50}, Label: label("indirectly")},
			{Location: []*profile.Location{made, below, outermost}, Value: []int64{1, 100}, Label: label("directly")},
			{Location: []*profile.Location{made, below, outermost}, Value: []int64{2, 20}, Label: label("indirectly")},
		},
		Location: []*profile.Location{made, below, outermost},
		Function: []*profile.Function{make, main, start},
		Mapping:  []*profile.Mapping{mapping},
	}
}

func TestLeaksOfAFile(t *testing.T) {
	var written bytes.Buffer
	if err := leakProfile().Write(&written); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "shop.1._main_-end.heap.pb.gz")
	if err := os.WriteFile(path, written.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	output, _, err := called("leaks", path)
	expected := " leaks 170 B in 4 blocks, allocated at 2 places\n\n" +
		"100 B in 1 block, and 20 B in 2 blocks to which only other leaks lead\n" +
		"    Make  shop.cc:7\n    main  shop.cc:20\n\n" +
		"50 B in 1 block, to which only other leaks lead\n    main  shop.cc:20\n"
	if err != nil || !strings.HasSuffix(output, expected) {
		t.Errorf("%s%v", output, err)
	}
	output, _, err = called("leaks", "--top", "1", path)
	if err != nil || !strings.HasSuffix(output, "1 place more; --top 0 shows all\n") {
		t.Errorf("%s%v", output, err)
	}
	output, _, err = called("leaks", "--json", path)
	var made leakReport
	if err != nil || json.Unmarshal([]byte(output), &made) != nil || made.Bytes != 170 || made.Places[0].IndirectObjects != 2 {
		t.Errorf("%s%v", output, err)
	}
}

// TestPlacesOfLeaks has two calls that look alike, below functions of an archive's allocator, and one in a file without names.
func TestPlacesOfLeaks(t *testing.T) {
	made := leakProfile()
	below, outermost := made.Location[1], made.Location[2]
	allocator := &profile.Function{ID: 4, Name: "tcmalloc::MallocSlow"}
	slow := &profile.Location{ID: 4, Mapping: made.Mapping[0], Address: 0x1004, Line: []profile.Line{{Function: allocator}}}
	again := &profile.Location{ID: 5, Mapping: made.Mapping[0], Address: 0x1005, Line: below.Line}
	nameless := &profile.Location{ID: 6, Mapping: made.Mapping[0], Address: 0x1006}
	made.Location, made.Function = append(made.Location, slow, again, nameless), append(made.Function, allocator)
	made.Sample = []*profile.Sample{
		{Location: []*profile.Location{slow, below, outermost}, Value: []int64{1, 50}},
		{Location: []*profile.Location{slow, again, outermost}, Value: []int64{1, 50}},
		{Location: []*profile.Location{slow, nameless, below, slow, outermost}, Value: []int64{1, 10}},
	}
	output, _, err := called("leaks", writeProfile(t, "shop.1._main_-end.heap.pb.gz", made))
	expected := " leaks 110 B in 3 blocks, allocated at 2 places\n\n100 B in 2 blocks\n    main  shop.cc:20\n\n" +
		"10 B in 1 block\n    shop+0x6\n    main  shop.cc:20\n"
	if err != nil || !strings.HasSuffix(output, expected) {
		t.Errorf("%s%v", output, err)
	}
}

// TestLeaksOfRust ends stacks at the function by which Rust calls main.
func TestLeaksOfRust(t *testing.T) {
	made := leakProfile()
	made.Function[1].Name, made.Function[2].Name = "shop::main", "std::sys::backtrace::_rust_begin_short_backtrace"
	output, _, err := called("leaks", writeProfile(t, "shop.1._main_-end.heap.pb.gz", made))
	if err != nil || !strings.Contains(output, "    shop::main  shop.cc:20\n") || strings.Contains(output, "backtrace") {
		t.Errorf("%s%v", output, err)
	}
}

func TestNoLeaks(t *testing.T) {
	var page strings.Builder
	if err := (&leakReport{Program: "shop"}).write(&page, 20); err != nil || page.String() != "shop: no leaks\n" {
		t.Errorf("%q %v", page.String(), err)
	}
}

func TestLeaksRefusesWrongWords(t *testing.T) {
	heap := shopFile(t, "heap.pb.gz", 1)
	missing := filepath.Join(t.TempDir(), "typo.pb.gz")
	if _, _, err := called("leaks", heap, missing); err == nil || err.Error() != missing+": no such file or directory" {
		t.Errorf("%v", err)
	}
	if _, err := (&leakFlags{suppressions: missing}).variables("library"); err == nil || err.Error() != "--suppressions "+missing+": no such file or directory" {
		t.Errorf("%v", err)
	}
	if _, _, err := called("symbolize", missing); err == nil || err.Error() != missing+": no such file or directory" {
		t.Errorf("%v", err)
	}
	for _, words := range [][]string{{"leaks"}, {"leaks", "--mode", "local", "--", "true"}, {"leaks", heap},
		{"leaks", "--top", "-5", writeProfile(t, "leaks", leakProfile())}} {
		if _, _, err := called(words...); err == nil {
			t.Errorf("%v was accepted", words)
		}
	}
}

// suspectProfile is a heap after some minutes: one place has ten blocks for each, another has as many as ever.
func suspectProfile(minutes int64, labels bool) *profile.Profile {
	made := leakProfile()
	made.TimeNanos = 1e18 + minutes*60e9
	samples := made.Sample
	made.Sample = nil
	for i := range 10 * minutes {
		sample := &profile.Sample{Location: samples[1].Location, Value: []int64{1, 100}}
		if labels {
			sample.Label = map[string][]string{"leak": {"suspect"}}
			sample.NumLabel = map[string][]int64{"age": {i * 6000}, "leak_growth": {1000}, "leak_confidence": {85}}
		}
		made.Sample = append(made.Sample, sample)
	}
	steady := &profile.Sample{Location: samples[0].Location, Value: []int64{5, 500}}
	if labels {
		steady.NumLabel = map[string][]int64{"age": {0}}
	}
	made.Sample = append(made.Sample, steady)
	return made
}

func writeProfile(t *testing.T, name string, made *profile.Profile) string {
	t.Helper()
	var written bytes.Buffer
	if err := made.Write(&written); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, written.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSuspects(t *testing.T) {
	early, late := writeProfile(t, "early", suspectProfile(2, true)), writeProfile(t, "late", suspectProfile(10, true))
	place := "    Make  shop.cc:7\n    main  shop.cc:20\n"
	output, _, err := called("leaks", late)
	expected := late + ": 1 suspect of 2 call sites\n\n" +
		"9.77 KiB in 100 blocks, 1000 B more each minute, the oldest 594 s old, confidence 85 %\n" + place
	if err != nil || output != expected {
		t.Errorf("%s%v", output, err)
	}
	output, _, err = called("leaks", early, late)
	if err != nil || !strings.HasSuffix(output, place) || !strings.Contains(output, "1 suspect of 2 call sites, compared with "+early) {
		t.Errorf("%s%v", output, err)
	}
	var made suspectReport
	output, _, err = called("leaks", "--json", early, late)
	if err != nil || json.Unmarshal([]byte(output), &made) != nil || len(made.Suspects) != 1 || made.Suspects[0].Growth != 8000 || made.Suspects[0].BytesPerMinute != 1000 {
		t.Errorf("%s%v", output, err)
	}
	output, _, err = called("leaks", late, late)
	if err != nil || !strings.Contains(output, ": 0 suspects of 2 call sites") {
		t.Errorf("%s%v", output, err)
	}
}

// Profiles of other allocators know no ages.
func TestSuspectsWithoutAges(t *testing.T) {
	early, late := writeProfile(t, "early", suspectProfile(2, false)), writeProfile(t, "late", suspectProfile(10, false))
	output, _, err := called("leaks", early, late)
	if err != nil || !strings.Contains(output, "1 suspect of 2") || !strings.Contains(output, "1000 B more each minute, confidence 55 %") {
		t.Errorf("%s%v", output, err)
	}
	// A place with bytes and no blocks.
	empty := suspectProfile(10, false)
	empty.Sample = append(empty.Sample[:0], &profile.Sample{Location: empty.Sample[0].Location, Value: []int64{0, 100}})
	var made suspectReport
	output, _, err = called("leaks", "--json", writeProfile(t, "none", suspectProfile(0, false)), writeProfile(t, "empty", empty))
	if err != nil || json.Unmarshal([]byte(output), &made) != nil || len(made.Suspects) != 0 {
		t.Errorf("%s%v", output, err)
	}
	if output, _, err = called("leaks", late); err == nil || !strings.Contains(err.Error(), "ages") {
		t.Errorf("%s%v", output, err)
	}
}

// leaking loses ten blocks and ends as its argument says.
const leaking = `
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static volatile char stack[4096];
__attribute__((noinline)) static void Lose(void) {
  for (int i = 0; i < 10; ++i) {
    void* volatile block = malloc(1000);
    block = NULL;
  }
}
int main(int argc, char** argv) {
  volatile char below[4096];
  Lose();
  for (int i = 0; i < 4096; ++i) below[i] = stack[i] = 0;
  if (argc > 1) exit(atoi(argv[1]));
  return below[7];
}
`

func buildLeaking(t *testing.T) string {
	t.Helper()
	return buildNamed(t, "leaking", leaking)
}

// buildNamed compiles a program in C; words come behind it.
func buildNamed(t *testing.T, name, source string, words ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(program+".c", []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	build(t, "cc", append([]string{"-g", "-O1", "-fno-builtin", "-o", program, program + ".c"}, words...)...)
	return program
}

// leaksOf returns a function that calls tcm leaks with the library of this checkout, and a program that leaks.
func leaksOf(t *testing.T) (leaks func(words ...string) ended, program string) {
	t.Helper()
	library, err := project.FullLibrary("", "")
	if err != nil {
		t.Skip(err)
	}
	tcm := install(t)
	return func(words ...string) ended {
		t.Helper()
		return tcm.run(t, append([]string{"leaks", "--library", library}, words...)...)
	}, buildLeaking(t)
}

func TestLeaksOfAProgram(t *testing.T) {
	leaks, program := leaksOf(t)
	for status, words := range map[int][]string{1: {program}, 3: {program, "3"}} {
		got := leaks(words...)
		if got.status.ExitStatus() != status || !strings.Contains(got.errors, " leaks 9.77 KiB in 10 blocks, allocated at 1 place\n") ||
			!strings.Contains(got.errors, "    Lose  ") {
			t.Errorf("%q: %+v", words, got)
		}
	}
	if got := leaks("--", "true"); got.status.ExitStatus() != 0 || !strings.HasSuffix(got.errors, ": no leaks\n") {
		t.Errorf("%+v", got)
	}
	var made leakReport
	got := leaks("--json", "--", "sh", "-c", "kill -KILL $$")
	if err := json.Unmarshal([]byte(got.errors), &made); err != nil || made.Program != "sh" || !strings.HasPrefix(made.Note, "sh was not checked: ") || made.Places == nil {
		t.Errorf("%v: %+v", err, got)
	}
	script := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(script, []byte("exit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for status, words := range map[int][]string{127: {"--", "/nonexistent"}, 126: {"--", "/etc/passwd"}, 7: {"--", script}} {
		if got := leaks(words...); got.status.ExitStatus() != status {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

// ownAllocator brings a malloc of its own, and loses a block of it.
const ownAllocator = `
#include <stddef.h>
#include <string.h>
static _Alignas(16) char memory[1 << 20];
static size_t used;
void* malloc(size_t size) { used += 16 + (size + 15 & ~(size_t)15); return memory + used - (size + 15 & ~(size_t)15); }
void* calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
void* realloc(void* block, size_t size) { return block ? memcpy(malloc(size), block, size) : malloc(size); }
void free(void* block) {}
int main(void) { return ((char*)malloc(100))[0]; }
`

// TestLeaksOfOtherMallocs does not take a program for one without leaks of which no block was seen, unless the library
// is a part of it.
func TestLeaksOfOtherMallocs(t *testing.T) {
	leaks, _ := leaksOf(t)
	own := buildNamed(t, "own", ownAllocator)
	for _, words := range [][]string{{own}, {"sh", "-c", "exec " + own}} {
		got := leaks(append([]string{"--"}, words...)...)
		if got.status.ExitStatus() != 0 || got.errors != "tcm: "+words[0]+" was not checked: own has a malloc of its own\n" {
			t.Errorf("%q: %+v", words, got)
		}
	}
	var made leakReport
	if got := leaks("--json", "--", own); json.Unmarshal([]byte(got.errors), &made) != nil || !strings.HasSuffix(made.Note, ": own has a malloc of its own") {
		t.Errorf("%+v", got)
	}
	library, err := project.FullLibrary("", "")
	if err != nil {
		t.Fatal(err)
	}
	linked := buildNamed(t, "linked", "int main(void) { return 0; }", filepath.Join(filepath.Dir(library), fullArchive), "-lstdc++", "-pthread")
	if got := leaks("--", linked); got.status.ExitStatus() != 0 || !strings.HasSuffix(got.errors, ": no leaks\n") {
		t.Errorf("%+v", got)
	}
}

// TestSignalsUnderLeaks looks at signals of a terminal, which the program must get, and at those that only tcm gets.
func TestSignalsUnderLeaks(t *testing.T) {
	leaks, _ := leaksOf(t)
	got := leaks("--", "sh", "-c", "grep SigIgn /proc/self/status")
	if !strings.HasSuffix(got.output, "0000000000000000\n") {
		t.Errorf("the program ignores signals: %+v", got)
	}
	for _, name := range []string{"INT", "TERM", "HUP"} {
		got := leaks("--", "sh", "-c", "trap 'exit 9' "+name+"; (kill -"+name+" $PPID); for i in 1 2 3 4; do sleep 0.1; done")
		if got.status.ExitStatus() != 9 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := leaks("--", "sh", "-c", "kill -TERM $$"); got.status.Signal() != syscall.SIGTERM {
		t.Errorf("%+v", got)
	}
}
