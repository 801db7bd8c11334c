// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tcm/internal/identify"
)

// said is one answer of a library.
type said struct {
	answer Answer
	err    error
}

// answers has one answer for the program as it is and one for the one with caches of CPUs.
func answers(usual, forced said) Ask {
	return func(_ context.Context, settings ...string) (Answer, error) {
		if len(settings) > 0 {
			return forced.answer, forced.err
		}
		return usual.answer, usual.err
	}
}

func TestCheckFrontEnd(t *testing.T) {
	perThread := said{answer: Answer{FrontEnd: "per_thread", Reason: "per thread, chosen"}}
	perCPU := said{answer: Answer{FrontEnd: PerCPU, Reason: "per CPU; by mm_cid"}}
	vain := said{answer: Answer{FrontEnd: "per_thread", Reason: "per thread; not per CPU: refused"}}
	complaining := said{answer: Answer{FrontEnd: "per_thread", Reason: "per thread", Complaints: []string{"other", "tcmalloc: X=1: expected"}}}
	noisy := said{answer: Answer{FrontEnd: "per_thread", Reason: "per thread", Complaints: []string{"other"}}}
	dead := said{err: errors.New("signal: aborted")}
	silent := said{answer: Answer{Complaints: []string{"cannot be preloaded"}}, err: errSilent}
	old := said{answer: Answer{FrontEnd: "unknown"}}
	for _, test := range []struct {
		name          string
		usual, forced said
		chosen        string
		want          string
	}{
		{"sound", perThread, perCPU, "", "ok options, ok front end, ok per-CPU caches"},
		{"asked for", perCPU, perCPU, PerCPU, "ok options, ok front end, ok per-CPU caches"},
		{"in vain", perThread, vain, "", "ok options, ok front end, note per-CPU caches"},
		{"asked for in vain", vain, vain, PerCPU, "ok options, problem front end"},
		{"crash", perThread, dead, "", "ok options, ok front end, problem per-CPU caches"},
		{"never starts", dead, dead, "", "problem front end"},
		{"not loaded", silent, silent, "", "problem front end"},
		{"wrong option", complaining, perCPU, "", "note options, problem options, ok front end, ok per-CPU caches"},
		{"odd message", noisy, perCPU, "", "note options, ok front end, ok per-CPU caches"},
		{"does not tell", old, old, "", "ok options, note front end"},
	} {
		var got []string
		for _, check := range CheckFrontEnd(context.Background(), answers(test.usual, test.forced), []string{FrontEndVariable + "=" + test.chosen}) {
			got = append(got, string(check.State)+" "+check.Name)
		}
		if joined := strings.Join(got, ", "); joined != test.want {
			t.Errorf("%s: %s, want %s", test.name, joined, test.want)
		}
	}
	checks := CheckFrontEnd(context.Background(), answers(silent, silent), nil)
	if !strings.Contains(checks[0].Found, "cannot be preloaded") {
		t.Errorf("what the loader says is not told: %+v", checks[0])
	}
}

// compiled makes a shared library of some C.
func compiled(t *testing.T, source string) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "lib.so.1.2")
	file := filepath.Join(folder, "lib.c")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("cc", "-shared", "-fPIC", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return path
}

// talking stands for the allocator: it reports what it was told, as the library does at exit.
const talking = `
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void Complain(void) { fprintf(stderr, "tcmalloc: hello\n"); }
__attribute__((destructor)) static void Report(void) {
  const char* const path = getenv("TCMALLOC_EXIT_REPORT");
  const char* const front_end = getenv("TCMALLOC_FRONT_END");
  FILE* const file = path ? fopen(path, "a") : 0;
  if (!file) return;
  fprintf(file, "{\"pid\":1,\"front_end\":\"%s\",\"front_end_reason\":\"told\"}\n", front_end ? front_end : "none");
  fclose(file);
}
`

func TestAskLibrary(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(FrontEndVariable, "from outside")
	ask := AskLibrary(compiled(t, talking))
	for _, settings := range [][]string{nil, {FrontEndVariable + "=" + PerCPU}} {
		want := "from outside"
		if settings != nil {
			want = PerCPU
		}
		answer, err := ask(context.Background(), settings...)
		if err != nil || answer.FrontEnd != want || answer.Reason != "told" || strings.Join(answer.Complaints, "") != "tcmalloc: hello" {
			t.Errorf("%q: %+v, %v", settings, answer, err)
		}
	}
	if _, err := AskLibrary(compiled(t, "int nothing;"))(context.Background()); !errors.Is(err, errSilent) {
		t.Errorf("a library that says nothing: %v", err)
	}
	crashing := compiled(t, `#include <stdlib.h>
__attribute__((constructor)) static void Start(void) { abort(); }`)
	if _, err := AskLibrary(crashing)(context.Background()); err == nil || errors.Is(err, errSilent) {
		t.Errorf("a library that aborts: %v", err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCheckLibrary(t *testing.T) {
	here := runtime.GOARCH
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[here]
	const ours = "void malloc(void) {} void free(void) {} void tcmalloc_per_cpu_caches_active(void) {}" +
		"const char version[] = \"gperftools 2.18.1\";"
	small := compiled(t, ours+"__thread char storage[64];")
	large := compiled(t, ours+"__thread char storage[4096];")
	foreign := compiled(t, "void malloc(void) {} void free(void) {} void tc_version(void) {}"+
		"const char version[] = \"gperftools 2.10\";")
	nothing := compiled(t, "int nothing;")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, architecture string
		state              State
		words              string
	}{
		{small, here, OK, "compatible with gperftools 2.18.1, 64 bytes"},
		{large, here, Note, "4096 bytes"},
		{foreign, here, Problem, "this is gperftools 2.10"},
		{nothing, here, Problem, "it is no allocator"},
		{small, other, Problem, "another processor"},
		{text, here, Problem, "no library"},
		{filepath.Join(t.TempDir(), "nothing"), here, Problem, "no such file"},
	} {
		check := CheckLibrary(test.path, test.architecture)
		if check.State != test.state || !strings.Contains(check.Found, test.words) {
			t.Errorf("%+v, want %s with %q", check, test.state, test.words)
		}
	}
}

func TestAdviceNamesTheVariableOrThePage(t *testing.T) {
	for complaint, words := range map[string]string{
		"HEAPPROFILE is set, but this library has no heap profiler; running without it": "use the full library, libtcmalloc.so.4, which has it, or unset HEAPPROFILE",
		"HEAPCHECK is set, but this library has no heap checker; running without it":    "use the full library, libtcmalloc.so.4, which has it, or unset HEAPCHECK",
		"CPUPROFILE is set, but this library has no CPU profiler; running without it":   "preload libprofiler.so.0 as well, which has it, or unset CPUPROFILE",
		`TCMALLOC_BACKGROUND="maybe": expected true or false; using false`:              "docs/tuning.md",
	} {
		if advice := adviceOn(complaint); !strings.Contains(advice, words) {
			t.Errorf("%s: %s", complaint, advice)
		}
	}
}

func TestCheckPreload(t *testing.T) {
	jemalloc := identify.Allocator{Path: "j.so", Kind: "jemalloc", Version: "5.3.0"}
	ours := identify.Allocator{Path: "t.so", Kind: identify.Ours}
	for _, test := range []struct {
		preloaded []identify.Allocator
		state     State
		words     string
	}{
		{nil, OK, "no other allocator"},
		{[]identify.Allocator{ours, jemalloc}, OK, "t.so"},
		{[]identify.Allocator{jemalloc}, Note, "jemalloc 5.3.0 (j.so)"},
		{[]identify.Allocator{jemalloc, ours}, Problem, "in front of TCMalloc"},
	} {
		if check := CheckPreload(test.preloaded); check.State != test.state || !strings.Contains(check.Found, test.words) {
			t.Errorf("%+v", check)
		}
	}
}
