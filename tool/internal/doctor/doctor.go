// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package doctor looks at the machine and asks the allocator what it would do there.
package doctor

import (
	"fmt"
	"strings"

	"tcm/internal/text"
)

// State says how serious a finding is.
type State string

const (
	// OK needs no action.
	OK State = "ok"
	// Note is worth knowing: something works less well than it could.
	Note State = "note"
	// Problem keeps the allocator from working, or from working as it was told to.
	Problem State = "problem"
)

// Check is one finding.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Found string `json:"found"`
	// Advice says what to do, where there is something to do.
	Advice string `json:"advice,omitempty"`
}

func ok(name, format string, values ...any) Check {
	return Check{Name: name, State: OK, Found: fmt.Sprintf(format, values...)}
}

func note(name, advice, format string, values ...any) Check {
	return Check{Name: name, State: Note, Found: fmt.Sprintf(format, values...), Advice: advice}
}

func problem(name, advice, format string, values ...any) Check {
	return Check{Name: name, State: Problem, Found: fmt.Sprintf(format, values...), Advice: advice}
}

// Diagnosis is all that was found.
type Diagnosis struct {
	Checks   []Check `json:"checks"`
	Problems int     `json:"problems"`
	Notes    int     `json:"notes"`
}

// NewDiagnosis counts what was found.
func NewDiagnosis(checks ...Check) Diagnosis {
	made := Diagnosis{Checks: checks}
	for _, check := range checks {
		switch check.State {
		case Problem:
			made.Problems++
		case Note:
			made.Notes++
		}
	}
	return made
}

// Text is the diagnosis for people: a line for each check, and one below it where there is
// something to do.
func (d Diagnosis) Text() string {
	var out strings.Builder
	for _, check := range d.Checks {
		fmt.Fprintf(&out, "%-8s %-20s %s\n", check.State, check.Name, check.Found)
		if check.Advice != "" {
			fmt.Fprintf(&out, "%-8s %-20s -> %s\n", "", "", check.Advice)
		}
	}
	fmt.Fprintf(&out, "%s, %s\n", text.Counted(int64(d.Problems), "problem"), text.Counted(int64(d.Notes), "note"))
	return out.String()
}
