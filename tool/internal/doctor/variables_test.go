// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestVariablesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tuning.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, match[1])
	}
	if !slices.Equal(listed, variables) {
		t.Errorf("docs/tuning.md has\n%v, variables.go\n%v", listed, variables)
	}
}

func TestCheckExitReport(t *testing.T) {
	const name = "TCMALLOC_EXIT_REPORT="
	path := filepath.Join(t.TempDir(), "report")
	if checks := CheckExitReport([]string{name + path}); len(checks) != 1 || !strings.Contains(checks[0].Found, path) {
		t.Errorf("a file that is not there: %+v", checks)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, environment := range [][]string{nil, {name}, {name + path}, {name, name + "/no/file"}} {
		if checks := CheckExitReport(environment); len(checks) != 0 {
			t.Errorf("%v: %+v", environment, checks)
		}
	}
}

func TestCheckVariables(t *testing.T) {
	environment := []string{"PATH=x", "TCMALLOC_BACKGROUND=1", "TCMALLOC_RELAESE_RATE=1", "TCMALLOC_LIMIT_MB=5", "TCMALLOC_X=1"}
	checks := CheckVariables(environment, []string{`tcmalloc: unknown variable "TCMALLOC_RELAESE_RATE"`})
	if len(checks) != 2 || !strings.Contains(checks[0].Advice, "TCMALLOC_HEAP_LIMIT_MB") &&
		!strings.Contains(checks[0].Advice, "TCMALLOC_SOFT_LIMIT_MB") || strings.Contains(checks[1].Advice, "nearest") {
		t.Errorf("%+v", checks)
	}
	complaint := `tcmalloc: TCMALLOC_HEAP_LIMIT_MB="x": expected a number`
	checks = CheckVariables([]string{"TCMALLOC_HEAP_LIMIT_MB=x", "TCMALLOC_HEAP_LIMIT=1G", "TCMALLOC_FOO=1"}, []string{complaint})
	if len(checks) != 2 || !strings.Contains(checks[0].Advice, "TCMALLOC_HEAP_LIMIT_MB") || strings.Contains(checks[1].Advice, "nearest") {
		t.Errorf("the name of a bad variable begins with that of an unknown one: %+v", checks)
	}
	if got := distance("kitten", "sitting"); got != 3 {
		t.Errorf("%d", got)
	}
}
