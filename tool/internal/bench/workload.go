// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package bench runs workloads under several allocators in turn and compares what they cost.
package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Workload is one entry of the list of workloads: a program with its arguments.
type Workload struct {
	Name   string `json:"name"`
	Family string `json:"family"`
	// Program is one of the benchmark's own; its last line of output is a JSON object.
	Program string `json:"program,omitempty"`
	// Command is a real program with arguments, where there is no Program; it is measured from
	// outside only.
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args"`
	// Optional workloads are left out where their program is not installed.
	Optional bool `json:"optional,omitempty"`
	// Package is the one of Debian that has the program.
	Package string `json:"package,omitempty"`
	// Needs names further programs, which a script starts.
	Needs       []string `json:"needs,omitempty"`
	Threads     int      `json:"threads"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	// Own marks a program that the user named, which is no workload of the list.
	Own bool `json:"own,omitempty"`
	// Input is the file that is its standard input; empty for none.
	Input string `json:"input,omitempty"`
	// TimeoutSeconds replaces the general limit where a workload needs longer.
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty"`
}

// Tags with a meaning to the tool.
const (
	// TagDefault marks what runs when nothing is chosen.
	TagDefault = "default"
	// TagMemory marks workloads whose time says nothing; they count for memory only.
	TagMemory = "memory"
)

// everything is the selector of all workloads.
const everything = "all"

// HasTag says whether a workload has a tag.
func (w Workload) HasTag(tag string) bool {
	for _, one := range w.Tags {
		if one == tag {
			return true
		}
	}
	return false
}

// Argument returns the number that an argument of the form --name=number gives.
func (w Workload) Argument(name string) (int64, bool) {
	for _, argument := range w.Args {
		value, found := strings.CutPrefix(argument, "--"+name+"=")
		if !found {
			continue
		}
		number, err := strconv.ParseInt(value, 10, 64)
		return number, err == nil
	}
	return 0, false
}

// Build is the folder of a build of the project, which has the programs of workloads and their
// data.
type Build string

// dataWord stands for the folder of data in the words of a workload.
const dataWord = "{data}"

// Words returns the command line of a workload.
func (b Build) Words(workload Workload) []string {
	words := append(append([]string{}, workload.Command...), workload.Args...)
	if workload.Program != "" {
		words = append([]string{b.program(workload.Program)}, words...)
	}
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, dataWord, filepath.Join(string(b), "bench-data"))
	}
	return words
}

func (b Build) program(name string) string {
	return filepath.Join(string(b), "bin", "workloads", name)
}

// Missing returns the first program that a workload needs and that is not there, or nothing.
func (b Build) Missing(workload Workload) string {
	for _, name := range append([]string{realProgram(b.Words(workload))}, workload.Needs...) {
		if _, err := exec.LookPath(name); err != nil {
			return name
		}
	}
	return ""
}

// realProgram skips env and its settings.
func realProgram(words []string) string {
	for i, word := range words {
		if word != "env" && !strings.Contains(word, "=") {
			return words[i]
		}
	}
	return words[0]
}

// LoadWorkloads reads the list of workloads.
func LoadWorkloads(file string) ([]Workload, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	workloads, err := parseWorkloads(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return workloads, nil
}

func parseWorkloads(data []byte) ([]Workload, error) {
	var workloads []Workload
	if err := json.Unmarshal(data, &workloads); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, workload := range workloads {
		switch {
		case workload.Name == "" || strings.Contains(workload.Name, ","):
			return nil, fmt.Errorf("%q is no name for a workload", workload.Name)
		case seen[workload.Name]:
			return nil, fmt.Errorf("workload %q is named twice", workload.Name)
		case (workload.Program == "") == (len(workload.Command) == 0):
			return nil, fmt.Errorf("workload %q needs either a program or a command", workload.Name)
		case workload.Program != "" && filepath.Base(workload.Program) != workload.Program:
			return nil, fmt.Errorf("workload %q: %q is no name of a program", workload.Name, workload.Program)
		}
		seen[workload.Name] = true
	}
	return workloads, nil
}

// SelectWorkloads returns the workloads that any selector fits, in the order of the list. A
// selector is a name, a family, a tag, a pattern of shells for one of them, or "all". Without
// selectors these are the workloads of the default tag, or all where none has it.
func SelectWorkloads(workloads []Workload, selectors []string) ([]Workload, error) {
	if len(selectors) == 0 {
		if chosen, err := SelectWorkloads(workloads, []string{TagDefault}); err == nil {
			return chosen, nil
		}
		selectors = []string{everything}
	}
	chosen := make([]bool, len(workloads))
	for _, selector := range selectors {
		found := false
		for i, workload := range workloads {
			fits, err := workload.fits(selector)
			if err != nil {
				return nil, fmt.Errorf("workload pattern %q: %w", selector, err)
			}
			if fits {
				chosen[i] = true
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("no workload, family or tag fits %q; tcm bench --list shows them", selector)
		}
	}
	var selected []Workload
	for i, workload := range workloads {
		if chosen[i] {
			selected = append(selected, workload)
		}
	}
	return selected, nil
}

func (w Workload) fits(selector string) (bool, error) {
	if selector == everything {
		return true, nil
	}
	for _, name := range append([]string{w.Name, w.Family}, w.Tags...) {
		if fits, err := path.Match(selector, name); fits || err != nil {
			return fits, err
		}
	}
	return false, nil
}
