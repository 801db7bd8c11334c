// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Frame is a function in a stack.
type Frame struct {
	// Name is the function, or file+address where that is not known.
	Name string
	File string
	Line int64
	// Object is the last part of the path of the mapped file.
	Object string
}

// Value is what a stack holds.
type Value struct {
	Amount  int64
	Objects int64
}

// Plus adds up.
func (v Value) Plus(other Value) Value {
	return Value{v.Amount + other.Amount, v.Objects + other.Objects}
}

// Minus subtracts.
func (v Value) Minus(other Value) Value {
	return Value{v.Amount - other.Amount, v.Objects - other.Objects}
}

// Stack is one call stack, its outermost function first.
type Stack struct {
	Frames []Frame
	// Old is what it held in the profile that this one is compared with, if any.
	Old, New Value
}

// Change is what was added, negative where it became less.
func (s Stack) Change() Value { return s.New.Minus(s.Old) }

// Set holds the stacks of one profile, or of two that are compared.
type Set struct {
	// Type is the sample type, for instance inuse_space.
	Type string
	Unit string
	// ObjectsType is the sample type of the numbers of objects, or empty where there is none.
	ObjectsType string
	// Compared is true for stacks of two profiles.
	Compared bool
	Stacks   []Stack
	// Period is the mean number of bytes from one sample to the next; 0 or 1 where everything is recorded.
	Period int64
}

// Total adds up all stacks of the older and of the newer profile.
func (s *Set) Total() (before, after Value) {
	for _, one := range s.Stacks {
		before, after = before.Plus(one.Old), after.Plus(one.New)
	}
	return before, after
}

// Selection says what of a profile is wanted.
type Selection struct {
	// Type is the sample type; empty is the one that the profile prefers.
	Type string
	// Focus keeps the stacks with a function that fits, Ignore drops them.
	Focus, Ignore *regexp.Regexp
	// Lines tells calls at different lines of a function apart.
	Lines bool
	// Allocator keeps the frames that the profile marks as the allocator's own.
	Allocator bool
}

// Select returns the wanted stacks of a profile.
func Select(p *profile.Profile, selection Selection) (*Set, error) {
	amount, objects, err := sampleTypes(p, selection.Type)
	if err != nil {
		return nil, err
	}
	if !selection.Allocator {
		if err := p.RemoveUninteresting(); err != nil {
			return nil, fmt.Errorf("the profile names functions to leave out by a bad pattern: %w", oneLine(err))
		}
	}
	set := &Set{Type: p.SampleType[amount].Type, Unit: p.SampleType[amount].Unit, Period: p.Period}
	if objects >= 0 {
		set.ObjectsType = p.SampleType[objects].Type
	}
	for _, sample := range p.Sample {
		one := Stack{Frames: framesOf(sample, selection.Lines, len(p.Mapping) > 0), New: Value{Amount: sample.Value[amount]}}
		if !selection.Allocator {
			one.Frames = withoutAllocator(one.Frames)
		}
		if objects >= 0 {
			one.New.Objects = sample.Value[objects]
		}
		if one.New != (Value{}) && wanted(one.Frames, selection) {
			set.Stacks = append(set.Stacks, one)
		}
	}
	if len(set.Stacks) == 0 && selection.Focus != nil && len(p.Sample) > 0 {
		return nil, fmt.Errorf("no stack has a function that fits %q", selection.Focus)
	}
	set.Stacks = joined(set.Stacks)
	return set, nil
}

// Compare returns the stacks of both sets with what each held.
func Compare(before, after *Set) (*Set, error) {
	if before.Type != after.Type || before.Unit != after.Unit {
		return nil, fmt.Errorf("%s cannot be compared with %s", before.Type, after.Type)
	}
	set := *after
	set.Compared = true
	set.Stacks = slices.Clone(after.Stacks)
	for _, one := range before.Stacks {
		one.Old, one.New = one.New, Value{}
		set.Stacks = append(set.Stacks, one)
	}
	set.Stacks = joined(set.Stacks)
	return &set, nil
}

// joined makes one of all stacks with the same frames, in the order in which they appear.
func joined(stacks []Stack) []Stack {
	places := map[string]int{}
	var made []Stack
	for _, one := range stacks {
		var key strings.Builder
		for _, frame := range one.Frames {
			key.WriteString(frame.Name + "\x00" + frame.Object + "\x00")
		}
		place, found := places[key.String()]
		if !found {
			places[key.String()] = len(made)
			made = append(made, one)
			continue
		}
		made[place].Old = made[place].Old.Plus(one.Old)
		made[place].New = made[place].New.Plus(one.New)
	}
	return made
}

func wanted(frames []Frame, selection Selection) bool {
	fits := func(pattern *regexp.Regexp) bool {
		return slices.ContainsFunc(frames, func(one Frame) bool {
			return pattern.MatchString(one.Name) || pattern.MatchString(one.Object) || one.File != "" && pattern.MatchString(one.File)
		})
	}
	return (selection.Focus == nil || fits(selection.Focus)) && (selection.Ignore == nil || !fits(selection.Ignore))
}

// noStack is the function of samples whose stack is not known, so that what they hold is in tables and flame graphs as
// well: the memory that a process has when it starts to record its growth has none.
const noStack = "(no stack)"

// noFile is the function of code that a program has made while it ran. Its addresses tell nothing afterwards.
const noFile = "(code in no file)"

// framesOf returns the frames of a sample, the outermost first. isMapped is true if the profile says which files were mapped.
func framesOf(sample *profile.Sample, lines, isMapped bool) []Frame {
	if len(sample.Location) == 0 {
		return []Frame{{Name: noStack}}
	}
	var frames []Frame
	for _, location := range slices.Backward(sample.Location) {
		object := ""
		if location.Mapping != nil {
			object = filepath.Base(location.Mapping.File)
			if location.Mapping.File == "" {
				object = ""
			}
		}
		switch {
		case len(location.Line) > 0:
		case object != "" || !isMapped:
			frames = append(frames, Frame{Name: AddressName(location, object), Object: object})
		case len(frames) == 0 || frames[len(frames)-1].Name != noFile:
			frames = append(frames, Frame{Name: noFile})
		}
		for _, line := range slices.Backward(location.Line) {
			frames = append(frames, newFrame(line, object, lines))
		}
	}
	return frames
}

// allocatorObject fits the libraries whose functions at the end of a stack are the allocator's own, named
// or not.
var allocatorObject = regexp.MustCompile(`^lib(tcmalloc|jemalloc)\b|^libtcmalloc_`)

// withoutAllocator leaves out the functions of an allocator's library at the end of a stack, but never
// the whole stack.
func withoutAllocator(frames []Frame) []Frame {
	end := len(frames)
	for end > 0 && allocatorObject.MatchString(frames[end-1].Object) {
		end--
	}
	if end == 0 {
		return frames
	}
	return frames[:end]
}

func newFrame(line profile.Line, object string, lines bool) Frame {
	made := Frame{Name: "?", Object: object, Line: line.Line}
	if line.Function != nil {
		made.Name, made.File = line.Function.Name, line.Function.Filename
	}
	if lines && line.Line > 0 {
		made.Name = fmt.Sprintf("%s:%d", made.Name, line.Line)
	}
	return made
}

// AddressName is how a location without a function shows.
func AddressName(location *profile.Location, object string) string {
	if object == "" {
		return fmt.Sprintf("0x%x", location.Address)
	}
	return fmt.Sprintf("%s+0x%x", object, location.Address-location.Mapping.Start+location.Mapping.Offset)
}

// sampleTypes returns the places of the wanted sample type and of the one that counts its objects, which
// is negative where there is none.
func sampleTypes(p *profile.Profile, asked string) (amount, objects int, err error) {
	names := make([]string, len(p.SampleType))
	for i, one := range p.SampleType {
		names[i] = one.Type
	}
	amount = slices.Index(names, asked)
	if asked == "" {
		amount = preferred(p, names)
	}
	if amount < 0 {
		return 0, 0, fmt.Errorf("the profile has no %s; it has %s", asked, strings.Join(names, ", "))
	}
	return amount, objectsBeside(p, names, amount), nil
}

func preferred(p *profile.Profile, names []string) int {
	for _, name := range []string{p.DefaultSampleType, "inuse_space"} {
		if place := slices.Index(names, name); place >= 0 {
			return place
		}
	}
	for i, one := range slices.Backward(p.SampleType) {
		if one.Unit == "bytes" {
			return i
		}
	}
	return len(names) - 1
}

func objectsBeside(p *profile.Profile, names []string, amount int) int {
	if p.SampleType[amount].Unit != "bytes" {
		return -1
	}
	name := names[amount]
	if cut := strings.LastIndexByte(name, '_'); cut >= 0 {
		if place := slices.Index(names, name[:cut]+"_objects"); place >= 0 {
			return place
		}
	} else if place := slices.Index(names, "objects"); place >= 0 {
		return place
	}
	counts := slices.IndexFunc(p.SampleType, func(one *profile.ValueType) bool { return one.Unit == "count" })
	if counts >= 0 && slices.IndexFunc(p.SampleType[counts+1:], func(one *profile.ValueType) bool { return one.Unit == "count" }) < 0 {
		return counts
	}
	return -1
}

// ErrNoStacks says that a profile has nothing to show.
var ErrNoStacks = errors.New("the profile has no samples of this type")
