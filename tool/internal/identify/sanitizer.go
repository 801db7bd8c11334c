// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package identify

import (
	"debug/elf"
	"strings"
)

// sanitizers are known by a function of their run-time library, which the program defines or asks for.
var sanitizers = map[string]string{
	"__asan_init":   "address sanitizer",
	"__hwasan_init": "hardware-assisted address sanitizer",
	"__tsan_init":   "thread sanitizer",
	"__msan_init":   "memory sanitizer",
	"__lsan_init":   "leak sanitizer",
}

// Sanitizer names the sanitizer that a program was built with and that brings an allocator of its own, or nothing.
func Sanitizer(path string) string {
	file, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	symbols, _ := file.DynamicSymbols()
	others, _ := file.Symbols()
	for _, symbol := range append(symbols, others...) {
		name, _, _ := strings.Cut(symbol.Name, "@")
		if found := sanitizers[name]; found != "" {
			return found
		}
	}
	libraries, _ := file.ImportedLibraries()
	for _, library := range libraries {
		if strings.HasPrefix(library, "liblsan.so") {
			return sanitizers["__lsan_init"]
		}
	}
	return ""
}
