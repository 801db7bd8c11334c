// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package mistakes reads what the allocator says of mistakes of programs, finds the lines of the source, and explains it.
package mistakes

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tcm/internal/symbols"
)

// frameLine is a line of a stack in the allocator's messages, whatever a log puts before it:
//
//	@ 0x55d0 Name+12 (/path/of/file+0x111f)
//	@ 0x55d0 /path/of/file+0x111f (build id 93ac)
var frameLine = regexp.MustCompile(
	`^(.*@ )0x([0-9a-f]+) (?:\S.*\+\d+ \((/.*)\+0x([0-9a-f]+)\)|(/.*)\+0x([0-9a-f]+))(?: \(build id ([0-9a-f]+)\))?$`)

// stackLine is one line of a stack.
type stackLine struct {
	// before is what stands before the address.
	before  string
	address string
	place   symbols.Place
}

// parseFrame returns false for lines that are no part of a stack, or that name no file.
func parseFrame(line string) (stackLine, bool) {
	parts := frameLine.FindStringSubmatch(line)
	if parts == nil {
		return stackLine{}, false
	}
	file, digits := parts[3], parts[4]
	if file == "" {
		file, digits = parts[5], parts[6]
	}
	offset, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || offset == 0 {
		return stackLine{}, false
	}
	// The address behind a call may belong to the next line, or to another function.
	return stackLine{parts[1], "0x" + parts[2], symbols.Place{File: file, BuildID: parts[7], Offset: offset - 1}}, true
}

// Symbolizer turns lines of stacks into functions, files and lines.
type Symbolizer struct {
	reader *symbols.Reader
	// unread counts the lines of each file that cannot be read, by the problem.
	unread map[string]int64
}

// NewSymbolizer returns a symbolizer that has seen no line yet.
func NewSymbolizer(options symbols.Options) *Symbolizer {
	return &Symbolizer{symbols.NewReader(options), map[string]int64{}}
}

func (s *Symbolizer) frames(line stackLine) []symbols.Frame {
	frames, err := s.reader.Frames(line.place)
	if err != nil {
		s.unread[fmt.Sprintf("%s: %v", line.place.File, err)]++
	}
	return frames
}

// Problems tells which files could not be read.
func (s *Symbolizer) Problems() []string {
	var made []string
	for problem, count := range s.unread {
		made = append(made, fmt.Sprintf("%s; %s", problem, symbols.LeftAlone(count)))
	}
	slices.Sort(made)
	return made
}

// Line returns what takes the place of a line without its end: a line for each function at the address, or the line itself.
func (s *Symbolizer) Line(line string) []string {
	parsed, ok := parseFrame(line)
	if !ok {
		return []string{line}
	}
	var made []string
	for _, frame := range s.frames(parsed) {
		made = append(made, parsed.before+parsed.address+" "+frameText(frame, parsed.place.File))
	}
	if made == nil {
		return []string{line}
	}
	return made
}

func frameText(frame symbols.Frame, object string) string {
	if frame.File != "" && frame.Line > 0 {
		return fmt.Sprintf("%s  %s:%d", frame.Function, frame.File, frame.Line)
	}
	return fmt.Sprintf("%s  (%s)", frame.Function, filepath.Base(object))
}

// Copy copies text and replaces the lines of stacks. What has been read is written before more input is waited for.
func (s *Symbolizer) Copy(to io.Writer, from io.Reader) error {
	input, output := bufio.NewReader(from), bufio.NewWriter(to)
	for {
		line, err := input.ReadString('\n')
		if writeErr := s.copyLine(output, line); writeErr != nil {
			return writeErr
		}
		if err != nil || input.Buffered() == 0 {
			if flushErr := output.Flush(); flushErr != nil {
				return flushErr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *Symbolizer) copyLine(to *bufio.Writer, line string) error {
	content := strings.TrimRight(line, "\r\n")
	end := line[len(content):]
	for _, one := range s.Line(content) {
		if _, err := to.WriteString(one + end); err != nil {
			return err
		}
	}
	return nil
}
