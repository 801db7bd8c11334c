// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"tcm/internal/doctor"
)

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
	t.Run("bad use", func(t *testing.T) {
		for _, words := range [][]string{{"--library", "/nonexistent.so"}, {"--nonsense"}, {"word"}} {
			got := tcm.run(t, append([]string{"doctor"}, words...)...)
			if got.status.ExitStatus() != exitUsage || !strings.HasPrefix(got.errors, "tcm: ") || got.output != "" {
				t.Errorf("%q: %+v", words, got)
			}
		}
	})
}
