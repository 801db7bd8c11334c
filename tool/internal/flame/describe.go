// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package flame

import (
	"fmt"
	"path/filepath"
	"strings"

	"tcm/internal/profiles"
	"tcm/internal/text"
)

// describe returns the lines of a hint: the function, where it is, what it holds.
func describe(set *profiles.Set, root, n *node) []string {
	lines := []string{n.frame.Name}
	if where := place(n.frame); where != "" {
		lines = append(lines, where)
	}
	if set.Compared {
		change := fmt.Sprintf("%s: from %s to %s", profiles.FormatChange(n.change(), set.Unit), profiles.Format(n.old.Amount, set.Unit), profiles.Format(n.new.Amount, set.Unit))
		if set.ObjectsType != "" {
			change += fmt.Sprintf("; %s objects", profiles.FormatChange(n.new.Objects-n.old.Objects, "count"))
		}
		return append(lines, change)
	}
	lines = append(lines, amount(set, n.new)+share(n.width, root.width))
	if n.self.Amount != 0 && n.self != n.new {
		lines = append(lines, "itself: "+amount(set, n.self))
	}
	return lines
}

func amount(set *profiles.Set, value profiles.Value) string {
	made := profiles.Format(value.Amount, set.Unit)
	if set.ObjectsType != "" {
		made += fmt.Sprintf(" in %s objects", text.Count(value.Objects))
	}
	return made
}

func share(part, whole int64) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf(", %.1f%%", 100*float64(part)/float64(whole))
}

func place(frame profiles.Frame) string {
	var words []string
	if frame.File != "" {
		words = append(words, filepath.Base(frame.File))
	}
	if frame.Object != "" && !strings.HasPrefix(frame.Name, frame.Object+"+") {
		words = append(words, frame.Object)
	}
	return strings.Join(words, ", ")
}
