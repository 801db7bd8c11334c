// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func makeCheckout(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, filepath.Dir(marker)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, marker), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFind(t *testing.T) {
	root := makeCheckout(t)
	if got, err := Find(root); err != nil || string(got) != root {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Find(t.TempDir()); err == nil {
		t.Error("any folder is a checkout")
	}
	below := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	if got, err := Find(""); err != nil || string(got) != root {
		t.Errorf("from below: %q, %v", got, err)
	}
	t.Chdir(t.TempDir())
	if _, err := Find(""); !errors.Is(err, ErrNoCheckout) {
		t.Errorf("%v", err)
	}
}

func TestPathsThatTheLoaderSplits(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a b", "a:b", "$LIB"} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Library(path, ""); err == nil || !strings.Contains(err.Error(), "cannot be preloaded") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLibrary(t *testing.T) {
	root := makeCheckout(t)
	t.Chdir(t.TempDir())
	if _, err := Library("", root); err == nil {
		t.Error("a library is found where none is")
	}
	path := filepath.Join(root, "build", "release", "lib", LibraryName)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Library("", root); err != nil || got != path {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Library(path, ""); err != nil || got != path {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Library(filepath.Join(root, "nonesuch"), root); err == nil {
		t.Error("a library that does not exist is taken")
	}
}
