// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tcm/internal/profiles"
	"tcm/internal/testprofile"
)

// called runs a command in this process.
func called(words ...string) (output, complaints string, err error) {
	var printed, complained bytes.Buffer
	root := newRoot()
	root.SetArgs(words)
	root.SetOut(&printed)
	root.SetErr(&complained)
	err = root.Execute()
	return printed.String(), complained.String(), err
}

// shopFile writes the profile of the made-up program.
func shopFile(t *testing.T, name string, load int64) string {
	t.Helper()
	var written bytes.Buffer
	if err := testprofile.Shop(load).Write(&written); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, written.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHeap(t *testing.T) {
	path := shopFile(t, "shop.pb.gz", 1)
	output, complaints, err := called("heap", path)
	if err != nil || complaints != "" || !strings.Contains(output, "6.00 MiB  80.0%   80.0%  6.00 MiB   80.0%      100  store::Insert (libstore.so.1)") {
		t.Errorf("%s%s%v", output, complaints, err)
	}
	output, _, err = called("heap", "--json", "--top", "1", "--cum", path)
	var made profiles.Report
	if err != nil || json.Unmarshal([]byte(output), &made) != nil || len(made.Functions) != 1 || made.Functions[0].Name != "main" {
		t.Errorf("%s%v", output, err)
	}
	output, _, err = called("heap", "--folded", "--focus", "Walk", path)
	if err != nil || output != "main;Walk;Walk;Walk 524288\n" {
		t.Errorf("%s%v", output, err)
	}
}

// A profile's names come from whoever wrote it.
func TestNamesCannotDriveTheTerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "escapes.heap")
	content := "heap profile: 1: 64 [1: 64] @ heap_v2/1\n1: 64 [1: 64] @ 0x401010\n\nMAPPED_LIBRARIES:\n" +
		"00401000-00402000 r-xp 00000000 fe:00 1 /tmp/\x1b[31mred\x07\n"
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"heap", path}, {"heap", "--folded", path}, {"diff", path, path}, {"leaks", path, path}} {
		output, complaints, err := called(words...)
		if err != nil || strings.ContainsAny(output+complaints, "\x1b\a") {
			t.Errorf("%v: %q, %q, %v", words, output, complaints, err)
		}
		if !strings.Contains(output+complaints, "?[31mred?") {
			t.Errorf("%v shows no name: %q, %q", words, output, complaints)
		}
	}
}

func TestSignalsEndACommandThatReads(t *testing.T) {
	tcm := install(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	command := tcm.command(t, "heap", pipe)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// Returns once tcm has opened the pipe, too.
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if status := command.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("ends with %v", status)
	}
}

func TestFlameGraphs(t *testing.T) {
	path := shopFile(t, "shop.pb.gz", 1)
	page, picture := filepath.Join(t.TempDir(), "page.html"), filepath.Join(t.TempDir(), "picture.svg")
	output, complaints, err := called("heap", "--html", page, "--svg", picture, path)
	if err != nil || output != "" || complaints != "" {
		t.Errorf("%s%s%v", output, complaints, err)
	}
	for path, begin := range map[string]string{page: "<!DOCTYPE html>", picture: "<svg "} {
		content, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(content), begin) || !strings.Contains(string(content), "shop.pb.gz") {
			t.Errorf("%s: %v, %.80s", path, err, content)
		}
	}
}

func TestDiff(t *testing.T) {
	before, after := shopFile(t, "before.pb.gz", 1), shopFile(t, "after.pb.gz", 3)
	output, _, err := called("diff", before, after)
	if err != nil || !strings.HasPrefix(output, "inuse_space: +12.0 MiB, from 7.50 MiB to 19.5 MiB; +200 objects\n") {
		t.Errorf("%s%v", output, err)
	}
	output, _, err = called("diff", "--folded", after, before)
	if err != nil || !strings.Contains(output, "main;Server<Request>::Serve;store::Insert 18874368 6291456\n") {
		t.Errorf("%s%v", output, err)
	}
}

func TestComplaintsOfOneLine(t *testing.T) {
	path := shopFile(t, "shop.pb.gz", 1)
	for _, words := range [][]string{
		{"heap"}, {"heap", "."}, {"heap", "nonesuch"}, {"heap", "/dev/null"}, {"heap", "heap_test.go"}, {"heap", "--type", "nonsense", path},
		{"heap", "--focus", "(", path}, {"heap", "--focus", "nonsense", path}, {"heap", "--top", "-1", path}, {"heap", "--json", "--folded", path},
		{"heap", "--html", "/nonexistent/page.html", path}, {"heap", "--html", t.TempDir(), path},
		{"diff", path}, {"diff", path, path, path}, {"diff", path, "nonesuch"}, {"diff", "--html", "page.html", path, path}, {"pprof"},
		{"run", "--heap-profile", "/nonexistent/heap", "true"}, {"run", "--html", t.TempDir(), "true"},
	} {
		output, _, err := called(words...)
		if err == nil || output != "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q, %v", words, output, err)
		}
	}
}
