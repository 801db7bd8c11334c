// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package peers obtains other allocators from package registries, builds them as shared libraries
// and makes sure that each really serves the allocation functions of a program.
package peers

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tcm/internal/project"
)

// Kinds of peers.
const (
	kindDebian = "debian" // a Debian package brings the library
	kindCargo  = "cargo"  // a Rust crate brings the sources
	kindSame   = "same"   // another peer's library with other variables
)

// Peer is an entry of the manifest.
type Peer struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	// How tells people how the library is obtained.
	How string `json:"how"`
	// Libraries are preloaded in this order; files in Peers.Folder.
	Libraries []string `json:"libraries"`
	// Environment is what programs need besides the preloaded libraries.
	Environment map[string]string `json:"environment,omitempty"`
	// SameAs names the peer whose library this one uses.
	SameAs string `json:"same_as,omitempty"`

	// Package is the Debian package that has Libraries.
	Package string `json:"package,omitempty"`

	// Crate is the crate with the sources; the folder of the peer's name has a Cargo.toml that
	// names its version and features.
	Crate string `json:"crate,omitempty"`
	// CompilerFlags go to the crate's build script as CFLAGS and CXXFLAGS.
	CompilerFlags string `json:"compiler_flags,omitempty"`
	// Archive is the static library that the crate's build script makes.
	Archive string `json:"archive,omitempty"`
	// Sources are compiled and linked beside the archive.
	Sources []string `json:"sources,omitempty"`
	// CMake is used instead of the crate's build script where upstream has a target of its own.
	CMake *CMake `json:"cmake,omitempty"`
}

// CMake says how to build a crate's sources with CMake.
type CMake struct {
	Directory string   `json:"directory"`
	Target    string   `json:"target"`
	Options   []string `json:"options"`
	Result    string   `json:"result"`
}

// Set is the manifest together with the folders it speaks of.
type Set struct {
	Peers    []Peer
	checkout project.Checkout
}

// Load reads the manifest of a checkout.
func Load(checkout project.Checkout) (*Set, error) {
	path := filepath.Join(checkout.PeerSources(), "peers.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	set.checkout = checkout
	return set, nil
}

func parse(data []byte) (*Set, error) {
	var file struct {
		Peers []Peer `json:"peers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	set := &Set{Peers: file.Peers}
	seen := map[string]bool{}
	for _, peer := range set.Peers {
		if err := peer.check(seen); err != nil {
			return nil, fmt.Errorf("peer %q: %w", peer.Name, err)
		}
		seen[peer.Name] = true
	}
	return set, nil
}

func (p Peer) check(seen map[string]bool) error {
	switch {
	case p.Name == "" || strings.ContainsAny(p.Name, "/, "):
		return fmt.Errorf("not a name")
	case seen[p.Name]:
		return fmt.Errorf("named twice")
	case len(p.Libraries) == 0:
		return fmt.Errorf("no libraries")
	case p.Kind == kindDebian && p.Package == "":
		return fmt.Errorf("no package")
	case p.Kind == kindCargo && (p.Crate == "" || (p.Archive == "") == (p.CMake == nil)):
		return fmt.Errorf("needs a crate, and either an archive or cmake")
	case p.Kind == kindSame && !seen[p.SameAs]:
		return fmt.Errorf("same_as must name an earlier peer")
	case p.Kind != kindDebian && p.Kind != kindCargo && p.Kind != kindSame:
		return fmt.Errorf("unknown kind %q", p.Kind)
	}
	return nil
}

// Paths returns the files to preload for a peer.
func (s *Set) Paths(peer Peer) []string {
	owner := peer.Name
	if peer.Kind == kindSame {
		owner = peer.SameAs
	}
	paths := make([]string, len(peer.Libraries))
	for i, name := range peer.Libraries {
		paths[i] = filepath.Join(s.checkout.PeerBuild(), "lib", owner, name)
	}
	return paths
}

// IsBuilt says whether a peer was built and checked.
func (s *Set) IsBuilt(peer Peer) bool {
	for _, path := range s.Paths(peer) {
		if _, err := os.Stat(path); err != nil {
			return false
		}
	}
	_, err := os.Stat(s.stampPath(peer))
	return err == nil
}

// stampPath is the file that says from what a peer was built and that it was checked.
func (s *Set) stampPath(peer Peer) string {
	return filepath.Join(s.checkout.PeerBuild(), "stamps", peer.Name)
}
