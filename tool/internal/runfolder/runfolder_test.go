// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package runfolder

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func TestModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for isShared, want := range map[bool][3]os.FileMode{
		false: {0o700, 0o700, 0o600},
		true:  {0o711, 0o733 | os.ModeSticky, 0o622},
	} {
		t.Setenv("TMPDIR", t.TempDir())
		folder, err := makeFolder("tcm-test-", isShared)
		if err != nil {
			t.Fatal(err)
		}
		if err := folder.Create("figures"); err != nil {
			t.Fatal(err)
		}
		for i, path := range []string{filepath.Dir(folder.Path("")), folder.Path(""), folder.Path("figures")} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode() & (os.ModePerm | os.ModeSticky); got != want[i] {
				t.Errorf("%s: %v, want %v", path, got, want[i])
			}
		}
		t.Setenv(folderVariable, folder.Path(""))
		closed, err := OfRun()
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(closed.Path("")); err != nil || info.Mode()&(os.ModePerm|os.ModeSticky) != 0o700 {
			t.Errorf("the folder stays open: %v, %v", info, err)
		}
		closed.Remove()
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	}
}

func TestNoRoom(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	folder, err := Make("tcm-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.NoRoom(); err != nil {
		t.Error(err)
	}
	if names, err := folder.Names("", ""); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
	folder.Remove()
	if err := folder.NoRoom(); err != nil {
		t.Errorf("tries twice: %v", err)
	}
	if err := (&Folder{path: folder.path}).NoRoom(); err == nil || err.Error() != os.Getenv("TMPDIR")+": no such file or directory; TMPDIR can name another folder" {
		t.Error(err)
	}
}

func TestNoFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	want := "cannot make a folder for the figures, profiles and reports of the run in " + missing + ": no such file or directory; TMPDIR can name another folder"
	if folder, err := Make("tcm-test-"); err == nil || err.Error() != want {
		t.Errorf("%v, %v", folder, err)
	}
}

func TestNamesAreNew(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	seen := map[string]bool{}
	for range 3 {
		folder, err := Make("tcm-test-")
		if err != nil {
			t.Fatal(err)
		}
		seen[filepath.Base(folder.Path(""))] = true
	}
	for name := range seen {
		if len(name) != 32 || len(seen) != 3 {
			t.Errorf("%v", seen)
		}
	}
}

func TestEnvironment(t *testing.T) {
	folder := &Folder{path: "/tmp/outer/inner"}
	folder.Set("CPUPROFILE", folder.Path("cpu"))
	got := folder.Environment([]string{"A=1", "TCM_LAUNCH_FOLDER=/old", "TCM_LAUNCH_SET_B=2"})
	if want := []string{"A=1", "TCM_LAUNCH_FOLDER=/tmp/outer/inner", "TCM_LAUNCH_SET_CPUPROFILE=/tmp/outer/inner/cpu"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestReadsOnlyFilesOfItsOwn(t *testing.T) {
	folder := &Folder{path: t.TempDir()}
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.WriteFile(outside, []byte("secret"), 0o600), os.WriteFile(folder.Path("file"), []byte("content"), 0o600),
		os.Symlink(outside, folder.Path("symbolic")), os.Link(outside, folder.Path("hard")),
		syscall.Mkfifo(folder.Path("fifo"), 0o600), os.Mkdir(folder.Path("folder"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if content, err := folder.Read("file", 7); err != nil || string(content) != "content" {
		t.Errorf("%q, %v", content, err)
	}
	if content, err := folder.Read("file", 6); err == nil {
		t.Errorf("%q has more than 6 bytes", content)
	}
	for _, name := range []string{"symbolic", "hard", "fifo", "folder", "none"} {
		if content, err := folder.Read(name, 100); err == nil {
			t.Errorf("%s: %q", name, content)
		}
	}
	if names, err := folder.Names("f", "o"); err != nil || !slices.Equal(names, []string{"fifo"}) {
		t.Errorf("%q, %v", names, err)
	}
}
