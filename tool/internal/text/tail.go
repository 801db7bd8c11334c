// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package text

import "strings"

// Tail is a writer that keeps the end of what is written to it: at least Size bytes, and at most twice as many.
type Tail struct {
	Size int
	data []byte
}

// Write never fails.
func (t *Tail) Write(data []byte) (int, error) {
	t.data = append(t.data, data...)
	if len(t.data) > 2*t.Size {
		t.data = append([]byte(nil), t.data[len(t.data)-t.Size:]...)
	}
	return len(data), nil
}

// String returns what was kept.
func (t *Tail) String() string { return string(t.data) }

// LastLine returns the last line that is not blank.
func (t *Tail) LastLine() string { return LastLines(t.String(), 1) }

// LastLines joins the last lines of a text, up to a number of them, into one.
func LastLines(whole string, most int) string {
	lines := strings.Split(strings.TrimSpace(whole), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], " | ")
}
