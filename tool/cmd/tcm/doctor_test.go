// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tcm/internal/doctor"
)

// libcIn is what a diagnosis says of libc, which a program of the system is asked for.
func libcIn(t *testing.T, diagnosis string) doctor.Check {
	var found doctor.Diagnosis
	if err := json.Unmarshal([]byte(diagnosis), &found); err != nil {
		t.Fatalf("%v: %s", err, diagnosis)
	}
	for _, check := range found.Checks {
		if check.Name == "libc" {
			return check
		}
	}
	return doctor.Check{}
}

func TestDoctor(t *testing.T) {
	tcm := install(t)

	t.Run("JSON", func(t *testing.T) {
		got := tcm.run(t, "doctor", "--json")
		var found doctor.Diagnosis
		if err := json.Unmarshal([]byte(got.output), &found); err != nil {
			t.Fatalf("%v: %s", err, got.output)
		}
		// The library that is installed here is not TCMalloc.
		if found.Problems == 0 || got.status.ExitStatus() != exitProblems || got.errors != "" {
			t.Errorf("%+v", got)
		}
		last := found.Checks[len(found.Checks)-1]
		if last.Name != "library" || last.State != doctor.Problem {
			t.Errorf("%+v", last)
		}
	})
	t.Run("text", func(t *testing.T) {
		got := tcm.run(t, "doctor", "--library", tcm.tcm)
		if got.status.ExitStatus() != exitProblems || !strings.Contains(got.output, "\nproblem  library ") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("without PATH", func(t *testing.T) {
		with := tcm.run(t, "doctor", "--json")
		t.Setenv("PATH", "")
		if err := os.Unsetenv("PATH"); err != nil {
			t.Fatal(err)
		}
		if got := tcm.run(t, "doctor", "--json"); libcIn(t, got.output) != libcIn(t, with.output) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("bad use", func(t *testing.T) {
		for _, words := range [][]string{{"--library", "/nonexistent.so"}, {"--nonsense"}, {"word"}} {
			got := tcm.run(t, append([]string{"doctor"}, words...)...)
			if got.status.ExitStatus() != exitUsage || !strings.HasPrefix(got.errors, "tcm: ") || got.output != "" {
				t.Errorf("%q: %+v", words, got)
			}
		}
	})
}
