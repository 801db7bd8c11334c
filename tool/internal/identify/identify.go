// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package identify tells allocators apart by their files.
package identify

import (
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Ours is the kind of this project's libraries.
const Ours = "tcmalloc"

// ErrNoAllocator says that a library does not serve malloc.
var ErrNoAllocator = errors.New("it defines no malloc and free, so it is no allocator")

var errNoLibrary = errors.New("it is no shared library")

// Allocator is what a file turned out to be.
type Allocator struct {
	Path string
	// Kind is a name such as jemalloc, or "an unknown allocator".
	Kind string
	// Version is empty where the file does not tell.
	Version string
	// CompatibleWith is the interface that our own library says to have.
	CompatibleWith string
}

// IsOurs says whether the library is one of this project.
func (a Allocator) IsOurs() bool { return a.Kind == Ours }

// String is a name for people: "gperftools 2.10".
func (a Allocator) String() string {
	if a.Version == "" {
		return a.Kind
	}
	return a.Kind + " " + a.Version
}

// kind is known by a symbol that no other allocator has; version finds what its file says.
type kind struct {
	name, symbol string
	version      *regexp.Regexp
}

var gperftoolsVersion = regexp.MustCompile(`gperftools (\d+(?:\.\d+)+)`)

// kinds are asked in this order: libraries of one family share symbols.
var kinds = []kind{
	{Ours, "tcmalloc_per_cpu_caches_active", nil},
	{"google/tcmalloc", "MallocExtension_Internal_GetStats", nil},
	{"gperftools", "tc_version", gperftoolsVersion},
	{"jemalloc", "mallctl", regexp.MustCompile(`(\d+\.\d+\.\d+)-\d+-g[0-9a-f]{40}`)},
	{"jemalloc", "_rjem_mallctl", regexp.MustCompile(`(\d+\.\d+\.\d+)-\d+-g[0-9a-f]{40}`)},
	{"mimalloc", "mi_version", nil},
	{"tbbmalloc", "scalable_malloc", nil},
	{"tbbmalloc", "__TBB_malloc_proxy", nil},
	{"snmalloc", "sn_rust_alloc", nil},
	{"rpmalloc", "rpmalloc", nil},
}

// File looks at a shared library. The error is ErrNoAllocator where it is one of another purpose.
func File(path string) (Allocator, error) {
	file, err := elf.Open(path)
	var noFormat *elf.FormatError
	if errors.As(err, &noFormat) || errors.Is(err, io.EOF) {
		return Allocator{}, errNoLibrary
	}
	if err != nil {
		return Allocator{}, err
	}
	defer file.Close()
	if file.Type != elf.ET_DYN {
		return Allocator{}, errNoLibrary
	}
	defined, err := definedSymbols(file)
	if err != nil {
		return Allocator{}, err
	}
	if !servesMalloc(defined) {
		return Allocator{}, ErrNoAllocator
	}
	// libc's own malloc is what every program has anyway.
	if isLibc(path) {
		return Allocator{Path: path, Kind: "glibc"}, nil
	}
	found := Allocator{Path: path, Kind: "an unknown allocator"}
	for _, one := range kinds {
		if defined[one.symbol] {
			found.Kind = one.name
			found.Version = version(file, one.version)
			break
		}
	}
	if found.IsOurs() {
		found.CompatibleWith = "gperftools " + version(file, gperftoolsVersion)
	}
	return found, nil
}

func isLibc(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && strings.HasPrefix(filepath.Base(real), "libc.so")
}

func servesMalloc(defined map[string]bool) bool {
	return defined["malloc"] && defined["free"]
}

// Defines says whether a shared library has a symbol.
func Defines(path, symbol string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	defined, err := definedSymbols(file)
	return err == nil && defined[symbol]
}

// DefinesMalloc says whether a program brings a malloc of its own, which comes before any library's.
func DefinesMalloc(file *elf.File) bool {
	defined, err := definedSymbols(file)
	return err == nil && servesMalloc(defined)
}

func definedSymbols(file *elf.File) (map[string]bool, error) {
	symbols, err := file.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	defined := map[string]bool{}
	for _, symbol := range symbols {
		if symbol.Section != elf.SHN_UNDEF {
			defined[symbol.Name] = true
		}
	}
	return defined, nil
}

// version finds the first match in the constants of a file.
func version(file *elf.File, pattern *regexp.Regexp) string {
	if pattern == nil {
		return ""
	}
	for _, section := range file.Sections {
		if !strings.HasPrefix(section.Name, ".rodata") {
			continue
		}
		data, err := section.Data()
		if err != nil {
			continue
		}
		if match := pattern.FindSubmatch(data); match != nil {
			return string(match[1])
		}
	}
	return ""
}

// Preloaded looks at the libraries that the loader puts into every program of this environment, in
// their order; what is no allocator is left out.
func Preloaded(variable string) []Allocator {
	words := split(variable)
	if data, err := os.ReadFile("/etc/ld.so.preload"); err == nil {
		words = append(words, split(string(data))...)
	}
	var found []Allocator
	for _, word := range words {
		path := word
		if !strings.Contains(word, "/") {
			path = findByName(word)
		}
		if one, err := File(path); err == nil {
			found = append(found, one)
		}
	}
	return found
}

// split separates at colons and white space, as the loader does.
func split(list string) []string {
	return strings.FieldsFunc(list, func(letter rune) bool { return strings.ContainsRune(": \t\n", letter) })
}

func findByName(name string) string {
	for _, library := range Installed() {
		if filepath.Base(library) == name {
			return library
		}
	}
	return name
}
