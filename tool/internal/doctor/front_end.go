// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"tcm/internal/launch"
	"tcm/internal/project"
	"tcm/internal/report"
	"tcm/internal/runfolder"
)

// FrontEndVariable is the environment variable that chooses the caches.
const FrontEndVariable = "TCMALLOC_FRONT_END"

// PerCPU is the value of FrontEndVariable for caches that belong to CPUs, and what the library
// calls them.
const PerCPU = "per_cpu"

// Answer is what the allocator said in a small program.
type Answer struct {
	FrontEnd string
	// Reason is a sentence on it; empty from a library that does not tell.
	Reason string
	// Complaints are the lines that the allocator or the loader wrote.
	Complaints []string
}

// Ask runs a small program under the allocator; settings are variables such as
// "TCMALLOC_FRONT_END=per_cpu".
type Ask func(ctx context.Context, settings ...string) (Answer, error)

// errSilent says that no program told anything of the allocator.
var errSilent = errors.New("no program loads it")

// programs are small, found everywhere, allocate, and end by way of exit handlers: any one will do.
var programs = [][]string{
	{"cat", "/dev/null"}, {"sort", "/dev/null"}, {"env"}, {"perl", "-e", "0"},
}

// AskLibrary asks a library.
func AskLibrary(library string) Ask {
	return func(ctx context.Context, settings ...string) (Answer, error) {
		var complaints []string
		for _, program := range programs {
			answer, err := askUnder(ctx, library, program, settings)
			switch {
			case err == nil:
				return answer, nil
			case errors.Is(err, exec.ErrNotFound):
			case errors.Is(err, errSilent):
				complaints = answer.Complaints
			default:
				return answer, fmt.Errorf("%s: %w", program[0], err)
			}
		}
		return Answer{Complaints: complaints}, errSilent
	}
}

func askUnder(ctx context.Context, library string, program, settings []string) (Answer, error) {
	folder, err := runfolder.Make("tcm-doctor-")
	if err != nil {
		return Answer{}, err
	}
	defer folder.Remove()
	if err := folder.Create(report.FiguresName); err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, program[0], program[1:]...)
	var complaints bytes.Buffer
	command.Stderr = &complaints
	command.Env = append(os.Environ(), settings...)
	command.Env = append(command.Env, "LD_PRELOAD="+launch.Preload([]string{library}), report.Variable+"="+folder.Path(report.FiguresName))
	runErr := command.Run()
	answer := Answer{Complaints: lines(complaints.String())}
	if runErr != nil {
		return answer, runErr
	}
	file, err := folder.Open(report.FiguresName)
	if err != nil {
		return answer, err
	}
	defer file.Close()
	said, err := report.ParseAllocator(file)
	if err != nil {
		return answer, err
	}
	if said.Processes == 0 {
		return answer, errSilent
	}
	answer.FrontEnd, answer.Reason = said.FrontEnd, said.FrontEndReason
	if answer.FrontEnd == "" {
		answer.FrontEnd = "unknown"
	}
	return answer, nil
}

func lines(output string) []string {
	return strings.FieldsFunc(output, func(letter rune) bool { return letter == '\n' })
}

// chosenFrontEnd is the front end that an environment asks for.
func chosenFrontEnd(environment []string) string {
	for _, setting := range environment {
		if value, found := strings.CutPrefix(setting, FrontEndVariable+"="); found {
			return value
		}
	}
	return ""
}

// CheckFrontEnd says what the allocator does not understand of the environment, and which caches
// programs get here and why.
func CheckFrontEnd(ctx context.Context, ask Ask, environment []string) []Check {
	const name = "front end"
	chosen := chosenFrontEnd(environment)
	usual, err := ask(ctx)
	if err != nil {
		found := fmt.Sprintf("the library does not serve programs: %v", err)
		if len(usual.Complaints) > 0 {
			found += "; " + usual.Complaints[0]
		}
		return []Check{problem(name, "try LD_PRELOAD with the library and MALLOCSTATS=1 on a program", "%s", found)}
	}
	checks := checkOptions(environment, usual)
	if usual.Reason == "" {
		return append(checks, note(name, "use the library of this version", "the library does not tell"))
	}
	forced, err := ask(ctx, FrontEndVariable+"="+PerCPU)
	switch {
	case err != nil:
		return append(checks, ok(name, "%s", usual.Reason),
			problem("per-CPU caches", "do not set "+FrontEndVariable+"="+PerCPU, "a program that has to use them does not end well: %v", err))
	case forced.FrontEnd == PerCPU:
		return append(checks, ok(name, "%s", usual.Reason), ok("per-CPU caches", "work: %s", forced.Reason))
	case chosen == PerCPU:
		return append(checks, problem(name, "see the findings above, or do not set "+FrontEndVariable, "%s, although %s=%s", usual.Reason, FrontEndVariable, chosen))
	}
	return append(checks, ok(name, "%s", usual.Reason),
		note("per-CPU caches", "see the findings above; each thread keeps its own cache, which costs memory where there are many threads", "cannot be had: %s", forced.Reason))
}

// adviceOn says what to do about a complaint of the allocator.
func adviceOn(complaint string) string {
	if name, _, found := strings.Cut(complaint, " is set, but this library has no "); found {
		if name == "CPUPROFILE" {
			return "preload " + project.ProfilerLibraryName + " as well, which has it, or unset " + name
		}
		return "use the full library, " + project.FullLibraryName + ", which has it, or unset " + name
	}
	return project.Page("tuning.md") + " lists the variables and their values"
}

// checkOptions has a finding for each variable that the allocator did not understand.
func checkOptions(environment []string, answer Answer) []Check {
	const name = "options"
	var checks []Check
	for _, line := range answer.Complaints {
		if complaint, found := strings.CutPrefix(line, "tcmalloc: "); found {
			checks = append(checks, problem(name, adviceOn(complaint), "%s", complaint))
		} else {
			checks = append(checks, note(name, "", "a program under the allocator says: %s", line))
		}
	}
	checks = append(checks, CheckVariables(environment, answer.Complaints)...)
	checks = append(checks, CheckExitReport(environment)...)
	if len(checks) == 0 {
		checks = append(checks, ok(name, "the environment's are understood"))
	}
	return checks
}
