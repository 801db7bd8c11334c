// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package text

import (
	"os/exec"
	"strings"
	"testing"
)

func TestShellWords(t *testing.T) {
	for _, words := range [][]string{
		{"prog"}, {"prog", "-x", "a=b"}, {"prog", "a b", "", "it's", "$HOME", "*", `\`, "x;y", "a\rb", "a^b"},
	} {
		line := ShellWords(words)
		got, err := exec.Command("sh", "-c", `printf '<%s>' `+line).Output()
		if want := "<" + strings.Join(words, "><") + ">"; err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", line, got, err)
		}
	}
	if got := ShellWords([]string{"prog", "-x"}); got != "prog -x" {
		t.Errorf("needless quotes: %s", got)
	}
	if got := ShellWords([]string{"a=b", "c=d"}); got != "'a=b' c=d" {
		t.Errorf("a program becomes a variable: %s", got)
	}
	if got := ShellLine([]string{"prog", strings.Repeat("x", 500)}); len(got) != 505 {
		t.Errorf("%s", got)
	}
	if got := ShellWords([]string{"prog", strings.Repeat("x", 500)}); got != "prog ..." {
		t.Errorf("%s", got)
	}
}
