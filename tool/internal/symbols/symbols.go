// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package symbols finds the functions, files and lines of the addresses in a profile: in the debugging
// information of the mapped files (their own, or what is installed apart), else in their symbol tables.
// It needs no other program.
package symbols

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/ianlancetaylor/demangle"

	"tcm/internal/text"
)

// Options of Symbolize.
type Options struct {
	// Root is put before the paths of mapped files; empty is the running system.
	Root string
	// FullNames keeps the parameters and template arguments of C++ functions.
	FullNames bool
}

// Symbolize adds the functions of all locations that have none, and returns what could not be read.
// A function without a name becomes the file and the place in it where the function begins. A location that stays unknown
// keeps no lines; profiles.Select shows it as file and address.
func Symbolize(p *profile.Profile, options Options) []string {
	made := symbolizer{profile: p, options: options, functions: map[profile.Function]*profile.Function{}}
	for _, one := range p.Function {
		key := *one
		key.ID = 0
		made.functions[key] = one
		made.lastID = max(made.lastID, one.ID)
	}
	byMapping := map[*profile.Mapping][]*profile.Location{}
	for _, one := range p.Location {
		if len(one.Line) == 0 && one.Mapping != nil {
			byMapping[one.Mapping] = append(byMapping[one.Mapping], one)
		}
	}
	var problems []string
	for _, mapping := range p.Mapping {
		locations := byMapping[mapping]
		if mapping.File == vdsoName {
			// Nobody misses that of another kernel.
			if file, err := openVDSO(strings.ToLower(mapping.BuildID)); err == nil {
				made.addLines(file, mapping, locations)
			}
			continue
		}
		if len(locations) == 0 || !isFile(mapping.File) {
			continue
		}
		if err := made.symbolizeMapping(mapping, locations); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v; %s", mapping.File, err, LeftAlone(int64(len(locations)))))
		}
	}
	sort.Strings(problems)
	return problems
}

// LeftAlone says that so many addresses were not replaced by functions.
func LeftAlone(addresses int64) string {
	if addresses == 1 {
		return "1 address stays as it is"
	}
	return text.Counted(addresses, "address") + " stay as they are"
}

// isFile tells files from the kernel's names for memory without one.
func isFile(name string) bool {
	for _, special := range []string{"[", "//", "/dev/zero", "/memfd:", "/SYSV", "anon_inode:"} {
		if strings.HasPrefix(name, special) {
			return false
		}
	}
	return name != ""
}

type symbolizer struct {
	profile   *profile.Profile
	options   Options
	functions map[profile.Function]*profile.Function
	lastID    uint64
}

func (s *symbolizer) symbolizeMapping(mapping *profile.Mapping, locations []*profile.Location) error {
	path := strings.TrimSuffix(mapping.File, " (deleted)")
	file, err := openObject(s.options.Root, filepath.Clean(path), strings.ToLower(mapping.BuildID))
	if err != nil {
		return err
	}
	s.addLines(file, mapping, locations)
	return nil
}

func (s *symbolizer) addLines(file *object, mapping *profile.Mapping, locations []*profile.Location) {
	for _, location := range locations {
		address, ok := file.fileAddress(location.Address, mapping.Start, mapping.Offset)
		if !ok {
			continue
		}
		location.Line = s.lines(file, address)
		if start, known := file.startOf(address); known && len(location.Line) == 0 {
			location.Line = s.unnamed(mapping, location.Address-(address-start))
		}
		for _, line := range location.Line {
			mapping.HasFunctions = true
			mapping.HasFilenames = mapping.HasFilenames || line.Function.Filename != ""
			mapping.HasLineNumbers = mapping.HasLineNumbers || line.Line != 0
			mapping.HasInlineFrames = mapping.HasInlineFrames || len(location.Line) > 1
		}
	}
}

// lines returns the functions at an address of a file, the innermost first.
func (s *symbolizer) lines(file *object, address uint64) []profile.Line {
	var frames []frame
	if file.debug != nil {
		frames = file.debug.framesAt(address)
	}
	name := file.symbolAt(address)
	if len(frames) == 0 && name == "" {
		return nil
	}
	if len(frames) == 0 {
		frames = []frame{{name: name}}
	}
	// The tables have names where debugging information was moved to a file for many programs, and where
	// it has that of the source only.
	if outer := &frames[len(frames)-1]; outer.name == "" || isMangled(name) && !isMangled(outer.name) {
		outer.name = name
	}
	var made []profile.Line
	for _, one := range frames {
		if one.name != "" {
			made = append(made, profile.Line{Function: s.function(one), Line: int64(one.line)})
		}
	}
	return made
}

// unnamed returns a function that has no name: the file and the place in it where the function begins.
func (s *symbolizer) unnamed(mapping *profile.Mapping, start uint64) []profile.Line {
	name := fmt.Sprintf("%s+0x%x", filepath.Base(mapping.File), start-mapping.Start+mapping.Offset)
	return []profile.Line{{Function: s.entry(profile.Function{Name: name, SystemName: name})}}
}

// withoutArguments leaves out the template arguments at the end of a name of the source.
func withoutArguments(name string) string {
	cut := strings.IndexByte(name, '<')
	if cut <= 0 || !strings.HasSuffix(name, ">") || strings.Contains(name, "operator") {
		return name
	}
	return name[:cut]
}

// isMangled is true for the linker's names of C++ and Rust.
func isMangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R")
}

func (s *symbolizer) function(of frame) *profile.Function {
	return s.entry(profile.Function{Name: s.readable(of.name), SystemName: of.name, Filename: of.file})
}

// entry returns the entry of the profile, which is made once for each function.
func (s *symbolizer) entry(key profile.Function) *profile.Function {
	if found := s.functions[key]; found != nil {
		return found
	}
	s.lastID++
	made := key
	made.ID = s.lastID
	s.functions[key] = &made
	s.profile.Function = append(s.profile.Function, &made)
	return &made
}

// readable turns the linker's name into that of the source.
func (s *symbolizer) readable(name string) string {
	if function, isStub := strings.CutSuffix(name, stubSuffix); isStub {
		return s.readable(function) + stubSuffix
	}
	// The linker's names of versions, and the compiler's of parts and clones, tell nothing here.
	name, _, _ = strings.Cut(name, "@")
	name = strings.TrimSuffix(name, ".cold")
	options := []demangle.Option{demangle.NoClones}
	if !s.options.FullNames {
		name = withoutArguments(name)
		options = append(options, demangle.NoParams, demangle.NoEnclosingParams, demangle.NoTemplateParams)
	}
	made := demangle.Filter(name, options...)
	if strings.HasPrefix(name, "_R") && !s.options.FullNames {
		made = emptyArguments.Replace(made)
	}
	return made
}

// emptyArguments takes what is left of the arguments of generic names of Rust out of them.
var emptyArguments = strings.NewReplacer("::<>", "", "<>", "", "<, ", "<")
