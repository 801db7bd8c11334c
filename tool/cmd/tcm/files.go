// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// writeWhole replaces a file as a whole, so that an interruption leaves the previous one. Pipes and devices, which
// must not be replaced, are written to; of a symbolic link, the file that it leads to is replaced.
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
	target := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	}
	// The name is new, so that nothing that somebody put into a shared folder is written to.
	file, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if err := errors.Join(write(file), file.Chmod(modeOf(info)), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), target)
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
