// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"tcm/internal/identify"
	"tcm/internal/launch"
)

// Run is what was run and under which library.
type Run struct {
	Program, Library string
	// NoRoom is why nothing can be written to the folder of the run, if that is so and nothing was.
	NoRoom error
}

// CannotWrite says why a program may have left nothing in the folder of the run: because nobody can write to it, else for
// reasons that cannot be seen from outside when the program has ended.
func CannotWrite(noRoom error) string {
	if noRoom != nil {
		return noRoom.Error()
	}
	return "it changed its root folder, gave up rights, may open no files, or found no room"
}

// silence names the reason for which no process left figures, or those that are left when what can be seen from
// outside does not apply.
func silence(run Run, result launch.Result) string {
	library, err := identify.File(run.Library)
	if err == nil && !library.IsOurs() {
		return fmt.Sprintf("%s is %s, which leaves none", run.Library, library)
	}
	if reason := Unreachable(run.Program, "libtcmalloc_minimal.a"); reason != "" {
		return reason
	}
	return Unwritten(run.Program, result.Signal, run.NoRoom)
}

// Unwritten says why a program that the library was put into left nothing as it exited. signal is the one that ended it, 0
// if none did.
func Unwritten(program string, signal int, noRoom error) string {
	if signal != 0 {
		return "a signal ended the program before its exit handlers"
	}
	if path, err := exec.LookPath(program); err == nil && isGo(path) {
		return filepath.Base(path) + " is a Go program, whose runtime ends without exit handlers, and has an allocator and a profiler of its own (runtime/pprof)"
	}
	return "the program ended without its exit handlers (by _exit, or in another program that it became), or could write nothing (" + CannotWrite(noRoom) + ")"
}

// idle says why a program that left figures allocated nothing.
func idle(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		if reason := OwnMalloc(path); reason != "" {
			return reason
		}
	}
	return "the program allocated nothing"
}

// OwnMalloc says that a program has a malloc of its own, so that no other library's serves it, or nothing.
func OwnMalloc(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if !identify.DefinesMalloc(file) {
		return ""
	}
	return filepath.Base(path) + " has a malloc of its own"
}

// mostInterpreters is how long a chain of scripts is followed.
const mostInterpreters = 4

// Unreachable says why the loader does not put a library into a program, or nothing. archive is what such a program
// can be linked with instead.
func Unreachable(program, archive string) string {
	return unreachable(program, archive, mostInterpreters)
}

func unreachable(program, archive string, interpreters int) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	name := filepath.Base(path)
	if interpreter := interpreterOf(path); interpreter != "" && interpreters > 0 {
		return unreachable(interpreter, archive, interpreters-1)
	}
	if hasPrivileges(path) {
		return name + " runs with more rights than its caller, so the loader preloads nothing and the allocator reads no variables"
	}
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if own, err := elf.Open("/proc/self/exe"); err == nil {
		defer own.Close()
		if own.Machine != file.Machine {
			return fmt.Sprintf("%s is for another processor (%v) than the library", name, file.Machine)
		}
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return ""
		}
	}
	if isGo(path) {
		return name + " is a Go program without libc, so nothing can be preloaded; Go has a profiler of its own (runtime/pprof)"
	}
	return name + " is linked statically, so nothing can be preloaded; link it with " + archive
}

// isGo returns true for a program of Go's compiler, which puts a section with the versions into each, stripped or not.
func isGo(path string) bool {
	file, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	return file.Section(".go.buildinfo") != nil
}

// interpreterOf returns the program that a script names in its first line; of env, the program that
// env looks for.
func interpreterOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	line, _ := bufio.NewReader(io.LimitReader(file, 256)).ReadString('\n')
	words, isScript := strings.CutPrefix(line, "#!")
	fields := strings.Fields(words)
	if !isScript || len(fields) == 0 {
		return ""
	}
	if filepath.Base(fields[0]) == "env" && len(fields) > 1 {
		return fields[len(fields)-1]
	}
	return fields[0]
}

func hasPrivileges(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	status, known := info.Sys().(*syscall.Stat_t)
	if known && info.Mode()&os.ModeSetuid != 0 && int(status.Uid) != os.Getuid() {
		return true
	}
	if known && info.Mode()&os.ModeSetgid != 0 && int(status.Gid) != os.Getgid() {
		return true
	}
	size, err := syscall.Getxattr(path, "security.capability", nil)
	return err == nil && size > 0 && os.Getuid() != 0
}
