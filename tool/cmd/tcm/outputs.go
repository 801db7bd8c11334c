// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"tcm/internal/text"
)

// outputName is the value of a flag that names what to write. An empty one comes from a variable of a script that is not set.
type outputName string

// Set reads the value of the flag.
func (n *outputName) Set(word string) error {
	if word == "" {
		return errors.New("expected a name to write to")
	}
	*n = outputName(word)
	return nil
}

// String writes the value.
func (n *outputName) String() string { return string(*n) }

// Type is the word for the value in the help.
func (n *outputName) Type() string { return "string" }

// output is a file that a command is to write.
type output struct {
	// flag names the file, for messages.
	flag string
	// path is empty if the user asks for no such file.
	path *string
	// isProfile is true for a profile, which may replace an older one.
	isProfile bool
}

// prepareOutputs makes paths of files to write absolute, because programs change their working directory, and returns an
// error if one cannot be written, or must not be replaced, before a program runs whose result would be lost. Empty ones stay.
// inputs are words of the command line that may name files to read.
func prepareOutputs(inputs []string, outputs ...output) error {
	for _, one := range outputs {
		if *one.path == "" {
			continue
		}
		absolute, err := filepath.Abs(*one.path)
		if err != nil {
			return err
		}
		err = checkOutput(absolute)
		if err == nil {
			err = one.checkReplaced(absolute, inputs)
		}
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", *one.path, text.WithoutPath(err))
		}
		*one.path = absolute
	}
	return nil
}

// checkOutput returns an error if writeWhole cannot write a file, and changes nothing. Pipes and devices are not opened:
// that may wait for a reader, or do something.
func checkOutput(path string) error {
	if number, isStream := streamOf(path); isStream {
		return checkStream(number)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return checkNew(path)
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a folder")
	case !info.Mode().IsRegular():
		const toWrite = 2
		return syscall.Access(path, toWrite)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

// checkNew returns an error if a file that is not there cannot be made.
func checkNew(path string) error {
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no folder %s", filepath.Dir(path))
	}
	file, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// mostLinks is how many symbolic links the system follows.
const mostLinks = 40

// streamOf returns the number of the open file that a path stands for, as /dev/stdout and /dev/fd/63 do.
func streamOf(path string) (number int, isStream bool) {
	streams, err := filepath.EvalSymlinks("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	for range mostLinks {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return 0, false
		}
		if folder == streams {
			number, err := strconv.Atoi(filepath.Base(path))
			return number, err == nil
		}
		next, err := os.Readlink(path)
		if err != nil {
			return 0, false
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(folder, next)
		}
		path = next
	}
	return 0, false
}

// checkStream returns an error if an open file is none, or open for reading only.
func checkStream(number int) error {
	flags, _, failed := syscall.Syscall(syscall.SYS_FCNTL, uintptr(number), syscall.F_GETFL, 0)
	switch {
	case failed != 0:
		return failed
	case flags&syscall.O_ACCMODE == syscall.O_RDONLY:
		return errors.New("it is open for reading only")
	}
	return nil
}
