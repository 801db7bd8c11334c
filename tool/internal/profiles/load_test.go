// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"tcm/internal/testprofile"
)

// folded returns the folded stacks of a profile in a file.
func folded(t *testing.T, selection Selection, names ...string) string {
	t.Helper()
	made, err := LoadAll(names)
	if err != nil {
		t.Fatal(err)
	}
	set, err := Select(made, selection)
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	if err := set.WriteFolded(&output); err != nil {
		t.Fatal(err)
	}
	return output.String()
}

func TestFormats(t *testing.T) {
	cases := []struct{ file, sampleType, want string }{
		{"gperftools.heap", "", "shop+0x1300;libstore.so.1+0x1100;shop+0x1150 4096\nshop+0x1300;shop+0x1200;shop+0x1100 8192\n"},
		{"gperftools.heap", "alloc_space", "shop+0x1300;libstore.so.1+0x1100;shop+0x1150 8192\nshop+0x1300;shop+0x1200;shop+0x1100 12288\n"},
		// Two objects of 1 MiB are 2 / (1 - exp(-2)) objects where one is sampled in 512 KiB.
		{"sampled.heap", "inuse_objects", "shop+0x1300;shop+0x1100 2\n"},
		{"sampled.heap", "inuse_space", "shop+0x1300;shop+0x1100 2425393\n"},
		{"growth.heap", "", "shop+0x1300;shop+0x1100 1048576\n"},
		// 13 objects of 512 B stand for 13 / (1 - exp(-1/2)) where one is sampled in 1 KiB.
		{"jemalloc.heap", "", "shop+0x1300;shop+0x1100 16916\nshop+0x1300;shop+0x1150 99840\n"},
		{"jemalloc.heap", "inuse_objects", "shop+0x1300;shop+0x1100 33\nshop+0x1300;shop+0x1150 1\n"},
	}
	for _, one := range cases {
		if got := folded(t, Selection{Type: one.sampleType}, filepath.Join("testdata", one.file)); got != one.want {
			t.Errorf("%s %s:\n%swant\n%s", one.file, one.sampleType, got, one.want)
		}
	}
	path := filepath.Join("testdata", "gperftools.heap")
	if got := folded(t, Selection{}, path, path); got != "shop+0x1300;libstore.so.1+0x1100;shop+0x1150 8192\nshop+0x1300;shop+0x1200;shop+0x1100 16384\n" {
		t.Errorf("twice the same profile:\n%s", got)
	}
	if got := folded(t, Selection{Allocator: true}, filepath.Join("testdata", "jemalloc.heap")); !strings.Contains(got, "libjemalloc.so.2+0x1100 ") {
		t.Errorf("the allocator's frames are gone:\n%s", got)
	}
}

func TestPprofFormat(t *testing.T) {
	for _, write := range []func(*profile.Profile, *bytes.Buffer) error{
		func(p *profile.Profile, to *bytes.Buffer) error { return p.Write(to) },
		func(p *profile.Profile, to *bytes.Buffer) error { return p.WriteUncompressed(to) },
	} {
		var written bytes.Buffer
		if err := write(testprofile.Shop(1), &written); err != nil {
			t.Fatal(err)
		}
		made, err := Parse(written.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if set, err := Select(made, Selection{}); err != nil || set.Type != "inuse_space" || set.ObjectsType != "inuse_objects" || len(set.Stacks) != 4 {
			t.Errorf("%+v, %v", set, err)
		}
	}
}

// TestIsBeginning has files of which no more than the first bytes are known.
func TestIsBeginning(t *testing.T) {
	var packed, plain bytes.Buffer
	if err := errors.Join(testprofile.Shop(1).Write(&packed), testprofile.Shop(1).WriteUncompressed(&plain)); err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{packed.String(): true, plain.String(): false, "": false, "\x1f": false, "<!DOCTYPE html>": false, "heap profile of mine\n": false}
	for _, name := range []string{"gperftools.heap", "sampled.heap", "growth.heap", "jemalloc.heap"} {
		content, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		texts[string(content)] = true
	}
	for text, want := range texts {
		if got := IsBeginning([]byte(text[:min(len(text), 256)])); got != want {
			t.Errorf("%.60q: %v", text, got)
		}
	}
}

func TestWhatIsNoProfile(t *testing.T) {
	folder := t.TempDir()
	text, err := os.ReadFile("testdata/gperftools.heap")
	if err != nil {
		t.Fatal(err)
	}
	jemalloc, err := os.ReadFile("testdata/jemalloc.heap")
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, content, want string
	}{
		{"empty", "", "an empty file"},
		{"blank", "\n\n", "an empty file"},
		{"words", "hello\n", "not a profile"},
		{"binary", "\x7fELF\x02\x01\x01", "not a profile"},
		{"line", string(text[:90]), "cut off"},
		{"maps", string(text[:bytes.Index(text, []byte("MAPPED"))]), "cut off"},
		{"sums", string(jemalloc[:70]), "cut off"},
		{"stack", strings.Replace(string(jemalloc), "  t*: 1: 99840 [0: 0]\n  t1", "  t1", 1), "a stack without figures"},
		{"address", strings.Replace(string(jemalloc), "0x401151", "0xnone", 1), "is no address"},
		{"packed", packed.String()[:packed.Len()/2], "cut off"},
		{"header", "\x1f\x8b", "cut off"},
		{"damaged", "\x1f\x8bnonsense-nonsense", "damaged"},
	}
	for _, one := range cases {
		path := filepath.Join(folder, one.name)
		if err := os.WriteFile(path, []byte(one.content), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), one.want) || !strings.HasPrefix(err.Error(), path+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", one.name, err)
		}
	}
	for path, want := range map[string]string{folder: "a directory", filepath.Join(folder, "nonesuch"): "no such file"} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v", err)
		}
	}
}

func TestUnpackedIsBounded(t *testing.T) {
	packed := func(data []byte) []byte {
		var made bytes.Buffer
		writer := gzip.NewWriter(&made)
		if _, err := writer.Write(data); err != nil || writer.Close() != nil {
			t.Fatal(err)
		}
		return made.Bytes()
	}
	large := packed(make([]byte, 1<<20))
	if _, err := ParseWithin(large, 1000); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Errorf("%v", err)
	}
	if _, err := ParseWithin(packed(large), 1<<20); !errors.Is(err, ErrFormat) {
		t.Errorf("packed twice: %v", err)
	}
}
