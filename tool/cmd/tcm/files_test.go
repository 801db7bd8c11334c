// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func writeWord(word string) func(io.Writer) error {
	return func(file io.Writer) error {
		_, err := io.WriteString(file, word)
		return err
	}
}

func TestWriteWhole(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link, path} {
		if err := writeWhole(name, writeWord(name)); err != nil {
			t.Error(err)
		}
		content, err := os.ReadFile(path)
		if err != nil || string(content) != name {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	if err := writeWhole(path, func(io.Writer) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if err := writeWhole(path, writeWord("again")); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("another mode: %v, %v", info, err)
	}
	if names, err := os.ReadDir(folder); err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	err := writeWhole(filepath.Join(folder, "nonexistent", "file"), writeWord(""))
	if err == nil || !strings.HasSuffix(err.Error(), "/nonexistent/file: no such file or directory") {
		t.Error(err)
	}
}

// A device or a pipe that is named as output gets the content, and stays what it is.
func TestWriteWholeToAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		read <- string(content)
	}()
	if err := writeWhole(path, writeWord("content")); err != nil {
		t.Error(err)
	}
	if got := <-read; got != "content" {
		t.Errorf("%q", got)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe was replaced: %v, %v", info, err)
	}
}
