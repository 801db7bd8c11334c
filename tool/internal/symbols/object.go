// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"tcm/internal/text"
)

// debugFolder is where distributions install debugging information.
const debugFolder = "/usr/lib/debug"

// pageSize is the smallest one of the supported machines; segments begin at multiples of it in memory.
const pageSize = 4096

// object is an ELF file in which addresses are looked up.
type object struct {
	// segments are the loaded ones, or none where only a file with debugging information is there.
	segments  []segment
	debug     *debugInfo
	functions []symbol
	// unnamed are the functions that the tables for unwinding have.
	unnamed []symbol
}

// segment is a part of the file that is loaded.
type segment struct {
	address, offset, size uint64
	executable            bool
}

// symbol is a function of a symbol table.
type symbol struct {
	address, size uint64
	name          string
}

// errOtherBuild says that a file is not the one that ran.
var errOtherBuild = errors.New("the file is another build than the one that ran")

// openObject reads the file that was mapped, and the file with its debugging information if that is
// apart. root is put before the paths.
func openObject(root, path, buildID string) (*object, error) {
	file, err := openELF(filepath.Join(root, path))
	if err == nil {
		defer file.Close()
		found := buildIDOf(file.File)
		if buildID == "" || found == "" || found == buildID {
			return newObject(file.File, openDebug(root, path, file.File, found)), nil
		}
		err = errOtherBuild
	}
	// A file that was updated or removed may have left its debugging information behind.
	if debug := openByBuildID(root, buildID); debug != nil {
		defer debug.Close()
		return newObject(nil, debug), nil
	}
	return nil, err
}

// elfFile is an open ELF file.
type elfFile struct {
	*elf.File
	closer io.Closer
}

func (f *elfFile) Close() { f.closer.Close() }

func openELF(path string) (*elfFile, error) {
	// A pipe with this name must not make the tool wait.
	if info, err := os.Stat(path); err != nil {
		return nil, text.WithoutPath(err)
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	opened, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, text.WithoutPath(err)
	}
	file, err := elf.NewFile(opened)
	if err != nil {
		opened.Close()
		return nil, fmt.Errorf("not an ELF file: %w", err)
	}
	return &elfFile{file, opened}, nil
}

// newObject reads what lookups need; debug is closed.
func newObject(file *elf.File, debug *elfFile) *object {
	made := &object{}
	if file != nil {
		made.segments = segmentsOf(file)
		made.unnamed = unwindable(file)
		made.functions = append(functionsOf(file.Symbols), functionsOf(file.DynamicSymbols)...)
		made.debug = newDebugInfo(file)
	}
	if debug != nil {
		made.functions = append(made.functions, functionsOf(debug.Symbols)...)
		if made.debug == nil {
			made.debug = newDebugInfo(debug.File)
		}
		if file == nil {
			made.segments = textSegment(debug.File)
		}
		debug.Close()
	}
	sortSymbols(made.functions)
	if file != nil {
		made.functions = append(made.functions, stubsOf(file, made.symbolAt)...)
		sortSymbols(made.functions)
	}
	return made
}

func segmentsOf(file *elf.File) []segment {
	var found []segment
	for _, header := range file.Progs {
		if header.Type == elf.PT_LOAD {
			found = append(found, segment{header.Vaddr, header.Off, header.Filesz, header.Flags&elf.PF_X != 0})
		}
	}
	return found
}

// textSegment returns the executable segment of a file with debugging information, whose offsets are
// not those of the file that was mapped.
func textSegment(file *elf.File) []segment {
	for _, one := range segmentsOf(file) {
		if one.executable {
			one.size = 0
			return []segment{one}
		}
	}
	return nil
}

// fileAddress turns an address of the process into one that the file uses.
func (o *object) fileAddress(address, start, offset uint64) (uint64, bool) {
	inFile := address - start + offset
	for _, one := range o.segments {
		// The kernel maps whole pages.
		if inFile >= one.offset&^(pageSize-1) && inFile < one.offset+one.size {
			return inFile - one.offset + one.address, true
		}
	}
	for _, one := range o.segments {
		if one.executable && one.size == 0 {
			return address - start + one.address&^(pageSize-1), true
		}
	}
	return 0, false
}

func functionsOf(read func() ([]elf.Symbol, error)) []symbol {
	symbols, err := read()
	if err != nil {
		return nil
	}
	// Functions that choose an implementation at start have a type of their own.
	const indirect = elf.SymType(10)
	var found []symbol
	for _, one := range symbols {
		kind := elf.ST_TYPE(one.Info)
		if (kind == elf.STT_FUNC || kind == indirect) && one.Section != elf.SHN_UNDEF && one.Value != 0 {
			found = append(found, symbol{one.Value, one.Size, one.Name})
		}
	}
	return found
}

// sortSymbols orders by address; of the names of one function the plainest comes first.
func sortSymbols(symbols []symbol) {
	sort.SliceStable(symbols, func(i, j int) bool {
		one, other := symbols[i], symbols[j]
		if one.address != other.address {
			return one.address < other.address
		}
		if one.size != other.size {
			return one.size > other.size
		}
		return plainness(one.name) < plainness(other.name)
	})
}

func plainness(name string) int {
	letters := len(name)
	return letters + 100*(letters-len(strings.TrimLeft(name, "_")))
}

// startOf returns where the function around an address of the file begins, as the tables for unwinding tell.
func (o *object) startOf(address uint64) (start uint64, known bool) {
	next := sort.Search(len(o.unnamed), func(i int) bool { return o.unnamed[i].address > address })
	if next == 0 || address-o.unnamed[next-1].address >= o.unnamed[next-1].size {
		return 0, false
	}
	return o.unnamed[next-1].address, true
}

// symbolAt returns the name of the function around an address of the file, or nothing.
func (o *object) symbolAt(address uint64) string {
	next := sort.Search(len(o.functions), func(i int) bool { return o.functions[i].address > address })
	if next == 0 {
		return ""
	}
	start := o.functions[next-1].address
	first := sort.Search(next, func(i int) bool { return o.functions[i].address >= start })
	found := o.functions[first]
	// Functions written in assembly may have no size, and end where the next one begins.
	if found.size != 0 && address >= found.address+found.size {
		return ""
	}
	return found.name
}

// openDebug finds the file with the debugging information of a file that has none itself.
func openDebug(root, path string, file *elf.File, buildID string) *elfFile {
	if hasDebug(file) {
		return nil
	}
	if found := openByBuildID(root, buildID); found != nil {
		return found
	}
	name, sum := debugLink(file)
	if name == "" {
		return nil
	}
	folder := filepath.Dir(path)
	for _, candidate := range []string{filepath.Join(folder, name), filepath.Join(folder, ".debug", name),
		filepath.Join(debugFolder, folder, name)} {
		candidate = filepath.Join(root, candidate)
		if sumOf(candidate) != sum {
			continue
		}
		if found, err := openELF(candidate); err == nil {
			return found
		}
	}
	return nil
}

func hasDebug(file *elf.File) bool {
	return file.Section(".debug_info") != nil || file.Section(".zdebug_info") != nil
}

// openByBuildID returns the file with debugging information that is filed under a build id, or nil.
func openByBuildID(root, buildID string) *elfFile {
	if len(buildID) < 3 || strings.ContainsAny(buildID, "/.") {
		return nil
	}
	file, err := openELF(filepath.Join(root, debugFolder, ".build-id", buildID[:2], buildID[2:]+".debug"))
	if err != nil {
		return nil
	}
	if buildIDOf(file.File) != buildID {
		file.Close()
		return nil
	}
	return file
}

// debugLink returns the name and the checksum of the file with debugging information.
func debugLink(file *elf.File) (string, uint32) {
	section := file.Section(".gnu_debuglink")
	if section == nil {
		return "", 0
	}
	data, err := section.Data()
	if err != nil {
		return "", 0
	}
	name, _, found := bytes.Cut(data, []byte{0})
	if !found || len(data) < 8 || bytes.ContainsRune(name, '/') {
		return "", 0
	}
	return string(name), file.ByteOrder.Uint32(data[len(data)-4:])
}

func sumOf(path string) uint32 {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return 0
	}
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, file); err != nil {
		return 0
	}
	return sum.Sum32()
}

// buildIDOf returns the build id of a file in hexadecimal, or nothing.
func buildIDOf(file *elf.File) string {
	for _, section := range file.Sections {
		if section.Type != elf.SHT_NOTE {
			continue
		}
		if data, err := section.Data(); err == nil {
			if id := buildIDIn(data, file.ByteOrder); id != "" {
				return id
			}
		}
	}
	return ""
}

// buildIDIn searches notes: sizes of name and content, a type, then both, each filled up to four bytes.
func buildIDIn(notes []byte, order binary.ByteOrder) string {
	const head, gnuBuildID = 12, 3
	for len(notes) >= head {
		nameSize, size, kind := uint64(order.Uint32(notes)), uint64(order.Uint32(notes[4:])), order.Uint32(notes[8:])
		content := head + (nameSize+3)&^3
		next := content + (size+3)&^3
		if content+size > uint64(len(notes)) {
			return ""
		}
		if kind == gnuBuildID && string(notes[head:head+nameSize]) == "GNU\x00" {
			return hex.EncodeToString(notes[content : content+size])
		}
		if next > uint64(len(notes)) {
			return ""
		}
		notes = notes[next:]
	}
	return ""
}
