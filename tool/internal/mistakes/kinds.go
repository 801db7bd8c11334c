// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package mistakes

import (
	"bytes"
	"regexp"
)

// wordsOfModes are in messages of one mode only, so that the libraries with the mode are those that have the words.
var wordsOfModes = map[string]string{
	"debug":    " was written to after it was deallocated",
	"hardened": "write after free of ",
}

// HasMode returns true if the file of a library has the mode, which is a value of TCMALLOC_MODE.
func HasMode(library []byte, mode string) bool {
	return bytes.Contains(library, []byte(wordsOfModes[mode]))
}

// kind is a class of mistakes.
type kind struct {
	// words are found in the first line of the message.
	words *regexp.Regexp
	// title says what the program did.
	title string
	// cause says where the mistake is to be looked for.
	cause string
	// early is true for mistakes that were made before the call that noticed them.
	early bool
}

const (
	causeInterior = "A block is given back by the address that its allocation returned. Look for a pointer that was advanced, for an\n" +
		"object deleted through a base class that is not its first, and for delete in the place of delete[]."
	causeForeign = "The address is that of a local variable, of static data, of memory of another allocator, or it was never set.\n" +
		"Look at where the pointer that the call was given comes from."
	causeTwice = "Two owners gave the same block back. Let one of them own it, or set the pointer to null when the block is freed."
	causeSize  = "The object was deleted as one of another type than the one that was created: through a pointer to a base class\n" +
		"without a virtual destructor, or by a call that passes a wrong size."
	causeAfterFree = "A pointer to the block was used after the free. Look for what still holds one at the place that freed the block."
	causeOverrun   = "Something wrote outside of the block: look at the sizes and indexes of what writes to it."
)

// kinds are tried in this order.
var kinds = []kind{
	{regexp.MustCompile(`never been allocated: it lies in the block|free of 0x[0-9a-f]+: it points into the block`),
		"gave back an address inside of a block", causeInterior, false},
	{regexp.MustCompile(`never been allocated: it lies (before|behind) the block`),
		"gave back an address beside a block", causeInterior, false},
	{regexp.MustCompile(`double free of .* or free of a block that was never allocated`), "gave back a block that was free already",
		causeTwice + "\nOr the program never had the block: look at where the pointer comes from.", false},
	{regexp.MustCompile(`already deallocated \(|double free`), "gave back a block that was freed before", causeTwice, false},
	{regexp.MustCompile(`already deallocated, a while ago|not allocated by this allocator, or freed already`),
		"gave back an address at which no block begins: a block that was freed a while ago, or none at all",
		"If the block was freed before: " + causeTwice + "\nIf not: " + causeForeign, false},
	{regexp.MustCompile(`memory that belongs to no block was written to`), "wrote to memory that belongs to no block",
		causeOverrun + "\nOr an address was given back at which no block begins, or a block was used after it was freed.", true},
	{regexp.MustCompile(`has never been allocated|misaligned free|invalid free`), "gave back an address at which no block begins", causeForeign, false},
	{regexp.MustCompile(`allocation/deallocation mismatch|mismatched`), "gave a block back by a function that does not fit its allocation",
		"What malloc, calloc and realloc return goes to free, what new returns to delete, and what new[] returns to delete[]. A smart\n" +
			"pointer needs a deleter that fits.", false},
	{regexp.MustCompile(`sized delete`), "deleted a block with a wrong size", causeSize, false},
	{regexp.MustCompile(`aligned delete`), "deleted a block with a wrong alignment", causeSize, false},
	{regexp.MustCompile(`a word before object|underflow`), "wrote before the beginning of a block", causeOverrun, true},
	{regexp.MustCompile(`a word after object|overflow`), "wrote beyond the end of a block", causeOverrun, true},
	{regexp.MustCompile(`corrupted free list`), "wrote to memory that was free",
		causeAfterFree + "\nOr a write went beyond the end of the block before it, or the block was freed twice.", true},
	{regexp.MustCompile(`after it was deallocated|use after free|[Uu]se-after-free|written to after it was freed|write after free`),
		"used a block after it was freed", causeAfterFree, true},
	{regexp.MustCompile(`check failed`), "damaged the allocator's own records, or met a bug of the allocator",
		"Where tcm debug finds no mistake of the program, please report the message as a bug of the allocator.", true},
	{regexp.MustCompile(`out of memory`), "ran out of memory", "See the limits of the process and of its container, and tcm doctor.", false},
}

// kindOf returns nil for a message that is not known.
func kindOf(message string) *kind {
	for i := range kinds {
		if kinds[i].words.MatchString(message) {
			return &kinds[i]
		}
	}
	return nil
}
