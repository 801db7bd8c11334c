// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"strings"
	"testing"

	"tcm/internal/symbols"
)

func TestFrames(t *testing.T) {
	for line, expected := range map[string]stackLine{
		"    @ 0x55d0 main+143 (/a b/m+0x111f)": {"    @ ", "0x55d0", symbols.Place{File: "/a b/m", Offset: 0x111e}},
		"log: @ 0x55d0 /usr/lib/libc.so.6+0x2724a (build id 93ac)": {
			"log: @ ", "0x55d0", symbols.Place{File: "/usr/lib/libc.so.6", BuildID: "93ac", Offset: 0x27249}},
		"\t@ 0x1 operator new(unsigned long)+1 (/m (deleted)+0x2)": {"\t@ ", "0x1", symbols.Place{File: "/m (deleted)", Offset: 1}},
	} {
		if got, ok := parseFrame(line); !ok || got != expected {
			t.Errorf("%q: %+v %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "    @ 0x55d0", "    @ 0x55d0 [vdso]+0x12", "    @ main+1 (/m+0x1)", "    @ 0x1 main  /src/m.c:7", "    @ 0x1 /m+0x0"} {
		if got, ok := parseFrame(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func TestParse(t *testing.T) {
	reports := Parse("process 12 /opt/shop\n"+
		"tcmalloc: double free of 0x10 (8 bytes)\n    run it under tcm debug, or something else\n    noticed by free:\n"+
		"    @ 0x1 /nowhere/shop+0x10\n    @ 0x2 [vdso]+0x20\n"+
		"    allocated for 7 bytes by:\n    @ 0x3 /nowhere/shop+0x10\n"+
		"tcmalloc: something new\n", NewSymbolizer(symbols.Options{}))
	if len(reports) != 2 {
		t.Fatalf("%d reports", len(reports))
	}
	expected := "tcm debug: shop (process 12) gave back a block that was freed before\n\ndouble free of 0x10 (8 bytes)\n" +
		"noticed by free:\n    #0 0x1 /nowhere/shop+0x10\n    #1 0x2 [vdso]+0x20\nallocated for 7 bytes by:\n    #0 0x3 /nowhere/shop+0x10\n\n" +
		"Two owners gave"
	if got := reports[0].Text("tcm debug"); !strings.HasPrefix(got, expected) {
		t.Errorf("%s", got)
	}
	if got := reports[1].Text("tcm debug"); got != "tcm debug: shop (process 12) made a mistake\n\nsomething new\n" {
		t.Errorf("%q", got)
	}
}

// TestKinds has the words of src/debug/faults.cc and docs/misuse.md.
func TestKinds(t *testing.T) {
	for message, title := range map[string]string{
		"memory allocation bug: object at 0x1 has been already deallocated (it was allocated with new)":                      "freed before",
		"memory allocation bug: object at 0x1 has been already deallocated, a while ago, or has never been allocated":        "or none at all",
		"memory allocation bug: object at 0x1 has never been allocated":                                                      "no block begins",
		"memory allocation bug: object at 0x1 has never been allocated: it lies in the block at 0x0, 1 bytes from its start": "inside of a block",
		"memory allocation bug: object at 0x1 has never been allocated: it lies before the block at 0x9":                     "beside a block",
		"memory allocation/deallocation mismatch at 0x1: allocated with new being deallocated with free":                     "does not fit",
		"sized delete of 0x1 with 8 bytes, but the block has 16":                                                             "wrong size",
		"aligned delete of 0x1 with alignment 8, but the block was allocated with 64":                                        "wrong alignment",
		"memory stomping bug: a word before object at 0x1 has been corrupted":                                                "before the beginning",
		"memory stomping bug: a word after object at 0x1 has been corrupted":                                                 "beyond the end",
		"Found a corrupted memory buffer: object at 0x1 was written to after it was deallocated, size of buffer: 8":          "after it was freed",
		"misaligned free of 0x1: no block begins there":                                                                      "no block begins",
		"invalid free of 0x1: it points into the block at 0x0 (8 bytes)":                                                     "inside of a block",
		"invalid free of 0x1: not allocated by this allocator, or freed already":                                             "or none at all",
		"double free of 0x1 (8 bytes)":                                              "freed before",
		"double free of 0x1 (8 bytes), or free of a block that was never allocated": "free already",
		"corrupted free list: object at 0x1 (8 bytes) was written to after it was freed, freed twice, or the block before it overrun": "memory that was free",
		"overflow, invalid free or write after free at 0x1: memory that belongs to no block was written to":                           "belongs to no block",
		"a.cc:1: check failed: a == b (1 vs 2)": "own records",
	} {
		if known := kindOf(message); known == nil || !strings.Contains(known.title, title) {
			t.Errorf("%q: %+v", message, known)
		}
	}
}
