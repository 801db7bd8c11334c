// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"debug/elf"
	"fmt"
	"slices"

	"tcm/internal/identify"
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
	identity, err := identify.File(path)
	if err != nil {
		return problem(name, "name another one with --library", "%s cannot be used: %v", path, err)
	}
	if !identity.IsOurs() {
		return problem(name, "name the library of TCMalloc with --library", "%s: this is %s", path, identity)
	}
	storage := threadStorage(file)
	found := fmt.Sprintf("%s, compatible with %s, %d bytes of static thread-local storage", path, identity.CompatibleWith, storage)
	if storage > smallStorage {
		return note(name, "load it when the program starts, not by dlopen: little static storage is left then", "%s", found)
	}
	return ok(name, "%s", found)
}

func threadStorage(file *elf.File) uint64 {
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_TLS {
			return segment.Memsz
		}
	}
	return 0
}

// CheckPreload is about the allocators that the loader puts into every program of this environment.
func CheckPreload(preloaded []identify.Allocator) Check {
	const name = "LD_PRELOAD"
	if len(preloaded) == 0 {
		return ok(name, "no other allocator is preloaded")
	}
	first := preloaded[0]
	if first.IsOurs() {
		return ok(name, "%s", first.Path)
	}
	if slices.ContainsFunc(preloaded, identify.Allocator.IsOurs) {
		return problem(name, "put the library of TCMalloc before it", "%s (%s) is in front of TCMalloc and serves all programs", first, first.Path)
	}
	return note(name, "unset LD_PRELOAD, or put the library of TCMalloc first, as tcm run does", "%s (%s) is preloaded and serves all programs", first, first.Path)
}
