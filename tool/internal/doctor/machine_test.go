// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/binary"
	"math"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
)

// files is a file system with one file for each pair of a path and its contents.
func files(pairs ...string) fstest.MapFS {
	made := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		made[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return made
}

func vector(entries ...uint64) string {
	var data []byte
	for _, entry := range entries {
		data = binary.NativeEndian.AppendUint64(data, entry)
	}
	return string(data)
}

// soundMachine is one that nothing can be said against.
func soundMachine() Machine {
	return Machine{
		Files: files(
			"proc/sys/kernel/osrelease", "6.8.0-45-generic\n",
			"proc/self/auxv", vector(6, 4096, 27, 28, 0, 0),
			"proc/self/status", "Name:\tx\nSeccomp:\t0\n",
			"proc/self/cgroup", "0::/user.slice\n",
			"proc/sys/vm/overcommit_memory", "0\n",
			"sys/devices/system/cpu/possible", "0-3\n",
			"sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n",
			"sys/fs/cgroup/user.slice/memory.max", "max\n",
		),
		Architecture: "amd64",
		UsableCPUs:   2,
		PageSize:     4096,
		AddressSpace: math.MaxUint64,
		LibC:         "glibc 2.36",
		Rseq:         func() error { return syscall.EINVAL },
		Membarrier:   func() (uint64, error) { return 0x3ff, nil },
	}
}

func TestSoundMachine(t *testing.T) {
	machine := soundMachine()
	checks := machine.Check()
	if found := NewDiagnosis(checks...); len(checks) != 12 || found.Problems+found.Notes > 0 {
		t.Errorf("%s", found.Text())
	}
}

func TestMachines(t *testing.T) {
	refused := func() error { return syscall.EPERM }
	fails := func(errno syscall.Errno) func() (uint64, error) {
		return func() (uint64, error) { return 0, errno }
	}
	for _, test := range []struct {
		change func(*Machine)
		// pairs of path and contents are put into the file system.
		pairs []string
		name  string
		state State
		words string
	}{
		{pairs: []string{"proc/sys/kernel/osrelease", "5.4.0\n"}, name: "kernel", state: Note, words: "Linux 5.4.0"},
		{pairs: []string{"proc/sys/kernel/osrelease", "odd\n"}, name: "kernel", state: Note, words: "unknown"},
		{pairs: []string{"proc/sys/kernel/osrelease", "6.19.0\n"}, name: "kernel", state: OK, words: "6.19.0"},
		{change: func(m *Machine) { m.Architecture = "arm64" }, pairs: []string{"proc/sys/kernel/osrelease", "6.19.0\n"}, name: "kernel", state: Note, words: "do not abort"},

		{change: func(m *Machine) { m.UsableCPUs = 5 }, name: "CPUs", state: Note, words: "although 4"},
		{pairs: []string{"sys/devices/system/cpu/possible", "0-1,4,6-7\n"}, name: "CPUs", state: OK, words: "2 usable of 5 possible (0-1,4,6-7)"},
		{pairs: []string{"sys/devices/system/cpu/possible", "3-1\n"}, name: "CPUs", state: OK, words: "not told"},

		{change: func(m *Machine) { m.PageSize = 64 << 10 }, name: "page size", state: Note, words: "64.0 KiB"},

		{change: func(m *Machine) { m.LibC = "glibc 2.34" }, name: "libc", state: OK, words: "leaves rseq to the allocator"},
		{change: func(m *Machine) { m.LibC = "" }, name: "libc", state: Note, words: "not known"},
		{change: func(m *Machine) { m.Tunables = "a=b:glibc.pthread.rseq=0" }, name: "libc", state: Note, words: "GLIBC_TUNABLES"},

		{change: func(m *Machine) { m.Rseq = refused }, name: "rseq", state: Note, words: "operation not permitted"},
		{change: func(m *Machine) { m.Rseq = func() error { return syscall.ENOSYS } }, name: "rseq", state: Note, words: "no restartable sequences"},

		{pairs: []string{"proc/self/auxv", vector(27, 20, 0, 0)}, name: "concurrency ids", state: Note, words: "recent enough"},
		{pairs: []string{"proc/self/auxv", vector(6, 4096, 0, 0), "proc/sys/kernel/osrelease", "6.2.1\n"}, name: "concurrency ids", state: Note, words: "none"},
		{pairs: []string{"proc/self/auxv", vector(27, 33, 0, 0)}, name: "concurrency ids", state: OK, words: "mm_cid"},

		{change: func(m *Machine) { m.Membarrier = func() (uint64, error) { return 0xff, nil } }, name: "membarrier", state: Note, words: "no fences"},
		{change: func(m *Machine) { m.Membarrier = fails(syscall.EPERM) }, name: "membarrier", state: Note, words: "operation not permitted"},
		{change: func(m *Machine) { m.Membarrier = fails(syscall.ENOSYS) }, name: "membarrier", state: Note, words: "none here"},

		{pairs: []string{"proc/self/status", "Seccomp:\t2\n"}, name: "seccomp", state: OK, words: "lets rseq"},
		{change: func(m *Machine) { m.Rseq = refused }, pairs: []string{"proc/self/status", "Seccomp:\t2\n"}, name: "seccomp", state: Note, words: "may be why"},
		{pairs: []string{"proc/self/status", "Name:\tx\n"}, name: "seccomp", state: OK, words: "does not tell"},

		{pairs: []string{"sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"}, name: "hugepages", state: Note, words: "always"},

		{pairs: []string{"proc/sys/vm/overcommit_memory", "2\n", "proc/meminfo", "CommitLimit:  1048576 kB\nCommitted_AS:   524288 kB\n"}, name: "overcommit", state: Note, words: "512 MiB are left"},
		{pairs: []string{"proc/sys/vm/overcommit_memory", "2\n", "proc/meminfo", "CommitLimit:  1024 kB\nCommitted_AS:   524288 kB\n"}, name: "overcommit", state: Problem, words: "only 0 B are left"},
		{pairs: []string{"proc/sys/vm/overcommit_memory", "2\n"}, name: "overcommit", state: Note, words: "never"},

		{change: func(m *Machine) { m.AddressSpace = 4 << 30 }, name: "address space", state: Note, words: "4.00 GiB"},

		{pairs: []string{"sys/fs/cgroup/user.slice/memory.max", "536870912\n"}, name: "cgroup", state: Note, words: "512 MiB (/sys/fs/cgroup/user.slice/memory.max)"},
		{pairs: []string{"proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max", "1073741824\n", "sys/fs/cgroup/a/memory.high", "268435456\n"}, name: "cgroup", state: Note, words: "256 MiB (/sys/fs/cgroup/a/memory.high)"},
		{pairs: []string{"proc/self/cgroup", "0::/../outside\n", "sys/fs/cgroup/memory.max", "1048576\n"}, name: "cgroup", state: Note, words: "1.00 MiB"},
		{pairs: []string{"proc/self/cgroup", "4:cpu,memory:/c\n1:name=systemd:/d\n", "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1048576\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}, name: "cgroup", state: Note, words: "1.00 MiB"},
		{pairs: []string{"proc/self/cgroup", "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}, name: "cgroup", state: OK, words: "no memory limit"},
	} {
		machine := soundMachine()
		changed := machine.Files.(fstest.MapFS)
		for path, file := range files(test.pairs...) {
			changed[path] = file
		}
		if test.change != nil {
			test.change(&machine)
		}
		found := false
		for _, check := range machine.Check() {
			if check.Name != test.name {
				continue
			}
			found = true
			if check.State != test.state || !strings.Contains(check.Found, test.words) {
				t.Errorf("%q: %+v, want %s with %q", test.pairs, check, test.state, test.words)
			}
			if (check.State != OK) != (check.Advice != "") {
				t.Errorf("%+v: advice belongs to what is not ok", check)
			}
		}
		if !found {
			t.Errorf("there is no check %q", test.name)
		}
	}
}

// A machine that tells nothing is no reason to fail.
func TestBareMachine(t *testing.T) {
	machine := soundMachine()
	machine.Files = files()
	if found := NewDiagnosis(machine.Check()...); found.Problems > 0 {
		t.Errorf("%s", found.Text())
	}
}

func TestThisMachine(t *testing.T) {
	machine := ThisMachine()
	if err := machine.Rseq(); err == nil {
		t.Error("rseq took an area of no size")
	}
	if kernel, version := machine.checkKernel(); version.major < 3 {
		t.Errorf("%+v", kernel)
	}
	if size, err := machine.auxiliary(6); err != nil || size != uint64(machine.PageSize) {
		t.Errorf("the page size in the auxiliary vector is %d (%v), not %d", size, err, machine.PageSize)
	}
}

func TestText(t *testing.T) {
	got := NewDiagnosis(ok("a", "fine"), note("b", "do it", "so"), problem("c", "do this", "%d", 7)).Text()
	want := `ok       a                    fine
note     b                    so
                              -> do it
problem  c                    7
                              -> do this
1 problem, 1 note
`
	if got != want {
		t.Errorf("%s", got)
	}
}
