// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cpuProfile is one sample in the binary format of gperftools, followed by a mapping.
func cpuProfile(t *testing.T, mapping string) string {
	t.Helper()
	header, sample, end := []uint64{0, 3, 0, 10000, 0}, []uint64{5, 1, 0x401100}, []uint64{0, 1, 0}
	var words []byte
	for _, part := range [][]uint64{header, sample, end} {
		for _, word := range part {
			words = binary.LittleEndian.AppendUint64(words, word)
		}
	}
	return string(words) + mapping + "\n"
}

// TestPathsWithSpaces has a path that looks like that of a removed file as well.
func TestPathsWithSpaces(t *testing.T) {
	const path = "/usr/my  own (deleted) bin/shop "
	contents := []string{cpuProfile(t, "00400000-00500000 r-xp 00000000 08:01 11    "+path+" (deleted)")}
	for _, name := range []string{"gperftools.heap", "growth.heap", "jemalloc.heap"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, strings.ReplaceAll(string(text), "/nonexistent/shop", path))
	}
	for _, content := range contents {
		made, err := Parse([]byte(content))
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Mapping[0].File; got != path {
			t.Errorf("%q in\n%q", got, content)
		}
	}
}
