// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tcm/internal/testprofile"
)

// kinds are files that are there, by what they are.
var kinds = map[string]string{
	"program": "\x7fELF\x02\x01\x01", "script": "#!/bin/sh\n", "packed": "\x1f\x8b\x08", "heap": "heap profile: 1: 64 [1: 64] @ heap_v2/1\n",
	"jemalloc": "heap_v2/524288\n", "cpu": strings.Repeat("\x00", 8) + "\x03" + strings.Repeat("\x00", 31),
	"page": "<!DOCTYPE html>\n", "picture": "<svg ", "JSON": "{}\n", "text": "tcm: no mistakes\n", "nothing": "", "zeros": strings.Repeat("\x00", 40),
}

// writeKinds makes these files in the working directory, which is a new one.
func writeKinds(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, content := range kinds {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsNotReplaced(t *testing.T) {
	writeKinds(t)
	program := "it is a program, which --flag would replace; name another file, or remove this one first"
	profile := strings.Replace(program, "a program", "a profile or a compressed file", 1)
	refused := map[string]string{"program": program, "script": program, "packed": profile, "heap": profile, "jemalloc": profile, "cpu": profile}
	for name := range kinds {
		for _, isProfile := range []bool{false, true} {
			want := refused[name]
			if want != "" {
				want = "cannot write " + name + ": " + want
			}
			if isProfile && refused[name] == profile {
				want = ""
			}
			path, got := name, ""
			if err := prepareOutputs(nil, output{flag: "--flag", path: &path, isProfile: isProfile}); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s (%v): %q, want %q", name, isProfile, got, want)
			}
		}
	}
}

// TestInputsAreNotReplaced has the input under other names as well.
func TestInputsAreNotReplaced(t *testing.T) {
	writeKinds(t)
	if err := errors.Join(os.Symlink("packed", "symbolic"), os.Link("packed", "hard")); err != nil {
		t.Fatal(err)
	}
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	for _, test := range []struct {
		output, stdin string
		inputs        []string
		isRefused     bool
	}{
		{"packed", os.DevNull, []string{"text", "packed"}, true}, {"packed", os.DevNull, []string{"./packed"}, true},
		{"symbolic", os.DevNull, []string{"packed"}, true}, {"hard", os.DevNull, []string{"symbolic"}, true},
		{"text", "text", nil, true}, {"text", os.DevNull, []string{"text"}, true},
		{"packed", "text", []string{"text", "nonexistent", "-", ""}, false}, {"new", os.DevNull, []string{"new"}, false},
		{os.DevNull, os.DevNull, []string{os.DevNull}, false},
	} {
		var err error
		if os.Stdin, err = os.Open(test.stdin); err != nil {
			t.Fatal(err)
		}
		path := test.output
		err = prepareOutputs(test.inputs, output{flag: "--flag", path: &path, isProfile: true})
		want := "cannot write " + test.output + ": it is an input of the same command, which --flag would replace; name another file"
		if test.isRefused && (err == nil || err.Error() != want) || !test.isRefused && err != nil {
			t.Errorf("%+v: %v", test, err)
		}
		os.Stdin.Close()
	}
}

// TestStreamsAreNotReplaced has an open file that the user has redirected to.
func TestStreamsAreNotReplaced(t *testing.T) {
	writeKinds(t)
	file, err := os.OpenFile("packed", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	path := fmt.Sprint("/proc/self/fd/", file.Fd())
	if err := prepareOutputs(nil, output{flag: "--flag", path: &path}); err != nil {
		t.Error(err)
	}
}

// TestCommandsReplaceNoInput has outputs that are inputs as well, some of which tell by their beginning what they are, and
// others not.
func TestCommandsReplaceNoInput(t *testing.T) {
	tcm := install(t)
	profile, samples := shopFile(t, "shop.pb.gz", 1), filepath.Join(t.TempDir(), "samples.json")
	before, err := os.ReadFile(profile)
	if err := errors.Join(err, os.WriteFile(samples, []byte("{}\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	other, plain := shopFile(t, "other.pb.gz", 1), filepath.Join(t.TempDir(), "plain.pb")
	var unpacked bytes.Buffer
	if err := errors.Join(testprofile.Shop(1).WriteUncompressed(&unpacked), os.WriteFile(plain, unpacked.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{
		{"heap", "--html", profile, profile}, {"heap", "--svg", profile, other}, {"heap", "--html", plain, other, plain},
		{"diff", "--html", profile, other, profile}, {"diff", "--svg", plain, other, plain}, {"diff", "--html", plain, plain, other},
		{"run", "--html", profile, "true"}, {"run", "--heap-profile", profile, "cat", profile}, {"run", "--html", tcm.library, "true"},
		{"cpu", "--html", profile, "true"}, {"cpu", "--svg", profile, "true"}, {"cpu", "-o", profile, "cat", profile},
		{"debug", "-o", profile, "true"}, {"harden", "-o", profile, "true"}, {"debug", "-o", samples, "cat", samples},
		{"bench", "--json", profile, "true"}, {"bench", "--json", samples, "--from", samples}, {"bench", "--json", samples, "cat", samples},
		{"bench", "--json", samples, "--input", samples, "cat"}, {"bench", "--from", "nonexistent," + samples, "--out", filepath.Dir(samples)},
	} {
		got := tcm.run(t, words...)
		if got.status.ExitStatus() != exitUsage || got.output != "" || strings.Count(got.errors, "\n") != 1 ||
			!strings.HasPrefix(got.errors, "tcm: cannot write ") || !strings.Contains(got.errors, " would replace; name another file") {
			t.Errorf("%q: %+v", words, got)
		}
	}
	after, err := os.ReadFile(profile)
	if err != nil || string(after) != string(before) {
		t.Errorf("the profile is another one: %v", err)
	}
}
