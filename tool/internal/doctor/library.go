// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"strings"
)

// smallStorage is the static thread-local storage that a library may take without crowding out
// others: glibc keeps 512 bytes for all that are loaded by dlopen.
const smallStorage = 128

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// CheckLibrary looks at the file of the allocator.
func CheckLibrary(path, architecture string) Check {
	const name = "library"
	file, err := elf.Open(path)
	if err != nil {
		return problem(name, "build it again, or name another one with --library", "%s is no library: %v", path, err)
	}
	defer file.Close()
	if file.Type != elf.ET_DYN {
		return problem(name, "name a shared library with --library", "%s cannot be preloaded: it is %v", path, file.Type)
	}
	if wanted, known := machines[architecture]; known && file.Machine != wanted {
		return problem(name, "build it for this machine", "%s is for another processor: %v", path, file.Machine)
	}
	storage := threadStorage(file)
	found := fmt.Sprintf("%s, %s, %d bytes of static thread-local storage", path, libraryVersion(path), storage)
	if storage > smallStorage {
		return note(name, "load it when the program starts, not by dlopen: little static storage is left then", "%s", found)
	}
	return ok(name, "%s", found)
}

// libraryVersion is what the name of the file that links lead to says.
func libraryVersion(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		if _, version, found := strings.Cut(filepath.Base(real), ".so."); found {
			return "version " + version
		}
	}
	return "of unknown version"
}

func threadStorage(file *elf.File) uint64 {
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_TLS {
			return segment.Memsz
		}
	}
	return 0
}
