// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"path/filepath"
	"strings"

	"github.com/google/pprof/profile"
)

// Place is a byte of a file that a process had mapped.
type Place struct {
	File string
	// BuildID of the file that was mapped; empty where it is not known.
	BuildID string
	// Offset in the file.
	Offset uint64
}

// Frame is a function at a place. File and Line are empty where they are not known.
type Frame struct {
	Function string
	File     string
	Line     int64
}

// Reader finds the functions at places, and keeps the files that it has read.
type Reader struct {
	symbolizer symbolizer
	files      map[Place]openedFile
}

// openedFile is a file, or why it cannot be read.
type openedFile struct {
	object *object
	err    error
}

// NewReader returns a reader that has read nothing yet.
func NewReader(options Options) *Reader {
	return &Reader{
		symbolizer: symbolizer{profile: &profile.Profile{}, options: options, functions: map[profile.Function]*profile.Function{}},
		files:      map[Place]openedFile{},
	}
}

// Frames returns the functions at a place, the innermost of inlined ones first; none where nothing is known of it.
func (r *Reader) Frames(at Place) ([]Frame, error) {
	key := Place{File: at.File, BuildID: at.BuildID}
	file, found := r.files[key]
	if !found {
		path := filepath.Clean(strings.TrimSuffix(at.File, " (deleted)"))
		file.object, file.err = openObject(r.symbolizer.options.Root, path, at.BuildID)
		r.files[key] = file
	}
	if file.err != nil {
		return nil, file.err
	}
	address, ok := file.object.offsetAddress(at.Offset)
	if !ok {
		return nil, nil
	}
	var frames []Frame
	for _, line := range r.symbolizer.lines(file.object, address) {
		frames = append(frames, Frame{Function: line.Function.Name, File: line.Function.Filename, Line: line.Line})
	}
	return frames, nil
}

// offsetAddress turns an offset in the file that was mapped into an address that the file uses. Where only
// debugging information is there, they are the same, as linkers lay out code.
func (o *object) offsetAddress(offset uint64) (uint64, bool) {
	for _, one := range o.segments {
		if one.size == 0 {
			return offset, true
		}
	}
	return o.fileAddress(offset, 0, 0)
}
