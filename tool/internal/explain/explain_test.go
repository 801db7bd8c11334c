// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tcm/internal/bench"
)

// recorded reads a profile of `batch --batch=500 --size=64 --ops=20000` from which all but some
// functions were taken out.
func recorded(t *testing.T, name string) *Profile {
	t.Helper()
	profile, err := ReadProfiles(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return profile
}

func recordedReport(t *testing.T) *Report {
	t.Helper()
	neighbours := Neighbours{Allocations: 20000, Groups: 312, Pages: 3120, Bytes: 312 * 64 * 64}
	table, err := os.ReadFile("testdata/strace.txt")
	if err != nil {
		t.Fatal(err)
	}
	calls, err := ParseSystemCalls(table)
	if err != nil {
		t.Fatal(err)
	}
	return &Report{
		Workload: "batch", Short: []string{"--ops=20000"},
		Ours: &Side{Allocator: "ours", Libraries: []string{"/opt/lib/libtcmalloc_minimal.so.4"}, Seconds: 1, Faults: 100,
			PeakResident: 1 << 20, Neighbours: neighbours, Calls: calls, Caches: recorded(t, "ours.caches"), TLBs: recorded(t, "ours.tlbs")},
		Peer: &Side{Allocator: "glibc", Seconds: 2, Faults: 50, PeakResident: 1 << 20, Neighbours: neighbours, Calls: calls,
			Caches: recorded(t, "glibc.caches"), TLBs: recorded(t, "glibc.tlbs")},
	}
}

func TestFailureCallsOthersOff(t *testing.T) {
	broken := errors.New("broken")
	begun := make(chan struct{})
	waits := func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	fails := func(context.Context) error {
		<-begun
		return broken
	}
	if err := inParallel(t.Context(), []func(context.Context) error{waits, fails}, 2); !errors.Is(err, broken) || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	runs := 0
	count := func(context.Context) error { runs++; return broken }
	if err := inParallel(t.Context(), []func(context.Context) error{count, count, count}, 1); !errors.Is(err, broken) || runs != 1 {
		t.Errorf("%d, %v", runs, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := inParallel(ctx, []func(context.Context) error{count}, 1); !errors.Is(err, context.Canceled) || runs != 1 {
		t.Errorf("%d, %v", runs, err)
	}
	done := func(context.Context) error { return nil }
	if err := inParallel(t.Context(), []func(context.Context) error{done, done}, 2); err != nil {
		t.Error(err)
	}
}

func TestProfile(t *testing.T) {
	profile := recorded(t, "ours.caches")
	library := "/opt/lib/libtcmalloc_minimal.so.4"
	nested := Function{"tcmalloc::ThreadCache<tcmalloc::SizeClassLists>::AllocateSlow(unsigned char, unsigned long)", library}
	caller := Function{"tcmalloc::SlowPath::AllocateObject(unsigned char, unsigned long) const", library}
	if got := profile.Calls[Edge{caller, nested}]; got != (Calls{116, 53541}) {
		t.Errorf("%+v", got)
	}
	// What a call costs is not the caller's own.
	one := Function{"tcmalloc::NewSlow(unsigned long)", library}
	if got := profile.Self[one]; got != (Cost{Instructions: 26 + 13 + 26 + 26, Accesses: 13 + 13 + 26, Code: 1}) {
		t.Errorf("%+v", got)
	}
}

func TestCompressedProfile(t *testing.T) {
	const text = `version: 1
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
ob=(1) /lib/a.so
fl=(1) a.c
fn=(1) one
10 5 1 2 3 4 5 6 7 8
+2 1
cob=(2) /lib/b.so
cfi=(2) b.c
cfn=(2) two [clone .cold]
calls=3 7
* 30 0 1
fi=(3) c.h
-1 2

ob=(2)
fl=(2)
fn=(2)
7 9
cfn=(1)
calls=0x1 0
`
	profile := NewProfile()
	if err := profile.Add(strings.NewReader(text[:strings.Index(text, "cfn=(1)")])); err != nil {
		t.Fatal(err)
	}
	one, two := Function{"one", "/lib/a.so"}, Function{"two", "/lib/b.so"}
	if got := profile.Self[one]; got != (Cost{Instructions: 8, Accesses: 3, Code: 3, Near: 9, Far: 15}) {
		t.Errorf("one: %+v", got)
	}
	if got := profile.Calls[Edge{one, two}]; got != (Calls{3, 30}) {
		t.Errorf("from one to two: %+v", got)
	}
	if got := profile.Total(); got.Instructions != 17 || len(profile.Self) != 2 {
		t.Errorf("%+v", profile.Self)
	}
	for _, wrong := range []string{"", "no profile", "events: Ir\nfn=a\n1 2 3\n", "events: Ir\nfn=a\n1 x\n", text} {
		if err := NewProfile().Add(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestSystemCalls(t *testing.T) {
	calls := recordedReport(t).Ours.Calls
	if calls.total() != 102 || calls["madvise"] == 0 && calls["mmap"] == 0 || calls["total"] != 0 {
		t.Errorf("%v", calls)
	}
	if got := (SystemCalls{"mmap": 2, "brk": 3, "read": 5}).sum(memoryCalls); got != 5 {
		t.Errorf("%d calls of memory", got)
	}
	for _, wrong := range []string{"", "strace: not allowed to trace\n", "a b c d e\n"} {
		if _, err := ParseSystemCalls([]byte(wrong)); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestNeighbours(t *testing.T) {
	const lines = `{"allocations":5,"reallocations":1,"groups":2,"pages":6,"bytes":8192}
{"allocations":1,"reallocations":0,"groups":2,"pages":2,"bytes":0}
`
	got, err := ParseNeighbours([]byte(lines))
	if err != nil || got != (Neighbours{Allocations: 6, Reallocations: 1, Groups: 4, Pages: 8, Bytes: 8192}) {
		t.Errorf("%+v, %v", got, err)
	}
	if pages, filled := got.perGroup(); pages != 2 || filled != 0.5 {
		t.Errorf("%v pages, %v filled", pages, filled)
	}
	if _, err := ParseNeighbours(nil); err == nil {
		t.Error("nothing is taken")
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"free": "free", "operator new(unsigned long)": "new",
		"tcmalloc::ThreadCache<tcmalloc::SizeClassLists>::FreeSlow(void*, unsigned char)":              "FreeSlow",
		"void* tcmalloc::AllocateAfterTry<&tcmalloc::MallocSlow>(unsigned long, tcmalloc::FastLists*)": "AllocateAfterTry",
		"tcmalloc::(anonymous namespace)::AllocateSlow(unsigned long)":                                 "AllocateSlow",
		"tcmalloc::SlowPath::SlowPath()":                                                               "SlowPath",
		"tcmalloc::Threads<tcmalloc::SizeClassLists>::ScheduleSlowPath(tcmalloc::Entry)":               "ScheduleSlowPath",
	} {
		if got := baseName(name); got != want {
			t.Errorf("%s is called %q", name, got)
		}
		if isSlow(name) != strings.HasSuffix(want, "Slow") {
			t.Errorf("%s is slow: %v", name, isSlow(name))
		}
	}
}

func TestSlowPaths(t *testing.T) {
	report := recordedReport(t)
	entered, paths := report.Ours.SlowPaths()
	// 101 calls of MallocSlow, 9 of NewSlow and 82 of FreeSlow, in 20000 allocations; the others are within.
	if want := 192 / 20000.0 * 1e6; entered != want {
		t.Errorf("%v entered, want %v", entered, want)
	}
	if len(paths) != 5 || paths[0].Name != "AllocateSlow" || paths[0].PerMillion != 116*50 {
		t.Errorf("%+v", paths)
	}
	if entered, paths := report.Peer.SlowPaths(); entered != 0 || len(paths) != 0 {
		t.Errorf("glibc: %v, %+v", entered, paths)
	}
}

func TestDifferences(t *testing.T) {
	report := recordedReport(t)
	differences := Differences(report.Ours, report.Peer, 3)
	if len(differences) != 3 {
		t.Fatalf("%+v", differences)
	}
	found := map[string]Difference{}
	for _, one := range Differences(report.Ours, report.Peer, 1000) {
		found[one.Name] = one
	}
	both, glibcOnly := found["free, operator delete"], found["_int_free"]
	if both.Ours.Instructions == 0 || both.Peer.Instructions == 0 || glibcOnly.Ours.Instructions != 0 || glibcOnly.Peer.Instructions == 0 {
		t.Errorf("%+v, %+v", both, glibcOnly)
	}
	for i, one := range differences[1:] {
		if one.cycles()*one.cycles() > differences[i].cycles()*differences[i].cycles() {
			t.Errorf("%+v before %+v", differences[i], one)
		}
	}
}

func TestReport(t *testing.T) {
	report := recordedReport(t)
	var written bytes.Buffer
	if err := report.Write(&written); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"batch: ours and glibc\n", `["--ops=20000"]`, "  time  ", "0.50\n", "  page faults  ", "2.00\n",
		"  pages of 4 KiB per 64 neighbours  ", "slow paths per million allocations", "9,600",
		"  system calls  ", "free, operator delete", "ThreadCache<SizeClassLists>::FreeSlow",
	} {
		if !strings.Contains(written.String(), want) {
			t.Errorf("no %q in\n%s", want, written.String())
		}
	}
	report.Peer.Calls = nil
	written.Reset()
	if err := report.Write(&written); err != nil || strings.Contains(written.String(), "system calls") {
		t.Errorf("%v\n%s", err, written.String())
	}
	data, err := json.Marshal(report.JSON())
	if err != nil || !bytes.Contains(data, []byte(`"peer":"glibc"`)) {
		t.Errorf("%v: %s", err, data)
	}
}

func TestToolsThatAreMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := CheckTools(bench.Build(t.TempDir())); err == nil || !strings.Contains(err.Error(), "apt-get install valgrind") {
		t.Errorf("%v", err)
	}
	collector := Collector{Progress: func(string) {}}
	if calls, err := collector.systemCalls(context.Background(), bench.Allocator{Name: "a"}); calls != nil || err != nil {
		t.Errorf("%v, %v", calls, err)
	}
}

func TestFailuresAreTold(t *testing.T) {
	collector := Collector{Progress: func(string) {}}
	err := collector.run(context.Background(), "what", []string{"sh", "-c", "echo one >&2; echo why >&2; exit 3"}, nil)
	if err == nil || err.Error() != "what: exit status 3: why" {
		t.Errorf("%v", err)
	}
}

func TestCollectWithoutFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	collector := Collector{Progress: func(string) {}}
	_, ofProfiles := collector.simulate(context.Background(), bench.Allocator{}, memory{}, "x")
	_, ofCounts := collector.neighbours(context.Background(), bench.Allocator{})
	for _, err := range []error{ofProfiles, ofCounts} {
		if err == nil || !strings.Contains(err.Error(), " in "+missing+": ") || !strings.Contains(err.Error(), "TMPDIR") {
			t.Error(err)
		}
	}
}
