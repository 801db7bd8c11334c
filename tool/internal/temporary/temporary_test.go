// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package temporary

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFolderThatIsMissing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	_, ofFolder := Folder("x-", "a server")
	_, ofFile := File("x-", "what is counted")
	for want, err := range map[string]error{
		"cannot make a folder for a server in " + missing + ": no such file or directory; TMPDIR can name another folder":      ofFolder,
		"cannot make a file for what is counted in " + missing + ": no such file or directory; TMPDIR can name another folder": ofFile,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestFilesAreMade(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	folder, err := Folder("x-", "a server")
	if info, failed := os.Stat(folder); err != nil || failed != nil || !info.IsDir() || filepath.Dir(folder) != parent {
		t.Errorf("%s: %v, %v", folder, err, failed)
	}
	file, err := File("y-", "what is counted")
	if err != nil || filepath.Dir(file.Name()) != parent {
		t.Fatalf("%v: %v", file, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}
