// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Lets the k-th system call of each kind fail, for all k up to a bound, in processes of their own:
// none may crash, hang or lose anything, whatever fails.
//
// Usage: fault_sweep WORKLOAD EARLY_WORKLOAD [--full | --sparse]
// --full: all values of k and all errors for every kind.
// --sparse: some values of k for every kind.
//
// The values of a kind are tried in ascending order, and no more of them after several in a row
// that the workload did not reach. Where every k-th call is only one, the run is that of `once`
// with another error, and greater values of k are not tried. --full tries all of them nevertheless.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "stress/faults/plan.h"
#include "stress/faults/protocol.h"
#include "stress/faults/workload_process.h"

namespace tcmalloc::testing {
namespace {

// Enough to see what they have in common.
constexpr int kMostFailures = 20;
// Runs of a kind in a row without a fault, after which the workload makes no more such calls. More
// than one value of k, because the number of calls depends on the order of threads.
constexpr int kMostBarrenRuns = 6;
// Runs in a row in which every k-th call was only one. After a fault the workload makes more or
// fewer calls than without, so that one such run does not tell what a greater k would do.
constexpr int kMostSingleFaults = 6;

struct Programs {
  std::string ordinary;
  std::string early;
};

// A directory for the files that heaps lie in: where unlink fails, they stay.
class HeapFiles {
 public:
  HeapFiles() : directory_("/dev/shm/fault_sweep." + std::to_string(getpid())) {
    std::filesystem::create_directory(directory_);
  }
  HeapFiles(const HeapFiles&) = delete;
  HeapFiles& operator=(const HeapFiles&) = delete;
  ~HeapFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::string Path() const { return directory_ + "/heap"; }

 private:
  std::string directory_;
};

WorkloadCommand CommandFor(const Run& run, const Programs& programs, const HeapFiles& files) {
  const Kind& kind = *run.kind;
  WorkloadCommand command;
  command.program =
      kind.program == Program::kAllocatesInResolver ? programs.early : programs.ordinary;
  if (*kind.variable != '\0') command.environment.emplace_back(kind.variable);
  if (kind.memfs) {
    // Privately, for the workload forks.
    command.environment.push_back("TCMALLOC_MEMFS_MALLOC_PATH=" + files.Path());
    command.environment.emplace_back("TCMALLOC_MEMFS_MAP_PRIVATE=1");
  }
  if (kind.start == Start::kProcess) {
    command.environment.push_back("TCMALLOC_TEST_FAULT=" + run.plans);
  } else {
    command.arguments.push_back(kPlansArgument + run.plans);
  }
  if (kind.quiet_fork) command.arguments.emplace_back(kQuietForkArgument);
  if (kind.small_steps) command.arguments.emplace_back(kSmallStepsArgument);
  if (kind.exact_space) command.arguments.emplace_back(kExactSpaceArgument);
  return command;
}

// Counts the outcomes by kind. Thread safe.
class Tally {
 public:
  void Add(const Run& run, const WorkloadCommand& command, const WorkloadResult& result) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Counts& counts = counts_[run.kind];
    ++counts.runs;
    const bool one_fault = result.outcome == Outcome::kOneFaultAbsorbed;
    if (one_fault || result.outcome == Outcome::kFaultsAbsorbed) ++counts.with_faults;
    if (run.every) counts.single_faults = one_fault ? counts.single_faults + 1 : 0;
    counts.barren = result.outcome == Outcome::kNothingInjected ? counts.barren + 1 : 0;
    if (result.outcome != Outcome::kFailed) return;
    ++failures_;
    fprintf(stderr, "%s\n  %s\n", result.reason.c_str(), command.Text().c_str());
  }

  // Tells if the run would show what others of its kind have shown.
  bool IsRepetition(const Run& run) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Counts& counts = counts_[run.kind];
    return counts.barren >= kMostBarrenRuns ||
           (run.every && counts.single_faults >= kMostSingleFaults);
  }

  bool TooManyFailures() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failures_ >= kMostFailures;
  }

  // Prints the table and returns the exit status of the test. Nothing was tested of a kind of call
  // that was never made to fail.
  int Report() {
    const std::lock_guard<std::mutex> lock(mutex_);
    bool complete = true;
    printf("%-22s%-7s%8s%14s\n", "call", "from", "runs", "with faults");
    for (const Kind& kind : Kinds()) {
      const Counts& counts = counts_[&kind];
      const bool as_declared = (counts.with_faults > 0) == kind.reached;
      complete &= as_declared;
      printf("%-22s%-7s%8d%14d  %s%s\n", kind.call, kind.start == Start::kMain ? "main" : "start",
             counts.runs, counts.with_faults, kind.memfs ? "in memfs" : kind.variable,
             as_declared ? "" : "  NOT AS THE TABLE SAYS");
    }
    printf("%d failures\n", failures_);
    return failures_ == 0 && complete ? 0 : 1;
  }

 private:
  struct Counts {
    int runs = 0;
    int with_faults = 0;
    int barren = 0;         // in a row
    int single_faults = 0;  // in a row, of the runs with every k-th call
  };

  std::mutex mutex_;
  std::map<const Kind*, Counts> counts_;
  int failures_ = 0;
};

int Sweep(const Programs& programs, Extent extent) {
  const std::vector<Run> runs = PlanSweep(extent);
  const HeapFiles files;
  Tally tally;
  std::atomic<size_t> next{0};
  std::vector<std::thread> workers;
  for (long i = 0; i < std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)); ++i) {
    workers.emplace_back([&] {
      for (size_t run = next++; run < runs.size() && !tally.TooManyFailures(); run = next++) {
        if (extent != Extent::kFull && tally.IsRepetition(runs[run])) continue;
        const WorkloadCommand command = CommandFor(runs[run], programs, files);
        tally.Add(runs[run], command, RunWorkload(command));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  return tally.Report();
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using tcmalloc::testing::Extent;
  Extent extent = Extent::kUsual;
  if (argc == 4 && strcmp(argv[3], "--full") == 0) extent = Extent::kFull;
  if (argc == 4 && strcmp(argv[3], "--sparse") == 0) extent = Extent::kSparse;
  if (argc != 3 && extent == Extent::kUsual) {
    fprintf(stderr, "usage: fault_sweep WORKLOAD EARLY_WORKLOAD [--full | --sparse]\n");
    return 2;
  }
  return tcmalloc::testing::Sweep({argv[1], argv[2]}, extent);
}
