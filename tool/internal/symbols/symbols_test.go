// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"tcm/internal/profiles"
)

// program prints a heap profile of its own: a stack of three calls, one of them inlined, and its maps.
const program = `
#include <cstdio>
#include <cstdlib>
namespace shop {
template <typename T> struct Shelf { static void Fill(int count); };
}
static void* addresses[3];
__attribute__((noinline)) static void Record(int place) { addresses[place] = __builtin_return_address(0); }
namespace shop { namespace {
struct Till {
  __attribute__((always_inline)) static inline void InlinedCall() {
    Record(0);  // INLINED
    asm volatile("");
  }
};
}}
template <typename T> __attribute__((noinline)) void shop::Shelf<T>::Fill(int count) {
  Till::InlinedCall();  // CALL
  asm volatile("" : : "r"(count));
}
#ifdef LIBRARY
extern "C" void Exported() { shop::Shelf<int>::Fill(1); asm volatile(""); }
extern "C" void* Address() { return addresses[0]; }
#else
extern "C" void Exported();
extern "C" void* Address();
#ifndef SPLIT
extern "C" __attribute__((noinline)) void Exported() { shop::Shelf<int>::Fill(1); asm volatile(""); }
extern "C" void* Address() { return addresses[0]; }
#endif
int main() {
  Exported();
  Record(1);
  printf("heap profile: 1: 64 [1: 64] @ heapprofile\n1: 64 [1: 64] @ %p %p\n\nMAPPED_LIBRARIES:\n", Address(), addresses[1]);
  fflush(stdout);
  FILE* maps = fopen("/proc/self/maps", "r");
  for (int letter; (letter = getc(maps)) != EOF;) putchar(letter);
}
#endif
`

// maker compiles the program in a folder of its own.
type maker struct {
	t      *testing.T
	folder string
}

func newMaker(t *testing.T) maker {
	t.Helper()
	made := maker{t, t.TempDir()}
	if err := os.WriteFile(made.path("program.cc"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	return made
}

func (m maker) path(name string) string { return filepath.Join(m.folder, name) }

func (m maker) run(name string, words ...string) string {
	m.t.Helper()
	command := exec.Command(name, words...)
	command.Dir = m.folder
	output, err := command.CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s %v: %v\n%s", name, words, err, output)
	}
	return string(output)
}

// profile runs the program and returns what it printed.
func (m maker) profile() *profile.Profile {
	m.t.Helper()
	made, err := profiles.Parse([]byte(m.run(m.path("program"))))
	if err != nil {
		m.t.Fatal(err)
	}
	return made
}

// lineOf returns the number of the line with a comment.
func lineOf(comment string) int64 {
	before, _, _ := strings.Cut(program, "// "+comment)
	return int64(strings.Count(before, "\n") + 1)
}

func names(location *profile.Location) string {
	var words []string
	for _, line := range location.Line {
		words = append(words, line.Function.Name)
	}
	return strings.Join(words, " < ")
}

func TestInlinedFrames(t *testing.T) {
	for _, options := range [][]string{{"-pie", "-fPIE"}, {"-no-pie"}, {"-gdwarf-4"}, {"-gdwarf-5", "-gz=zlib"}} {
		made := newMaker(t)
		made.run("c++", append([]string{"-g", "-O2", "program.cc", "-o", "program"}, options...)...)
		found := made.profile()
		if problems := Symbolize(found, Options{}); len(problems) > 0 {
			t.Errorf("%v: %q", options, problems)
		}
		inner := found.Sample[0].Location[0]
		if names(inner) != "shop::(anonymous namespace)::Till::InlinedCall < shop::Shelf::Fill" || names(found.Sample[0].Location[1]) != "main" {
			t.Fatalf("%v: %s, %s", options, names(inner), names(found.Sample[0].Location[1]))
		}
		if inner.Line[0].Line != lineOf("INLINED") || inner.Line[1].Line != lineOf("CALL") ||
			filepath.Base(inner.Line[0].Function.Filename) != "program.cc" {
			t.Errorf("%v: lines %d and %d of %s", options, inner.Line[0].Line, inner.Line[1].Line, inner.Line[0].Function.Filename)
		}
	}
}

func TestFullNames(t *testing.T) {
	made := newMaker(t)
	made.run("c++", "-g", "-O2", "program.cc", "-o", "program")
	found := made.profile()
	Symbolize(found, Options{FullNames: true})
	if got := names(found.Sample[0].Location[0]); got != "shop::(anonymous namespace)::Till::InlinedCall < shop::Shelf<int>::Fill(int)" {
		t.Error(got)
	}
}

func TestSymbolTables(t *testing.T) {
	made := newMaker(t)
	made.run("c++", "-O2", "program.cc", "-o", "program")
	found := made.profile()
	Symbolize(found, Options{})
	if got := names(found.Sample[0].Location[0]); got != "shop::Shelf::Fill" {
		t.Errorf("symbol table: %s", got)
	}
	made.run("c++", "-O2", "-rdynamic", "-s", "program.cc", "-o", "program")
	found = made.profile()
	Symbolize(found, Options{})
	if got := names(found.Sample[0].Location[0]); got != "shop::Shelf::Fill" {
		t.Errorf("dynamic symbol table: %s", got)
	}
	made.run("c++", "-O2", "-s", "program.cc", "-o", "program")
	found = made.profile()
	Symbolize(found, Options{})
	set, err := profiles.Select(found, profiles.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range set.Stacks[0].Frames {
		if !strings.HasPrefix(frame.Name, "program+0x") {
			t.Errorf("no symbols, and yet %s", frame.Name)
		}
	}
}

// TestFunctionsWithoutNames has two calls in one function of a stripped file, whose start and size the table for unwinding
// knows, and a file without that table.
func TestFunctionsWithoutNames(t *testing.T) {
	made := newMaker(t)
	made.run("c++", "-O2", "program.cc", "-o", "program")
	var start, size uint64
	for _, line := range strings.Split(made.run("nm", "-S", "program"), "\n") {
		if words := strings.Fields(line); len(words) == 4 && words[3] == "main" {
			fmt.Sscanf(words[0]+" "+words[1], "%x %x", &start, &size)
		}
	}
	want := fmt.Sprintf("program+0x%x", start)
	for path, isKnown := range map[string]bool{"stripped": true, "bare": false} {
		made.run("cp", "program", path)
		made.run("strip", "--remove-section=.eh_frame"+map[bool]string{true: "_none", false: "_hdr"}[isKnown], path)
		mapping := &profile.Mapping{ID: 1, Start: 0x1000000, Limit: 0x1000000 + start + size + 1, File: made.path(path)}
		at := &profile.Profile{Mapping: []*profile.Mapping{mapping}}
		for i, offset := range []uint64{0, size / 2, size - 1, size} {
			at.Location = append(at.Location, &profile.Location{ID: uint64(i) + 1, Mapping: mapping, Address: mapping.Start + start + offset})
		}
		Symbolize(at, Options{})
		for i, one := range at.Location {
			if got := names(one); (got == strings.Replace(want, "program", path, 1)) != (isKnown && i < 3) {
				t.Errorf("%s: location %d: %q, want %s", path, i, got, want)
			}
		}
	}
}

func TestSharedLibrary(t *testing.T) {
	made := newMaker(t)
	made.run("c++", "-g", "-O2", "-DLIBRARY", "-shared", "-fPIC", "program.cc", "-o", "libshelf.so")
	made.run("c++", "-g", "-O2", "-DSPLIT", "program.cc", "-o", "program", "./libshelf.so", "-Wl,-rpath,"+made.folder)
	found := made.profile()
	Symbolize(found, Options{})
	inner := found.Sample[0].Location[0]
	if names(inner) != "shop::(anonymous namespace)::Till::InlinedCall < shop::Shelf::Fill" || !strings.HasSuffix(inner.Mapping.File, "/libshelf.so") {
		t.Errorf("%s in %s", names(inner), inner.Mapping.File)
	}
}

func TestDebuggingInformationApart(t *testing.T) {
	const want = "shop::(anonymous namespace)::Till::InlinedCall < shop::Shelf::Fill"
	made := newMaker(t)
	made.run("c++", "-g", "-O2", "-Wl,--build-id=0x0123456789abcdef", "program.cc", "-o", "program")
	made.run("objcopy", "--only-keep-debug", "program", "program.debug")
	made.run("objcopy", "--strip-all", "--add-gnu-debuglink=program.debug", "program")
	found := made.profile()
	Symbolize(found, Options{})
	if got := names(found.Sample[0].Location[0]); got != want {
		t.Errorf("by name: %s", got)
	}
	// A file of that name with other content is not taken.
	if err := os.WriteFile(made.path("program.debug"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := made.profile()
	Symbolize(other, Options{})
	if got := names(other.Sample[0].Location[0]); !strings.HasPrefix(got, "program+0x") {
		t.Errorf("by a wrong file: %s", got)
	}
}

func TestBuildIDs(t *testing.T) {
	const id = "0123456789abcdef"
	made := newMaker(t)
	compile := func(buildID, target string) {
		made.run("c++", "-g", "-O2", "-Wl,--build-id=0x"+buildID, "program.cc", "-o", target)
	}
	compile(id, "program")
	found, again := made.profile(), made.profile()
	for _, one := range []*profile.Profile{found, again} {
		for _, mapping := range one.Mapping {
			if filepath.Base(mapping.File) == "program" {
				mapping.BuildID = id
			}
		}
	}
	root := t.TempDir()
	filed := filepath.Join(root, debugFolder, ".build-id", id[:2])
	if err := os.MkdirAll(filed, 0o755); err != nil {
		t.Fatal(err)
	}
	made.run("objcopy", "--only-keep-debug", "program", filepath.Join(filed, id[2:]+".debug"))
	// Only the debugging information is there; the program was removed.
	Symbolize(found, Options{Root: root})
	if got := names(found.Sample[0].Location[0]); got != "shop::(anonymous namespace)::Till::InlinedCall < shop::Shelf::Fill" {
		t.Errorf("by build id: %s", got)
	}
	compile("fedcba9876543210", "program")
	problems := Symbolize(again, Options{})
	if len(problems) != 1 || !strings.Contains(problems[0], errOtherBuild.Error()) || names(again.Sample[0].Location[0]) != "" {
		t.Errorf("another build: %q, %s", problems, names(again.Sample[0].Location[0]))
	}
}

func TestReadableNames(t *testing.T) {
	for name, want := range map[string]string{
		"main": "main", "std::invoke<void, f()::<lambda(int)> >": "std::invoke", "operator<": "operator<", "a::operator-><b>": "a::operator-><b>",
		"_ZN4shop5ShelfIiE4FillEi": "shop::Shelf::Fill", "memcpy@@GLIBC_2.14": "memcpy", "slow.cold": "slow", "_Znwm": "operator new",
		"_RINvNtCs1_4shop4till4openmE": "shop::till::open", "_Znwm@plt": "operator new@plt",
	} {
		if got := (&symbolizer{}).readable(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestAddressesWithoutFile(t *testing.T) {
	for number, want := range map[int]string{1: "; 1 address stays as it is", 1000: "; 1,000 addresses stay as they are"} {
		mapping := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, File: filepath.Join(t.TempDir(), "missing")}
		made := &profile.Profile{Mapping: []*profile.Mapping{mapping}}
		for i := range number {
			made.Location = append(made.Location, &profile.Location{ID: uint64(i) + 1, Mapping: mapping, Address: 0x1000 + uint64(i)})
		}
		if problems := Symbolize(made, Options{}); len(problems) != 1 || !strings.HasSuffix(problems[0], want) {
			t.Errorf("%q, want %s", problems, want)
		}
	}
}

func TestVDSO(t *testing.T) {
	content, err := ownVDSO()
	if err != nil {
		t.Skip(err)
	}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	id := buildIDOf(file)
	functions := functionsOf(file.DynamicSymbols)
	if id == "" || len(functions) == 0 {
		t.Skip("the kernel's code has no build id or no functions")
	}
	const start = 0x7f0000000000
	for buildID, want := range map[string]bool{id: true, "": false, "0123": false} {
		mapping := &profile.Mapping{ID: 1, Start: start, Limit: start + uint64(len(content)), File: vdsoName, BuildID: buildID}
		location := &profile.Location{ID: 1, Mapping: mapping, Address: start + functions[0].address}
		made := &profile.Profile{Mapping: []*profile.Mapping{mapping}, Location: []*profile.Location{location}}
		problems := Symbolize(made, Options{})
		if len(problems) != 0 || (names(location) != "") != want {
			t.Errorf("%q: %q, %q", buildID, problems, names(location))
		}
	}
}

func TestMappingsWithoutFiles(t *testing.T) {
	for _, name := range []string{"", "[vdso]", "[heap]", "//anon", "/memfd:x", "/dev/zero"} {
		if isFile(name) {
			t.Errorf("%q is opened", name)
		}
	}
	if _, err := openObject("", t.TempDir(), ""); err == nil {
		t.Error("a folder is opened")
	}
}
