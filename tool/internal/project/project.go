// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package project knows where things lie in a checkout and beside an installed tcm.
package project

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// LibraryName is the file that tcm preloads unless told otherwise.
const LibraryName = "libtcmalloc_minimal.so.4"

// FullLibraryName is the library that also writes heap profiles.
const FullLibraryName = "libtcmalloc.so.4"

// ProfilerLibraryName is the library that writes CPU profiles, and leaves malloc alone.
const ProfilerLibraryName = "libprofiler.so.0"

// DebugLibraryName is the library that checks every block.
const DebugLibraryName = "libtcmalloc_debug.so.4"

// marker is a file that only the root of a checkout has.
const marker = "bench/peers/peers.json"

// ErrNoCheckout says that neither the program nor the working directory is inside a checkout.
var ErrNoCheckout = errors.New("no checkout of TCMalloc found above tcm or above the working directory; name it with --root")

// Checkout is the root folder of the project.
type Checkout string

// Find returns root if it is given and one, else the checkout around the running program, else
// the one around the working directory.
func Find(root string) (Checkout, error) {
	if root != "" {
		absolute, err := filepath.Abs(root)
		if err != nil {
			return "", err
		}
		if !isFile(filepath.Join(absolute, marker)) {
			return "", fmt.Errorf("%s is no checkout of TCMalloc: it has no %s", root, marker)
		}
		return Checkout(absolute), nil
	}
	var starts []string
	if program, err := Program(); err == nil {
		starts = append(starts, filepath.Dir(program))
	}
	if directory, err := os.Getwd(); err == nil {
		starts = append(starts, directory)
	}
	for _, start := range starts {
		if found, ok := above(start); ok {
			return found, nil
		}
	}
	return "", ErrNoCheckout
}

func above(directory string) (Checkout, bool) {
	for {
		if isFile(filepath.Join(directory, marker)) {
			return Checkout(directory), true
		}
		parent := filepath.Dir(directory)
		if parent == directory {
			return "", false
		}
		directory = parent
	}
}

// Program returns the path of the running tcm, links resolved.
func Program() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// Path joins names below the root.
func (c Checkout) Path(names ...string) string {
	return filepath.Join(append([]string{string(c)}, names...)...)
}

// Workloads is the list of the benchmark's programs.
func (c Checkout) Workloads() string { return c.Path("bench", "workloads", "workloads.json") }

// ReleaseBuild is the folder of the build that is measured.
func (c Checkout) ReleaseBuild() string { return c.Path("build", "release") }

// PeerSources is the folder that says how to obtain the other allocators.
func (c Checkout) PeerSources() string { return c.Path("bench", "peers") }

// PeerBuild is the folder of what was made from PeerSources.
func (c Checkout) PeerBuild() string { return c.Path("build", "peers") }

// libraryFolders are what CMAKE_INSTALL_LIBDIR is on the systems of today.
var libraryFolders = []string{"lib", "lib64", filepath.Join("lib", triplets[runtime.GOARCH])}

// triplets are Debian's names for processors.
var triplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// Library finds the allocator: the file that was asked for, else the one beside tcm, else the one
// of the checkout's release build.
func Library(asked, root string) (string, error) { return library(LibraryName, asked, root) }

// FullLibrary finds the library that also writes heap profiles, likewise.
func FullLibrary(asked, root string) (string, error) { return library(FullLibraryName, asked, root) }

// DebugLibrary finds the library that checks every block, likewise.
func DebugLibrary(asked, root string) (string, error) { return library(DebugLibraryName, asked, root) }

// ProfilerLibrary finds the library that writes CPU profiles, likewise.
func ProfilerLibrary(asked, root string) (string, error) {
	return library(ProfilerLibraryName, asked, root)
}

func library(name, asked, root string) (string, error) {
	if asked != "" {
		if !isFile(asked) {
			return "", fmt.Errorf("there is no library %s", asked)
		}
		return preloadable(asked)
	}
	var tried []string
	if program, err := Program(); err == nil {
		for _, folder := range libraryFolders {
			tried = append(tried, filepath.Join(filepath.Dir(program), "..", folder, name))
		}
	}
	if checkout, err := Find(root); err == nil {
		tried = append(tried, checkout.Path("build", "release", "lib", name))
	}
	for _, path := range tried {
		if isFile(path) {
			return preloadable(path)
		}
	}
	return "", fmt.Errorf("%s is neither in ../lib beside tcm nor in build/release/lib of a checkout; build or install it, or name a library with --library", name)
}

// GDBScript returns the commands of gdb: in the installation of tcm, or in the checkout; nothing where neither has them.
func GDBScript(root string) string {
	var tried []string
	if program, err := Program(); err == nil {
		tried = append(tried, filepath.Join(filepath.Dir(program), "..", "share", "gdb", "tcm-gdb.py"))
	}
	if checkout, err := Find(root); err == nil {
		tried = append(tried, checkout.Path("tool", "gdb", "tcm-gdb.py"))
	}
	for _, path := range tried {
		if isFile(path) {
			return path
		}
	}
	return ""
}

// preloadable makes a path absolute. The loader splits LD_PRELOAD where a path has one of these.
func preloadable(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err == nil && strings.ContainsAny(absolute, " :$") {
		return "", fmt.Errorf("%s cannot be preloaded, because its path has a space, a colon or a dollar sign; --library may name a link to it", absolute)
	}
	return absolute, err
}

// Page returns where a page of docs/ lies: in the installation of tcm, or in the checkout.
func Page(name string) string {
	if program, err := Program(); err == nil {
		installed := filepath.Join(filepath.Dir(program), "..", "share", "doc", "tcmalloc", "docs", name)
		if isFile(installed) {
			return installed
		}
	}
	if checkout, err := Find(""); err == nil {
		return checkout.Path("docs", name)
	}
	return "docs/" + name
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
