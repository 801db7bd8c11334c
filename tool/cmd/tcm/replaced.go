// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"tcm/internal/profiles"
)

// checkReplaced returns an error if the output would replace a file that is no earlier output of its kind. A user who takes
// --html for a flag without a file would lose the program or the profile whose name comes next. Pipes, devices and
// streams are not replaced.
func (o output) checkReplaced(path string, inputs []string) error {
	info, err := os.Stat(path)
	if _, isStream := streamOf(path); err != nil || isStream || !info.Mode().IsRegular() {
		return nil
	}
	begin := beginningOf(path)
	switch {
	case isInput(info, inputs):
		return fmt.Errorf("it is an input of the same command, which %s would replace; name another file", o.flag)
	case isProgram(begin):
		return fmt.Errorf("it is a program, which %s would replace; name another file, or remove this one first", o.flag)
	case !o.isProfile && profiles.IsBeginning(begin):
		return fmt.Errorf("it is a profile or a compressed file, which %s would replace; name another file, or remove this one first", o.flag)
	}
	return nil
}

// isInput returns true for a file that is standard input, or that one of the words names.
func isInput(info os.FileInfo, words []string) bool {
	if input, err := os.Stdin.Stat(); err == nil && os.SameFile(info, input) {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool {
		input, err := os.Stat(word)
		return err == nil && os.SameFile(info, input)
	})
}

// mostBeginning is how many bytes tell the kinds of files apart.
const mostBeginning = 256

// beginningOf returns the first bytes of a file, none if it cannot be read.
func beginningOf(path string) []byte {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	begin := make([]byte, mostBeginning)
	length, _ := io.ReadFull(file, begin)
	return begin[:length]
}

// isProgram returns true for the first bytes of programs, libraries and scripts.
func isProgram(begin []byte) bool {
	return bytes.HasPrefix(begin, []byte("\x7fELF")) || bytes.HasPrefix(begin, []byte("#!"))
}
