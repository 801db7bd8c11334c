// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package text

import (
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for input, want := range map[string]string{
		"plain\n\tµ — 日本\n":          "plain\n\tµ — 日本\n",
		"\x1b[2J\r\a\x7f":            "?[2J???",
		"\u009b1m \u202e \x9b \xe2(": "?1m ? ? ?(",
	} {
		var whole, bytewise strings.Builder
		if n, err := NewPrintable(&whole).Write([]byte(input)); n != len(input) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		writer := NewPrintable(&bytewise)
		for i := range len(input) {
			if _, err := writer.Write([]byte{input[i]}); err != nil {
				t.Error(err)
			}
		}
		if whole.String() != want || bytewise.String() != want {
			t.Errorf("%q: %q and %q, want %q", input, whole.String(), bytewise.String(), want)
		}
	}
}
