// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode"

	"tcm/internal/project"
	"tcm/internal/report"
)

// variables are all that docs/tuning.md lists.
var variables = []string{
	"TCMALLOC_MODE",
	"TCMALLOC_QUARANTINE_SIZE",
	"TCMALLOC_ZERO_ON_FREE",
	"TCMALLOC_CHECK_DELETES",
	"TCMALLOC_FRONT_END",
	"TCMALLOC_CPU_IDS",
	"TCMALLOC_PAGE_HEAP",
	"TCMALLOC_MAX_PER_CPU_CACHE_SIZE",
	"TCMALLOC_RELEASE_RATE",
	"TCMALLOC_RELEASE_HALF_LIFE",
	"TCMALLOC_BACKGROUND",
	"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
	"TCMALLOC_TRANSFER_NUM_OBJ",
	"TCMALLOC_HEAP_LIMIT_MB",
	"TCMALLOC_SOFT_LIMIT_MB",
	"TCMALLOC_CGROUP",
	"TCMALLOC_CGROUP_ROOT",
	"TCMALLOC_AGGRESSIVE_DECOMMIT",
	"TCMALLOC_SKIP_SBRK",
	"TCMALLOC_SKIP_MMAP",
	"TCMALLOC_DISABLE_MEMORY_RELEASE",
	"TCMALLOC_DEVMEM_START",
	"TCMALLOC_DEVMEM_LIMIT",
	"TCMALLOC_DEVMEM_DEVICE",
	"TCMALLOC_MEMFS_MALLOC_PATH",
	"TCMALLOC_MEMFS_LIMIT_MB",
	"TCMALLOC_MEMFS_ABORT_ON_FAIL",
	"TCMALLOC_MEMFS_IGNORE_MMAP_FAIL",
	"TCMALLOC_MEMFS_MAP_PRIVATE",
	"TCMALLOC_MEMFS_DISABLE_FALLBACK",
	"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD",
	"TCMALLOC_SAMPLE_PARAMETER",
	"TCMALLOC_MAX_SAMPLES",
	"TCMALLOC_GUARDED_SAMPLE_PARAMETER",
	"TCMALLOC_GUARDED_SLOTS",
	"TCMALLOC_HEAP_PROFILE",
	"TCMALLOC_PROFILE_TYPE",
	"TCMALLOC_HEAP_PROFILE_SIGNAL",
	"TCMALLOC_PROFILE_FORMAT",
	"HEAPCHECK",
	"HEAP_CHECK_AFTER_DESTRUCTORS",
	"HEAP_CHECK_IGNORE_GLOBAL_LIVE",
	"HEAP_CHECK_IGNORE_THREAD_LIVE",
	"HEAP_CHECK_IDENTIFY_LEAKS",
	"HEAP_CHECK_TEST_POINTER_ALIGNMENT",
	"HEAP_CHECK_POINTER_SOURCE_ALIGNMENT",
	"HEAP_CHECK_MAX_POINTER_OFFSET",
	"HEAP_CHECK_MAX_LEAKS",
	"HEAP_CHECK_DUMP_DIRECTORY",
	"TCMALLOC_HEAP_CHECK_SUPPRESSIONS",
	"TCMALLOC_HEAP_CHECK_EXIT_CODE",
	"TCMALLOC_HEAP_CHECK_MAPPINGS",
	"TCMALLOC_HEAP_CHECK_REPORT",
	"HEAPPROFILE",
	"HEAP_PROFILE_ALLOCATION_INTERVAL",
	"HEAP_PROFILE_DEALLOCATION_INTERVAL",
	"HEAP_PROFILE_INUSE_INTERVAL",
	"HEAP_PROFILE_TIME_INTERVAL",
	"HEAPPROFILESIGNAL",
	"HEAP_PROFILE_CLEANUP",
	"HEAPPROFILE_USE_PID",
	"HEAP_PROFILE_MMAP",
	"HEAP_PROFILE_ONLY_MMAP",
	"HEAP_PROFILE_MMAP_LOG",
	"TCMALLOC_STACKTRACE_METHOD",
	"TCMALLOC_STACKTRACE_METHOD_VERBOSE",
	"TCMALLOC_TRACE",
	"TCMALLOC_TRACE_FILE",
	"TCMALLOC_PAGE_FENCE",
	"TCMALLOC_PAGE_FENCE_NEVER_RECLAIM",
	"TCMALLOC_PAGE_FENCE_READABLE",
	"TCMALLOC_RECLAIM_MEMORY",
	"TCMALLOC_MAX_FREE_QUEUE_SIZE",
	"TCMALLOC_SYMBOLIZE_STACKTRACE",
	"TCMALLOC_CHECK_INTERVAL",
	"MALLOCSTATS",
	"TCMALLOC_EXIT_CHECK",
	"TCMALLOC_EXIT_REPORT",
	"TCMALLOC_CRASH_REPORT",
	"TCMALLOC_OVERRIDE_PAGESIZE",
	"TCMALLOC_ENABLE_SIZED_DELETE",
	"HEAP_CHECK_RUN_UNDER_GDB",
	"PPROF_PATH",
	"PERFTOOLS_VERBOSE",
	"TCMALLOC_DISABLE_REPLACEMENT",
	"RUNNING_ON_VALGRIND",
}

// prefix begins the names that are meant for the allocator.
const prefix = "TCMALLOC_"

// CheckVariables finds the variables of an environment that the allocator does not know. What it
// complained of itself is left out.
func CheckVariables(environment, complaints []string) []Check {
	var checks []Check
	for _, setting := range environment {
		name, _, _ := strings.Cut(setting, "=")
		if !strings.HasPrefix(name, prefix) || slices.Contains(variables, name) {
			continue
		}
		if slices.ContainsFunc(complaints, func(line string) bool { return mentions(line, name) }) {
			continue
		}
		advice := project.Page("tuning.md") + " lists the variables"
		if nearest := nearestVariable(name); nearest != "" {
			advice = "the nearest one is " + nearest
		}
		checks = append(checks, problem("options", advice, "%s is no variable of the allocator", name))
	}
	return checks
}

// mentions tells whether a line has the name as a whole word, not as the beginning of another name.
func mentions(line, name string) bool {
	return slices.Contains(strings.FieldsFunc(line, func(letter rune) bool {
		return letter != '_' && !unicode.IsLetter(letter) && !unicode.IsDigit(letter)
	}), name)
}

// CheckExitReport tries to open the file of the report at exit as the allocator does. The programs
// that doctor runs cannot tell, because they write their reports to a file of doctor.
func CheckExitReport(environment []string) []Check {
	for _, setting := range environment {
		path, found := strings.CutPrefix(setting, report.Variable+"=")
		if !found {
			continue
		}
		if path == "" {
			return nil
		}
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return []Check{problem("options", "name a file that exists and may be written", "%s=%s: no report can be written: %v", report.Variable, path, err)}
		}
		file.Close()
		return nil
	}
	return nil
}

// nearestVariable returns the known name that shares most words, and of those the one that needs the
// fewest changes; nothing where no word is shared and all need more than every third letter behind
// the prefix.
func nearestVariable(name string) string {
	nearest, most, least := "", 0, (len(name)-len(prefix))/3+1
	for _, known := range variables {
		shared, changes := sharedWords(name, known), distance(name, known)
		if shared > most || shared == most && changes < least {
			nearest, most, least = known, shared, changes
		}
	}
	return nearest
}

func sharedWords(one, other string) int {
	count := 0
	words := strings.Split(strings.TrimPrefix(other, prefix), "_")
	for _, word := range strings.Split(strings.TrimPrefix(one, prefix), "_") {
		if slices.Contains(words, word) {
			count++
		}
	}
	return count
}

// distance counts the letters that must be added, removed or replaced.
func distance(from, to string) int {
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(to) {
			cost := diagonal
			if from[i] != to[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
