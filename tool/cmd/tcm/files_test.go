// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
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

// TestOutputsOfRuns has no program that starts, because its result would be lost.
func TestOutputsOfRuns(t *testing.T) {
	tcm := install(t)
	profile := shopFile(t, "shop.pb.gz", 1)
	for _, words := range [][]string{
		{"debug", "-o"}, {"harden", "-o"}, {"cpu", "-o"}, {"cpu", "--html"}, {"cpu", "--svg"},
		{"run", "--library", tcm.library, "--heap-profile"}, {"run", "--library", tcm.library, "--html"}, {"bench", "--json"},
	} {
		got := tcm.run(t, append(words, "/proc/nonexistent", "sh", "-c", "echo started; cp "+profile+` "$TCMALLOC_HEAP_PROFILE"`)...)
		if got.status.ExitStatus() != exitUsage || got.output != "" || !strings.HasPrefix(got.errors, "tcm: cannot write /proc/nonexistent: ") || strings.Count(got.errors, "\n") != 1 {
			t.Errorf("%q: %+v", words, got)
		}
	}
}

func TestPrepareOutputs(t *testing.T) {
	t.Chdir(t.TempDir())
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	reading, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	for _, err := range []error{os.WriteFile("there", []byte("content"), 0o644), syscall.Mkfifo("pipe", 0o600), os.Symlink("there", "link")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"new", "there", "link", "pipe", "-", strings.Repeat("n", 255)} {
		prepared, none := path, ""
		if err := prepareOutputs(nil, output{path: &none}, output{path: &prepared}); err != nil || none != "" || prepared != filepath.Join(folder, path) {
			t.Errorf("%s: %q, %v", path, prepared, err)
		}
	}
	for _, path := range []string{"/dev/null", "/dev/full", "/dev/stdout", "/proc/self/fd/2"} {
		if err := prepareOutputs(nil, output{path: &path}); err != nil {
			t.Error(err)
		}
	}
	refused := map[string]string{
		"/proc/nonexistent": "no such file or directory", "there/new": "there is no folder " + filepath.Join(folder, "there"),
		".": "it is a folder", strings.Repeat("n", 256): "file name too long", "/dev/fd/999": "bad file descriptor",
		fmt.Sprint("/dev/fd/", reading.Fd()): "it is open for reading only",
	}
	for path, why := range refused {
		prepared := path
		if err := prepareOutputs(nil, output{path: &prepared}); err == nil || err.Error() != "cannot write "+path+": "+why || prepared != path {
			t.Errorf("%s: %q, %v", path, prepared, err)
		}
	}
	if names, err := os.ReadDir("."); err != nil || len(names) != 3 {
		t.Errorf("%v, %v", names, err)
	}
	if content, err := os.ReadFile("there"); err != nil || string(content) != "content" {
		t.Errorf("%q, %v", content, err)
	}
}

// TestOutputsWithoutRights has a file without rights, and one that can be written in a folder that takes no others.
func TestOutputsWithoutRights(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root has all rights")
	}
	folder := t.TempDir()
	path, other, closed := filepath.Join(folder, "file"), filepath.Join(folder, "new"), filepath.Join(folder, "closed")
	for _, err := range []error{os.WriteFile(path, []byte("something long"), 0o600), os.WriteFile(closed, nil, 0o400), os.Chmod(folder, 0o500)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(folder, 0o700)
	for _, refused := range []string{other, closed} {
		if err := prepareOutputs(nil, output{path: &refused}); err == nil || err.Error() != "cannot write "+refused+": permission denied" {
			t.Error(err)
		}
	}
	if err := errors.Join(prepareOutputs(nil, output{path: &path}), writeWhole(path, writeWord("short"))); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "short" {
		t.Errorf("%q, %v", content, err)
	}
}

// TestCannotReplace has no file of another user written in place.
func TestCannotReplace(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, &os.PathError{Err: syscall.EACCES}: true, &os.PathError{Err: syscall.EROFS}: true, &os.PathError{Err: syscall.ENOSPC}: false,
		&os.LinkError{Err: syscall.EBUSY}: true, &os.LinkError{Err: syscall.EPERM}: false,
	} {
		if got := cannotReplace(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestWriteWholeToAStream has an open file, of which what was written before and after must stay.
func TestWriteWholeToAStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(fmt.Sprint("/dev/fd/", file.Fd()), link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, fmt.Sprint("/proc/self/fd/", file.Fd())} {
		_, before := file.WriteString("before ")
		if err := errors.Join(before, writeWhole(name, writeWord("content "))); err != nil {
			t.Error(err)
		}
	}
	_, err = file.WriteString("after")
	content, failed := os.ReadFile(path)
	if err := errors.Join(err, failed); err != nil || string(content) != "before content before content after" {
		t.Errorf("%q, %v", content, err)
	}
}

func TestWriteResult(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	err := writeResult("/dev/full", writeWord("content"))
	names, failed := filepath.Glob(filepath.Join(temporary, "tcm-kept-*-full"))
	if failed != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, failed)
	}
	if err == nil || err.Error() != "cannot write /dev/full: no space left on device; it is in "+names[0]+" instead" {
		t.Error(err)
	}
	if content, err := os.ReadFile(names[0]); err != nil || string(content) != "content" {
		t.Errorf("%q, %v", content, err)
	}
	t.Setenv("TMPDIR", filepath.Join(temporary, "nonexistent"))
	if err := writeResult("/dev/full", writeWord("content")); err == nil || err.Error() != "cannot write /dev/full: no space left on device" {
		t.Error(err)
	}
	// A reader that goes away gets no copy.
	t.Setenv("TMPDIR", temporary)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader.Close()
	if err := writeResult(fmt.Sprint("/dev/fd/", writer.Fd()), writeWord("content")); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
	if names, err := os.ReadDir(temporary); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
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
