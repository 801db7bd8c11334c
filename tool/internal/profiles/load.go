// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package profiles reads heap profiles (profile.proto, the texts of gperftools and of jemalloc) and turns
// them into stacks, tables, JSON and folded lines.
package profiles

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/google/pprof/profile"

	"tcm/internal/text"
)

// maximalBytes bounds what is read, so that a wrong name does not fill the memory.
const maximalBytes = 4 << 30

// StandardInput is the name that stands for it.
const StandardInput = "-"

// Load reads one profile. Its errors begin with the name.
func Load(name string) (*profile.Profile, error) {
	data, err := read(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	made, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return made, nil
}

// LoadAll reads profiles of one kind and adds them up.
func LoadAll(names []string) (*profile.Profile, error) {
	var all []*profile.Profile
	for _, name := range names {
		one, err := Load(name)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return Merge(all)
}

// Merge adds profiles of one kind up; there is at least one.
func Merge(all []*profile.Profile) (*profile.Profile, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	if err := profile.CompatibilizeSampleTypes(all); err != nil {
		return nil, fmt.Errorf("these profiles cannot be added up: %w", oneLine(err))
	}
	merged, err := profile.Merge(all)
	if err != nil {
		return nil, fmt.Errorf("these profiles cannot be added up: %w", oneLine(err))
	}
	return merged, nil
}

func read(name string) ([]byte, error) {
	input := io.Reader(os.Stdin)
	if name != StandardInput {
		info, err := os.Stat(name)
		if err != nil {
			return nil, text.WithoutPath(err)
		}
		if info.IsDir() {
			return nil, errors.New("a directory, not a profile")
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, text.WithoutPath(err)
		}
		defer file.Close()
		input = file
	}
	data, err := io.ReadAll(io.LimitReader(input, maximalBytes))
	if err != nil {
		return nil, text.WithoutPath(err)
	}
	return data, nil
}

// ErrFormat says that a file is something else.
var ErrFormat = errors.New("not a profile in a format that tcm reads")

func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// Parse reads a profile of any of the formats, compressed or not.
func Parse(data []byte) (*profile.Profile, error) { return ParseWithin(data, maximalBytes) }

// ParseWithin reads a profile that has at most so many bytes when it is unpacked.
func ParseWithin(data []byte, most int64) (*profile.Profile, error) {
	data, err := decompress(data, most)
	if err != nil {
		return nil, err
	}
	// The pprof library would unpack it once more, whatever comes of it.
	if isCompressed(data) {
		return nil, ErrFormat
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("an empty file, not a profile")
	}
	made, err := parseFormat(hideSpaces(data))
	if err != nil {
		return nil, err
	}
	showSpaces(made)
	return made, nil
}

func parseFormat(data []byte) (*profile.Profile, error) {
	if isJemalloc(data) {
		return parseJemalloc(data)
	}
	made, err := profile.ParseData(data)
	if err != nil {
		return nil, parseError(data, err)
	}
	if len(made.SampleType) == 0 {
		return nil, errors.New("not a profile: it has no sample types")
	}
	if isText(data) {
		return finishText(data, made)
	}
	return made, nil
}

func isCompressed(data []byte) bool { return len(data) >= 2 && data[0] == 0x1f && data[1] == 0x8b }

func decompress(data []byte, most int64) ([]byte, error) {
	if !isCompressed(data) {
		return data, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(reader, most+1))
	}
	if err == nil && int64(len(data)) > most {
		return nil, fmt.Errorf("more than %d bytes when it is unpacked", most)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, errors.New("the file is cut off: its compressed data has no end")
	}
	if err != nil {
		return nil, fmt.Errorf("damaged compressed data: %w", err)
	}
	return data, nil
}

// textHeader begins the texts of gperftools.
var textHeader = regexp.MustCompile(`^heap profile: *\d+: *\d+ *\[ *\d+: *\d+ *\] *@ *(\S+)`)

func isText(data []byte) bool { return textHeader.Match(data) }

// binaryHeader begins the binary profiles of gperftools: words of 64 bits, of which the second says how many follow in the
// header.
const binaryHeader = "\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00"

// IsBeginning returns true for the first bytes of a file that is compressed, or a profile in a format that begins like no
// other file; profile.proto that is not compressed has no beginning of its own. They have the first line of a text.
func IsBeginning(data []byte) bool {
	return isCompressed(data) || isText(data) || isJemalloc(data) || bytes.HasPrefix(data, []byte(binaryHeader))
}

func parseError(data []byte, err error) error {
	if isText(data) {
		return fmt.Errorf("a damaged or cut off heap profile: %s", strings.TrimPrefix(oneLine(err).Error(), "parsing profile: "))
	}
	if strings.Contains(err.Error(), "malformed profile") {
		return oneLine(err)
	}
	return ErrFormat
}

// mapSection begins the list of mapped files at the end of a text.
const mapSection = "MAPPED_LIBRARIES:"

var errNoMappings = fmt.Errorf("a cut off heap profile: it has no %s", mapSection)

// finishText gives the sample types of a text the names that profile.proto has for them.
func finishText(data []byte, made *profile.Profile) (*profile.Profile, error) {
	if len(made.Location) > 0 && !bytes.Contains(data, []byte(mapSection)) {
		return nil, errNoMappings
	}
	prefix := "inuse_"
	if source := string(textHeader.FindSubmatch(data)[1]); strings.HasPrefix(source, "growth") || strings.HasPrefix(source, "fragmentation") {
		prefix, _, _ = strings.Cut(source, "z")
		prefix += "_"
	}
	for _, one := range made.SampleType {
		if one.Type == "objects" || one.Type == "space" {
			one.Type = prefix + one.Type
		}
	}
	made.DropFrames = made.DropFrames + "|" + allocatorFrames
	return made, nil
}

// allocatorFrames are the functions of allocators that programs call, which texts and profiles of leaks do not name;
// what these called goes with them.
const allocatorFrames = `(tc_|je_|_rjem_)?(malloc|calloc|realloc|reallocarray|memalign|posix_memalign|aligned_alloc|valloc|pvalloc|mallocx|rallocx)|` +
	`tc_new\w*|jemalloc::.*|tcmalloc::.*|operator new(\[\])?|` +
	`(std::)?(__new_allocator|allocator|allocator_traits|_Vector_base)(<.*>)?::(_M_)?allocate`

var allocatorFunction = regexp.MustCompile("^(" + allocatorFrames + ")$")

// IsAllocator returns true for the readable name of a function of an allocator.
func IsAllocator(function string) bool { return allocatorFunction.MatchString(function) }
