// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package peers

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"tcm/internal/launch"
)

// required are the functions that a library must define itself to be measured at all.
var required = []string{
	"malloc", "free", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc",
	"malloc_usable_size", "_Znwm", "_Znam", "_ZdlPv", "_ZdaPv",
}

// forwarding is the one other library that may serve an operator: its forms with a size or an
// alignment call the plain ones and aligned_alloc, which are required.
const forwarding = "libstdc++.so"

const probeTimeout = 60 * time.Second

// verify makes sure that a peer's libraries define the allocation functions and that they serve a
// program that is run with them. It returns what is worth knowing about a peer that passed.
func (s *Set) verify(ctx context.Context, peer Peer) ([]string, error) {
	defined := map[string]bool{}
	for _, path := range s.Paths(peer) {
		if err := addDefined(defined, path); err != nil {
			return nil, err
		}
	}
	if missing := missingFrom(defined); len(missing) > 0 {
		return nil, fmt.Errorf("does not define %s", strings.Join(missing, ", "))
	}
	servers, err := s.probe(ctx, peer)
	if err != nil {
		return nil, err
	}
	return judge(servers, peer.Libraries)
}

func addDefined(defined map[string]bool, path string) error {
	file, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, symbol := range symbols {
		if symbol.Section != elf.SHN_UNDEF {
			defined[symbol.Name] = true
		}
	}
	return nil
}

func missingFrom(defined map[string]bool) []string {
	var missing []string
	for _, name := range required {
		if !defined[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

// probe runs the probe program on a peer and returns which file serves which function.
func (s *Set) probe(ctx context.Context, peer Peer) (map[string]string, error) {
	launcher, err := launch.Build(s.checkout)
	if err != nil {
		return nil, err
	}
	program, err := s.buildProbe()
	if err != nil {
		return nil, err
	}
	var output, errors bytes.Buffer
	result, err := launch.Run(ctx, launcher, launch.Command{
		Program:   []string{program},
		Variables: s.Variables(peer),
		Output:    &output,
		Errors:    &errors,
		Timeout:   probeTimeout,
	})
	if err == nil && result.Failure() != "" {
		err = fmt.Errorf("%s", result.Failure())
	}
	if err != nil {
		return nil, fmt.Errorf("probe: %w: %s", err, strings.TrimSpace(errors.String()))
	}
	return parseProbe(&output)
}

func parseProbe(output io.Reader) (map[string]string, error) {
	servers := map[string]string{}
	if err := json.NewDecoder(output).Decode(&servers); err != nil {
		return nil, fmt.Errorf("probe: %w", err)
	}
	return servers, nil
}

func (s *Set) buildProbe() (string, error) {
	source := filepath.Join(s.checkout.PeerSources(), "probe.cc")
	target := filepath.Join(s.checkout.PeerBuild(), "bin", "probe")
	if launch.IsNewer(target, source) {
		return target, nil
	}
	return target, launch.Compile(target, "c++", "-std=c++20", "-O1", source, "-pthread", "-ldl")
}

// misalignedKey is where the probe names a function whose result was misaligned.
const misalignedKey = "misaligned"

func judge(servers map[string]string, libraries []string) ([]string, error) {
	var notes []string
	if what := servers[misalignedKey]; what != "" {
		notes = append(notes, what+" returns misaligned blocks")
	}
	var forwarded []string
	for name, file := range servers {
		if name == misalignedKey || servedBy(file, libraries) {
			continue
		}
		if strings.HasPrefix(filepath.Base(file), forwarding) && !isRequired(name) {
			forwarded = append(forwarded, name)
			continue
		}
		return nil, fmt.Errorf("%s is served by %q", name, file)
	}
	if len(forwarded) > 0 {
		sort.Strings(forwarded)
		notes = append(notes, "leaves "+strings.Join(forwarded, ", ")+" to libstdc++, which calls its plain functions")
	}
	return notes, nil
}

func isRequired(name string) bool {
	for _, one := range required {
		if one == name {
			return true
		}
	}
	return false
}

func servedBy(file string, libraries []string) bool {
	for _, library := range libraries {
		if filepath.Base(file) == library {
			return true
		}
	}
	return false
}

// Variables is what a program's environment needs to run on a peer.
func (s *Set) Variables(peer Peer) map[string]string {
	variables := map[string]string{"LD_PRELOAD": launch.Preload(s.Paths(peer))}
	for name, value := range peer.Environment {
		variables[name] = value
	}
	return variables
}
