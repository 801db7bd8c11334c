// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"tcm/internal/runfolder"
	"tcm/internal/symbols"
)

// Variable names the files to which processes write the messages of their mistakes: its value, a dot and the number of the
// process.
const Variable = "TCMALLOC_CRASH_REPORT"

// Report is the message of one process.
type Report struct {
	// Process is its number.
	Process string `json:"process"`
	// Program is the path of what it ran.
	Program string `json:"program"`
	// Title says in a few words what the program did.
	Title string `json:"title"`
	// Message is the allocator's first line.
	Message string  `json:"message"`
	Parts   []*Part `json:"parts"`
	// Cause says where to look.
	Cause []string `json:"cause,omitempty"`
	// Next are commands that show more.
	Next []Step `json:"next,omitempty"`

	// Early is true for mistakes that were made before the call that noticed them.
	Early bool `json:"-"`
}

// Step is a command, and what it is good for.
type Step struct {
	Command string `json:"command"`
	Purpose string `json:"purpose"`
}

// Part is a line of a message, or several, and the stack that follows.
type Part struct {
	Lines  []string `json:"lines,omitempty"`
	Frames []*Frame `json:"frames,omitempty"`
}

// Frame is a function in a stack. Where nothing is known of it, Function is the allocator's line.
type Frame struct {
	Function string `json:"function"`
	File     string `json:"file,omitempty"`
	Line     int64  `json:"line,omitempty"`
	Object   string `json:"object,omitempty"`
	// Source has that line of the file, and some around it in the innermost call.
	Source []SourceLine `json:"source,omitempty"`
}

// SourceLine is a line of a file.
type SourceLine struct {
	Line int64  `json:"line"`
	Text string `json:"text"`
}

// FilePrefix begins the names of the files in the private folder of a run.
const FilePrefix = "report"

const (
	// mostOfOne bounds what is read of the reports of a process, which may go on after the first.
	mostOfOne = 1 << 20
	// mostOfAll bounds what is read of those of all processes.
	mostOfAll = 64 << 20
)

// ReadAll reads the reports in the private folder of a run, the oldest first. What is no file of a process is left out.
func ReadAll(folder *runfolder.Folder, symbolizer *Symbolizer) ([]*Report, error) {
	names, err := folder.Names(FilePrefix+".", "")
	if err != nil {
		return nil, err
	}
	type dated struct {
		name string
		time int64
	}
	var files []dated
	for _, name := range names {
		info, err := os.Lstat(folder.Path(name))
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		files = append(files, dated{name, info.ModTime().UnixNano()})
	}
	sort.SliceStable(files, func(i, j int) bool { return files[i].time < files[j].time })
	var reports []*Report
	left := int64(mostOfAll)
	for _, file := range files {
		content, err := readBeginning(folder, file.name, min(left, mostOfOne))
		if errors.Is(err, runfolder.ErrNoFile) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %s of the run: %w", file.name, err)
		}
		left -= int64(len(content))
		reports = append(reports, Parse(string(content), symbolizer)...)
	}
	return reports, nil
}

func readBeginning(folder *runfolder.Folder, name string, most int64) ([]byte, error) {
	file, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// tag begins the first line of a message.
const tag = "tcmalloc: "

// advicePrefix begins the allocator's own advice, in whose place ours stands.
const advicePrefix = "    run it under tcm "

// Parse reads what processes wrote of their mistakes. A process that went on after the first may have written several.
func Parse(content string, symbolizer *Symbolizer) []*Report {
	var reports []*Report
	var process, program string
	var report *Report
	for _, line := range strings.Split(strings.TrimRight(content, "\n"), "\n") {
		if rest, found := strings.CutPrefix(line, "process "); found && report == nil {
			process, program, _ = strings.Cut(rest, " ")
			continue
		}
		if message, found := strings.CutPrefix(line, tag); found {
			report = newReport(process, program, message)
			reports = append(reports, report)
			continue
		}
		if report != nil && !strings.HasPrefix(line, advicePrefix) {
			report.add(line, symbolizer)
		}
	}
	for _, one := range reports {
		one.finish()
	}
	return reports
}

func newReport(process, program, message string) *Report {
	report := &Report{Process: process, Program: program, Message: message, Title: "made a mistake"}
	if known := kindOf(message); known != nil {
		report.Title, report.Early = known.title, known.early
		report.Cause = strings.Split(known.cause, "\n")
	}
	return report
}

// add appends a line of the message.
func (r *Report) add(line string, symbolizer *Symbolizer) {
	last := len(r.Parts) - 1
	parsed, isFrame := parseFrame(line)
	isUnknown := !isFrame && strings.HasPrefix(line, "    @ ")
	if !isFrame && !isUnknown {
		if last < 0 || len(r.Parts[last].Frames) > 0 {
			r.Parts = append(r.Parts, &Part{})
			last++
		}
		r.Parts[last].Lines = append(r.Parts[last].Lines, strings.TrimSpace(line))
		return
	}
	if last < 0 {
		r.Parts = append(r.Parts, &Part{})
		last = 0
	}
	part := r.Parts[last]
	if len(part.Frames) > 0 && part.Frames[len(part.Frames)-1].Function == "main" {
		return
	}
	var known []symbols.Frame
	if isFrame {
		known = symbolizer.frames(parsed)
	}
	for _, one := range known {
		part.Frames = append(part.Frames, &Frame{Function: one.Function, File: one.File, Line: one.Line, Object: filepath.Base(parsed.place.File)})
		if one.Function == "main" {
			return
		}
	}
	if known == nil {
		part.Frames = append(part.Frames, &Frame{Function: strings.TrimPrefix(strings.TrimSpace(line), "@ ")})
	}
}

// finish adds the lines of the source: several to the innermost call that has some, one to its callers.
func (r *Report) finish() {
	for _, part := range r.Parts {
		around, left := int64(linesAround), framesWithSource
		for _, frame := range part.Frames {
			if frame.Source = sourceOf(frame, around); frame.Source == nil {
				continue
			}
			if around, left = 0, left-1; left == 0 {
				break
			}
		}
	}
}

const (
	// linesAround is how many lines of the source stand before and behind the one of the innermost call.
	linesAround = 2
	// framesWithSource is how many calls of a stack have lines of the source.
	framesWithSource = 4
)

// systemFolders have sources that are not the program's.
var systemFolders = []string{"/usr/include/", "/usr/lib/", "/usr/local/include/", "/build/"}

// mostSource bounds what is read of a file.
const mostSource = 16 << 20

func sourceOf(frame *Frame, around int64) []SourceLine {
	if frame.Line <= 0 || !filepath.IsAbs(frame.File) {
		return nil
	}
	for _, folder := range systemFolders {
		if strings.HasPrefix(frame.File, folder) {
			return nil
		}
	}
	info, err := os.Stat(frame.File)
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostSource {
		return nil
	}
	content, err := os.ReadFile(frame.File)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	if frame.Line > int64(len(lines)) {
		return nil
	}
	var found []SourceLine
	for number := max(1, frame.Line-around); number <= min(int64(len(lines)), frame.Line+around); number++ {
		found = append(found, SourceLine{number, strings.TrimRight(lines[number-1], " \t\r")})
	}
	return found
}

// Text is the report for people. called is the command that ran the program.
func (r *Report) Text(called string) string {
	var page strings.Builder
	name := filepath.Base(r.Program)
	if r.Program == "" {
		name = "the program"
	}
	fmt.Fprintf(&page, "%s: %s (process %s) %s\n\n%s\n", called, name, r.Process, r.Title, r.Message)
	for _, part := range r.Parts {
		for _, line := range part.Lines {
			page.WriteString(line + "\n")
		}
		for number, frame := range part.Frames {
			fmt.Fprintf(&page, "    #%d %s\n", number, frame.Text())
			for _, line := range frame.Source {
				mark := ' '
				if line.Line == frame.Line {
					mark = '>'
				}
				page.WriteString(strings.TrimRight(fmt.Sprintf("       %c %5d | %s", mark, line.Line, line.Text), " ") + "\n")
			}
		}
	}
	if len(r.Cause) > 0 {
		page.WriteString("\n" + strings.Join(r.Cause, "\n") + "\n")
	}
	for _, step := range r.Next {
		fmt.Fprintf(&page, "Next: %s  # %s\n", step.Command, step.Purpose)
	}
	return page.String()
}

// Text names the function and where it is: the line of the source, or else the object. A name may begin with the object.
func (f *Frame) Text() string {
	switch {
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s  %s:%d", f.Function, f.File, f.Line)
	case f.Object != "" && !strings.HasPrefix(f.Function, f.Object+"+"):
		return fmt.Sprintf("%s  (%s)", f.Function, f.Object)
	}
	return f.Function
}
