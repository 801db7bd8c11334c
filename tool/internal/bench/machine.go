// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tcm/internal/text"
)

// Machine describes where results come from.
type Machine struct {
	Processor   string `json:"processor"`
	CPUs        int    `json:"cpus"`
	MemoryBytes int64  `json:"memory_bytes"`
	Kernel      string `json:"kernel"`
	HugePages   string `json:"transparent_hugepages"`
	Governor    string `json:"frequency_governor,omitempty"`
}

func (m Machine) String() string {
	line := fmt.Sprintf("%s, %s, %s of memory, Linux %s, transparent huge pages: %s", m.Processor, text.Counted(int64(m.CPUs), "CPU"),
		text.Bytes(m.MemoryBytes), m.Kernel, m.HugePages)
	if m.Governor != "" {
		line += ", governor: " + m.Governor
	}
	return line
}

// ThisMachine describes the machine that tcm runs on, as far as it tells.
func ThisMachine() Machine {
	machine := Machine{
		Processor: runtime.GOARCH,
		CPUs:      runtime.NumCPU(),
		Kernel:    firstLine("/proc/sys/kernel/osrelease"),
		HugePages: text.Bracketed(firstLine("/sys/kernel/mm/transparent_hugepage/enabled")),
		Governor:  firstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
	}
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		defer file.Close()
		if name := field(file, "model name"); name != "" {
			machine.Processor = name
		}
	}
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		machine.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	return machine
}

func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

func field(input io.Reader, name string) string {
	scanner := bufio.NewScanner(input)
	for scanner.Scan() {
		key, value, found := strings.Cut(scanner.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Busy is CPU time since boot, summed over all CPUs.
type Busy struct {
	// Work is what ran here, Stolen what the hypervisor gave to others.
	Work, Stolen time.Duration
}

// tick is the unit of /proc/stat: USER_HZ, which is 100 for every architecture of today.
const tick = 10 * time.Millisecond

// ReadBusy reads the machine's CPU times.
func ReadBusy() (Busy, error) {
	return parseBusy(firstLine("/proc/stat"))
}

func parseBusy(line string) (Busy, error) {
	const user, nice, system, irq, softirq, steal = 1, 2, 3, 6, 7, 8
	fields := strings.Fields(line)
	if len(fields) <= steal || fields[0] != "cpu" {
		return Busy{}, fmt.Errorf("/proc/stat does not begin with the sums over all CPUs: %q", line)
	}
	var busy Busy
	for _, index := range []int{user, nice, system, irq, softirq, steal} {
		ticks, err := strconv.ParseInt(fields[index], 10, 64)
		if err != nil {
			return Busy{}, fmt.Errorf("/proc/stat: %w", err)
		}
		if index == steal {
			busy.Stolen += time.Duration(ticks) * tick
		} else {
			busy.Work += time.Duration(ticks) * tick
		}
	}
	return busy, nil
}

// Noise is what others than the measured program had of the CPUs while it ran, in CPUs: 0.5 is
// half of one CPU.
type Noise struct {
	Others float64 `json:"others_cpus"`
	Stolen float64 `json:"stolen_cpus"`
}

// NoiseLimit is the noise above which a measurement does not count as undisturbed.
const NoiseLimit = 0.10

// blur is how much the counters of ticks may be off when they are read.
const blur = 3 * tick

// NoiseBetween takes own, the CPU time of the program, out of what the machine did in a time.
func NoiseBetween(before, after Busy, own, wall time.Duration) Noise {
	share := func(busy time.Duration) float64 {
		if busy <= blur || wall <= 0 {
			return 0
		}
		return (busy - blur).Seconds() / wall.Seconds()
	}
	return Noise{Others: share(after.Work - before.Work - own), Stolen: share(after.Stolen - before.Stolen)}
}

// IsQuiet says whether the noise is within the limit.
func (n Noise) IsQuiet() bool { return n.Others <= NoiseLimit && n.Stolen <= NoiseLimit }

// Worst is the larger of both.
func (n Noise) Worst() float64 { return max(n.Others, n.Stolen) }

// Quiet is how quiet the machine was before a benchmark.
type Quiet struct {
	Noise
	LoadAverage float64 `json:"load_average_1_min"`
	IsQuiet     bool    `json:"quiet"`
}

// ObserveQuiet watches the idle machine for a time.
func ObserveQuiet(length time.Duration) (Quiet, error) {
	before, err := ReadBusy()
	if err != nil {
		return Quiet{}, err
	}
	time.Sleep(length)
	after, err := ReadBusy()
	if err != nil {
		return Quiet{}, err
	}
	quiet := Quiet{Noise: NoiseBetween(before, after, 0, length)}
	if fields := strings.Fields(firstLine("/proc/loadavg")); len(fields) > 0 {
		quiet.LoadAverage, _ = strconv.ParseFloat(fields[0], 64)
	}
	quiet.IsQuiet = quiet.Noise.IsQuiet()
	return quiet, nil
}
