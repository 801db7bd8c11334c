// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"testing"

	"tcm/internal/identify"
)

func names(allocators []Allocator) string {
	var all []string
	for _, one := range allocators {
		all = append(all, one.Name)
	}
	return strings.Join(all, " ")
}

func TestWithBaseline(t *testing.T) {
	all := []Allocator{{Name: Glibc}, {Name: Ours}, {Name: "gone", Missing: "not built"}}
	for _, test := range []struct {
		baseline, want, failure string
	}{
		{Glibc, "glibc ours", ""}, {Ours, "ours", ""}, {"gone", "", "not built"}, {"odd", "", `"odd"`},
	} {
		got, err := WithBaseline(all[1:2], all, test.baseline)
		if names(got) != test.want || (err != nil) != (test.failure != "") || err != nil && !strings.Contains(err.Error(), test.failure) {
			t.Errorf("%s: %q, %v", test.baseline, names(got), err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("LD_PRELOAD", "inherited.so")
	for want, allocator := range map[string]Allocator{"": {Name: Glibc}, "a.so:b.so": {Libraries: []string{"a.so", "b.so"}}} {
		if got, isSet := allocator.Environment()["LD_PRELOAD"]; got != want || !isSet {
			t.Errorf("%q, want %q", got, want)
		}
	}
	got := AllocatorVariables([]string{"TCMALLOC_MODE=debug", "A=1", "MALLOC_CONF=x", "MALLOCS=1", "GLIBC_TUNABLES=y"})
	if strings.Join(got, " ") != "GLIBC_TUNABLES=y MALLOC_CONF=x TCMALLOC_MODE=debug" {
		t.Errorf("%q", got)
	}
}

func TestAddSystem(t *testing.T) {
	all := []Allocator{{Name: Glibc}, {Name: "jemalloc-5.3.0"}, {Name: "mimalloc", Missing: "not built"}}
	got := AddSystem(all, []identify.Allocator{{Kind: "jemalloc", Path: "j"}, {Kind: "mimalloc", Path: "m"}})
	if names(got) != "glibc jemalloc-5.3.0 mimalloc" || got[2].Missing != "" || got[2].Libraries[0] != "m" {
		t.Errorf("%+v", got)
	}
}

func TestAddFiles(t *testing.T) {
	if _, err := AddFiles(nil, []string{"ours", "/etc/passwd"}); err == nil || !strings.Contains(err.Error(), "cannot preload /etc/passwd") {
		t.Errorf("%v", err)
	}
	if got, err := AddFiles(nil, []string{"ours", "*"}); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
