// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// hasMappingLines returns true for the formats that end with the lines of /proc/self/maps. CPU profiles of gperftools are
// words, the first of which is 0; no profile.proto begins with such a byte.
func hasMappingLines(data []byte) bool {
	return isText(data) || isJemalloc(data) || data[0] == 0
}

// mappingsAt returns where these lines, or the name of their section, begin. What is before them in a CPU profile ends with
// a word that is 0.
func mappingsAt(data []byte) int {
	if at := bytes.LastIndex(data, []byte(mapSection)); at >= 0 {
		return at
	}
	return bytes.LastIndexByte(data, 0) + 1
}

// mappedFile is a line of /proc/self/maps, with the path, which is the rest of the line, and what the kernel adds to that of
// a file that was removed.
var mappedFile = regexp.MustCompile(`(?m)^([0-9a-f]+-[0-9a-f]+ [-rwxps]{4} [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ [0-9]+ +)(/.*?)( \(deleted\))?$`)

// hiddenSpace is no part of a path.
const hiddenSpace = "\x00"

// hideSpaces puts hiddenSpace in the place of each space in the path of a mapping, because the pprof library takes paths to
// end there. showSpaces puts them back.
func hideSpaces(data []byte) []byte {
	if !hasMappingLines(data) {
		return data
	}
	at := mappingsAt(data)
	lines := mappedFile.ReplaceAllFunc(data[at:], func(line []byte) []byte {
		parts := mappedFile.FindSubmatch(line)
		return slices.Concat(parts[1], bytes.ReplaceAll(parts[2], []byte(" "), []byte(hiddenSpace)), parts[3])
	})
	return slices.Concat(data[:at], lines)
}

func showSpaces(made *profile.Profile) {
	for _, mapping := range made.Mapping {
		mapping.File = strings.ReplaceAll(mapping.File, hiddenSpace, " ")
	}
}
