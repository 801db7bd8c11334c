// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package identify

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// allocatorNames begin the names of the libraries that packages bring.
var allocatorNames = []string{
	"libjemalloc.so.", "libmimalloc.so.", "libtcmalloc_minimal.so.", "libtbbmalloc_proxy.so.",
	"libsnmallocshim.so", "librpmalloc.so",
}

// Installed returns the libraries that the loader knows.
func Installed() []string {
	output, err := exec.Command("ldconfig", "-p").Output()
	if err != nil {
		// Not in the PATH of users on some systems.
		if output, err = exec.Command("/sbin/ldconfig", "-p").Output(); err != nil {
			return nil
		}
	}
	return parseCache(string(output))
}

// parseCache reads lines such as "libc.so.6 (libc6,x86-64) => /lib/x86_64-linux-gnu/libc.so.6".
func parseCache(listing string) []string {
	var paths []string
	for _, line := range strings.Split(listing, "\n") {
		if _, path, found := strings.Cut(line, " => "); found {
			paths = append(paths, strings.TrimSpace(path))
		}
	}
	return paths
}

// System returns other allocators that are installed, one file of each kind.
func System() []Allocator {
	var found []Allocator
	for _, path := range Installed() {
		name := filepath.Base(path)
		if !slices.ContainsFunc(allocatorNames, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		one, err := File(path)
		if err != nil || one.IsOurs() || slices.ContainsFunc(found, func(other Allocator) bool { return other.Kind == one.Kind }) {
			continue
		}
		found = append(found, one)
	}
	return found
}
