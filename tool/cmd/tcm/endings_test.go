// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"tcm/internal/project"
)

func TestErrorsExceptClosedPipe(t *testing.T) {
	closed := fmt.Errorf("cannot write out: %w", syscall.EPIPE)
	for _, test := range []struct{ err, want error }{
		{nil, nil}, {closed, nil}, {errors.Join(closed, errors.Join(nil, syscall.EPIPE)), nil}, {errLeaks, errLeaks}, {errors.Join(closed, errLeaks), errLeaks},
	} {
		if got := exceptClosedPipe(test.err); !errors.Is(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}

// unread is a pipe of which nobody reads.
func unread(t *testing.T) *os.File {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writer.Close() })
	if err := reader.Close(); err != nil {
		t.Fatal(err)
	}
	return writer
}

// TestReaderThatGoesAway has commands end quietly: by SIGPIPE, with the status that shells have for it, or with the program's.
func TestReaderThatGoesAway(t *testing.T) {
	tcm := install(t)
	profile := shopFile(t, "shop.pb.gz", 1)
	keeps := "cp " + profile + ` "$TCMALLOC_HEAP_PROFILE"; exit 3`
	type test struct {
		status int
		words  []string
	}
	tests := []test{
		{-1, []string{"heap", profile}},
		{exitClosedPipe, []string{"heap", "--html", "/dev/stdout", profile}},
		{0, []string{"run", "--library", tcm.library, "true"}},
		{3, []string{"run", "--library", tcm.library, "sh", "-c", "exit 3"}},
		{3, []string{"run", "-q", "--library", tcm.library, "--html", "/dev/stdout", "--heap-profile", "/dev/stdout", "sh", "-c", keeps}},
		{0, []string{"run", "-q", "--library", tcm.library, "--html", "/dev/stdout", "sh", "-c", strings.ReplaceAll(keeps, "exit 3", "exit 0")}},
	}
	if library, err := project.FullLibrary("", ""); err == nil {
		tests = append(tests, test{0, []string{"leaks", "--library", library, "--", "true"}},
			test{exitLeaks, []string{"leaks", "--library", library, "--", buildLeaking(t)}})
	}
	for _, test := range tests {
		command := tcm.command(t, test.words...)
		command.Stdout, command.Stderr = unread(t), unread(t)
		_ = command.Run()
		got := command.ProcessState.Sys().(syscall.WaitStatus)
		if got.ExitStatus() != test.status || got.Signaled() && got.Signal() != syscall.SIGPIPE {
			t.Errorf("%q: status %#x, want %d", test.words, uint32(got), test.status)
		}
	}
	// Standard error has a reader.
	command := tcm.command(t, "heap", "--html", "/dev/stdout", profile)
	var complaints strings.Builder
	command.Stdout, command.Stderr = unread(t), &complaints
	if err := command.Run(); err == nil || complaints.String() != "" {
		t.Errorf("%v: %s", err, complaints.String())
	}
}
