// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// writeStream goes on where the program stopped to write. To open the path instead would begin at the front of a file.
func writeStream(number int, path string, write func(io.Writer) error) error {
	copied, err := syscall.Dup(number)
	if err != nil {
		return &os.PathError{Op: "dup", Path: path, Err: err}
	}
	syscall.CloseOnExec(copied)
	file := os.NewFile(uintptr(copied), path)
	return errors.Join(write(file), file.Close())
}

// writeResult writes a file about a run, which may not happen again: if the file cannot be written, a copy is kept among
// temporary files. The error says where.
func writeResult(path string, write func(io.Writer) error) error {
	err := writeWhole(path, write)
	// A reader that goes away wants no more.
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return err
	}
	kept, failed := keepCopy(filepath.Base(path), write)
	if failed != nil {
		return err
	}
	return fmt.Errorf("%w; it is in %s instead", err, kept)
}

// keepCopy writes a temporary file whose name ends like this one, and returns its path.
func keepCopy(name string, write func(io.Writer) error) (string, error) {
	file, err := os.CreateTemp("", "tcm-kept-*-"+name[max(0, len(name)-mostOfName):])
	if err != nil {
		return "", err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// writeWhole replaces a file as a whole, so that an interruption leaves the previous one. Pipes, devices and streams, which
// must not be replaced, are written to; of a symbolic link, the file that it leads to is replaced. A file that can be
// written, but not replaced, is written in place.
func writeWhole(path string, write func(io.Writer) error) error {
	err := replaceOrWrite(path, write)
	var failed *os.PathError
	if errors.As(err, &failed) {
		return fmt.Errorf("cannot write %s: %w", path, failed.Err)
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return fmt.Errorf("cannot write %s: %w", path, link.Err)
	}
	return err
}

func replaceOrWrite(path string, write func(io.Writer) error) error {
	if number, isStream := streamOf(path); isStream {
		return writeStream(number, path, write)
	}
	info, err := os.Stat(path)
	exists := err == nil
	if exists && !info.Mode().IsRegular() {
		return writeInPlace(path, 0, write)
	}
	err = replace(path, info, write)
	if exists && cannotReplace(err) {
		return writeInPlace(path, os.O_TRUNC, write)
	}
	return err
}

// cannotReplace is true where the folder takes no new file, or the file is mounted by itself, as into a container. It is
// false for a file of another user in a shared folder, which is not to be trusted.
func cannotReplace(err error) bool {
	var renamed *os.LinkError
	if errors.As(err, &renamed) {
		return renamed.Err == syscall.EBUSY
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

func writeInPlace(path string, flags int, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|flags, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// replace gives a new file the name. info is about the previous one, nil if there is none.
func replace(path string, info os.FileInfo, write func(io.Writer) error) error {
	target := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved
	}
	file, err := createBeside(target)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Chmod(modeOf(info)), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), target)
}

// mostOfName is how many bytes of a name go into that of a temporary file, which is longer.
const mostOfName = 200

// createBeside makes a file in the folder of another one. The name is new, so that nothing that somebody put into a shared
// folder is written to.
func createBeside(path string) (*os.File, error) {
	name := filepath.Base(path)
	return os.CreateTemp(filepath.Dir(path), "."+name[:min(len(name), mostOfName)]+".*")
}

// modeOf is the mode of a file that is there already, else what the user's umask leaves of that of texts.
func modeOf(info os.FileInfo) os.FileMode {
	if info != nil {
		return info.Mode().Perm()
	}
	return 0o666 &^ umask()
}

// umask reads the process's mask, which can only be read by setting it. Nothing makes files beside it.
func umask() os.FileMode {
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return os.FileMode(mask) & os.ModePerm
}
