// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"tcm/internal/text"
)

// Machine is where the checks get their facts from.
type Machine struct {
	// Files is the root of the file system.
	Files fs.FS
	// Architecture as Go names it.
	Architecture string
	// UsableCPUs are those that this process may run on.
	UsableCPUs int
	// PageSize of the kernel, in bytes.
	PageSize int
	// AddressSpace is the limit of this process in bytes, math.MaxUint64 for none.
	AddressSpace uint64
	// LibC is its name and version, such as "glibc 2.36"; empty where it is unknown.
	LibC string
	// Tunables is what GLIBC_TUNABLES says.
	Tunables string
	// Rseq calls rseq so that it can only fail: with EINVAL where the kernel has it.
	Rseq func() error
	// Membarrier returns the commands that the kernel has, as a set of bits.
	Membarrier func() (uint64, error)
}

// ThisMachine is the one that tcm runs on.
func ThisMachine() Machine {
	machine := Machine{
		Files:        os.DirFS("/"),
		Architecture: runtime.GOARCH,
		UsableCPUs:   runtime.NumCPU(),
		PageSize:     os.Getpagesize(),
		AddressSpace: math.MaxUint64,
		LibC:         libcVersion(),
		Tunables:     os.Getenv("GLIBC_TUNABLES"),
		Rseq:         callRseq,
		Membarrier:   queryMembarrier,
	}
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &limit) == nil {
		machine.AddressSpace = limit.Cur
	}
	return machine
}

// Check looks at all that the allocator depends on outside of itself.
func (m Machine) Check() []Check {
	kernel, version := m.checkKernel()
	rseq := m.checkRseq()
	membarrier := m.checkMembarrier()
	return []Check{
		kernel,
		m.checkCPUs(),
		m.checkPageSize(),
		m.checkLibC(),
		rseq,
		m.checkConcurrencyIDs(version),
		membarrier,
		m.checkSeccomp(rseq.State == OK && membarrier.State == OK),
		m.checkHugePages(),
		m.checkOvercommit(),
		m.checkAddressSpace(),
		m.checkCgroup(),
	}
}

// line returns the first line of a file, without white space around it.
func (m Machine) line(path string) (string, bool) {
	data, err := fs.ReadFile(m.Files, path)
	if err != nil {
		return "", false
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line), true
}

// field returns what follows "name:" in a file of such lines.
func (m Machine) field(path, name string) (string, bool) {
	data, err := fs.ReadFile(m.Files, path)
	if err != nil {
		return "", false
	}
	for _, line := range strings.Split(string(data), "\n") {
		if key, value, found := strings.Cut(line, ":"); found && key == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// release is the version of a kernel or of a libc.
type release struct{ major, minor int }

func (r release) before(major, minor int) bool {
	return r.major < major || r.major == major && r.minor < minor
}

// parseRelease reads the numbers that "6.1.0-18-amd64" and "2.36" begin with.
func parseRelease(words string) (release, bool) {
	var parsed release
	if count, _ := fmt.Sscanf(words, "%d.%d", &parsed.major, &parsed.minor); count != 2 {
		return release{}, false
	}
	return parsed, true
}

func (m Machine) checkKernel() (Check, release) {
	const name = "kernel"
	words, _ := m.line("proc/sys/kernel/osrelease")
	version, known := parseRelease(words)
	found := fmt.Sprintf("Linux %s on %s", words, m.Architecture)
	switch {
	case !known:
		return note(name, "is /proc mounted?", "its version is unknown"), version
	case version.before(5, 10):
		return note(name, "Linux 5.10 is the first with all that per-CPU caches need; until then each thread keeps its own", "%s", found), version
	case m.Architecture == "arm64" && version == release{6, 19}:
		return note(name, "if the per-CPU caches fail their test below, update to a later release of 6.19", "%s: its first releases do not abort restartable sequences", found), version
	}
	return ok(name, "%s", found), version
}

func (m Machine) checkCPUs() Check {
	const name = "CPUs"
	possible, _ := m.line("sys/devices/system/cpu/possible")
	count, known := countCPUs(possible)
	switch {
	case !known:
		return ok(name, "%d usable; how many are possible is not told", m.UsableCPUs)
	case m.UsableCPUs > count:
		return note(name, "is /sys the one of this kernel?", "%d usable, although %d are possible (%s)", m.UsableCPUs, count, possible)
	}
	return ok(name, "%d usable of %d possible (%s)", m.UsableCPUs, count, possible)
}

// countCPUs counts a list such as "0-3,8".
func countCPUs(list string) (int, bool) {
	count := 0
	for _, part := range strings.Split(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			return 0, false
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil || to < from {
				return 0, false
			}
		}
		count += to - from + 1
	}
	return count, true
}

// logicalPage is the page size that the library has unless it was built with another one.
const logicalPage = 8 << 10

func (m Machine) checkPageSize() Check {
	const name = "page size"
	size := text.Bytes(int64(m.PageSize))
	if m.PageSize > logicalPage {
		return note(name, fmt.Sprintf("memory goes back to the system by whole pages of the kernel: a library that is built with -DTCMALLOC_PAGE_SIZE_KIB=%d gives more of it back", m.PageSize>>10), "%s", size)
	}
	return ok(name, "%s", size)
}

func (m Machine) checkLibC() Check {
	const name = "libc"
	number, isGlibc := strings.CutPrefix(m.LibC, "glibc ")
	version, known := parseRelease(number)
	switch {
	case !isGlibc || !known:
		return note(name, "with another libc than glibc each thread keeps its own cache", "not known to be glibc")
	case version.before(2, 35):
		return ok(name, "%s leaves rseq to the allocator", m.LibC)
	case strings.Contains(m.Tunables, "glibc.pthread.rseq=0"):
		return note(name, "nothing, unless it was not meant: the allocator registers rseq itself", "%s is told by GLIBC_TUNABLES not to register rseq", m.LibC)
	}
	return ok(name, "%s registers rseq for every thread", m.LibC)
}

func (m Machine) checkRseq() Check {
	const name = "rseq"
	err := m.Rseq()
	switch {
	case errors.Is(err, syscall.EINVAL):
		return ok(name, "the kernel has restartable sequences")
	case errors.Is(err, syscall.ENOSYS):
		return note(name, "they came with Linux 4.18 (CONFIG_RSEQ); on a later kernel, a sandbox hides them", "there are no restartable sequences here, so each thread keeps its own cache")
	}
	return note(name, "let the system call rseq through: look at the container's seccomp profile", "restartable sequences are refused (%v), so each thread keeps its own cache", err)
}

// endOfMmCID is the size of the area that rseq shares, where it has concurrency ids.
const endOfMmCID = 28

func (m Machine) checkConcurrencyIDs(kernel release) Check {
	const name = "concurrency ids"
	const atRseqFeatureSize = 27
	size, err := m.auxiliary(atRseqFeatureSize)
	switch {
	case err != nil:
		return note(name, "is /proc mounted?", "what the kernel offers is not known: %v", err)
	case size >= endOfMmCID:
		return ok(name, "the kernel gives out mm_cid: no more per-CPU caches than threads run at once")
	case kernel.before(6, 3):
		return note(name, "nothing, or Linux 6.3 and later: per-CPU caches go by the number of the CPU, and there is one for every CPU that was used", "none")
	}
	return note(name, "per-CPU caches go by the number of the CPU", "none, although the kernel is recent enough")
}

// auxiliary returns an entry of the vector that the kernel gives to a new program, 0 where there
// is none.
func (m Machine) auxiliary(key uint64) (uint64, error) {
	const word = 8
	data, err := fs.ReadFile(m.Files, "proc/self/auxv")
	if err != nil {
		return 0, err
	}
	for ; len(data) >= 2*word; data = data[2*word:] {
		if binary.NativeEndian.Uint64(data) == key {
			return binary.NativeEndian.Uint64(data[word:]), nil
		}
	}
	return 0, nil
}

func (m Machine) checkMembarrier() Check {
	const name = "membarrier"
	const fences = 1<<7 | 1<<8 // MEMBARRIER_CMD_(REGISTER_)PRIVATE_EXPEDITED_RSEQ
	commands, err := m.Membarrier()
	switch {
	case errors.Is(err, syscall.ENOSYS):
		return note(name, "it came with Linux 4.3 (CONFIG_MEMBARRIER); on a later kernel, a sandbox hides it", "there is none here, so each thread keeps its own cache")
	case err != nil:
		return note(name, "let the system call membarrier through: look at the container's seccomp profile", "refused (%v), so each thread keeps its own cache", err)
	case commands&fences != fences:
		return note(name, "they came with Linux 5.10", "no fences for restartable sequences, so each thread keeps its own cache")
	}
	return ok(name, "the kernel has fences for restartable sequences")
}

func (m Machine) checkSeccomp(harmless bool) Check {
	const name = "seccomp"
	mode, known := m.field("proc/self/status", "Seccomp")
	switch {
	case !known:
		return ok(name, "the kernel does not tell")
	case mode == "0":
		return ok(name, "no filter")
	case harmless:
		return ok(name, "a filter is active; it lets rseq and membarrier through")
	}
	return note(name, "allow rseq and membarrier, as the current default profiles of Docker and Podman do", "a filter is active, and may be why something above is refused")
}

func (m Machine) checkHugePages() Check {
	const name = "hugepages"
	line, known := m.line("sys/kernel/mm/transparent_hugepage/enabled")
	if !known {
		return ok(name, "the kernel has no transparent hugepages")
	}
	chosen := text.Bracketed(line)
	if chosen == "always" {
		return note(name, "if resident memory matters more than speed, choose madvise in /sys/kernel/mm/transparent_hugepage/enabled", "transparent hugepages: always; the kernel may back what was given back again")
	}
	return ok(name, "transparent hugepages: %s", chosen)
}

// leastCommit is the memory that a small program needs.
const leastCommit = 64 << 20

func (m Machine) checkOvercommit() Check {
	const name = "overcommit"
	mode, known := m.line("proc/sys/vm/overcommit_memory")
	switch {
	case !known:
		return ok(name, "the kernel does not tell")
	case mode == "0":
		return ok(name, "by the kernel's guess (0)")
	case mode == "1":
		return ok(name, "always (1)")
	}
	const advice = "raise vm.overcommit_ratio, or set vm.overcommit_memory to 0: cached memory counts although nobody uses it"
	limit, limitKnown := m.kibibytes("CommitLimit")
	used, usedKnown := m.kibibytes("Committed_AS")
	if !limitKnown || !usedKnown {
		return note(name, advice, "never (%s)", mode)
	}
	left := max(limit-used, 0)
	if left < leastCommit {
		return problem(name, advice, "never (%s), and only %s are left", mode, text.Bytes(left))
	}
	return note(name, advice, "never (%s); %s are left", mode, text.Bytes(left))
}

// kibibytes returns a field of /proc/meminfo in bytes.
func (m Machine) kibibytes(name string) (int64, bool) {
	value, known := m.field("proc/meminfo", name)
	if !known {
		return 0, false
	}
	number, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return number << 10, err == nil
}

func (m Machine) checkAddressSpace() Check {
	const name = "address space"
	if m.AddressSpace > math.MaxInt64 {
		return ok(name, "no limit (RLIMIT_AS)")
	}
	return note(name, "ulimit -v unlimited; to limit memory, use a cgroup or TCMALLOC_HEAP_LIMIT_MB: reserved addresses count here although they cost nothing", "at most %s (RLIMIT_AS)", text.Bytes(int64(m.AddressSpace)))
}

func (m Machine) checkCgroup() Check {
	const name = "cgroup"
	limit, source := m.cgroupLimit()
	if source == "" {
		return ok(name, "no memory limit")
	}
	return note(name, fmt.Sprintf("malloc does not know it: TCMALLOC_HEAP_LIMIT_MB, somewhat below %d, lets malloc fail where the kernel would end the process", limit>>20), "at most %s (%s)", text.Bytes(limit), source)
}
