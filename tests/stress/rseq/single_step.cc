// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// single_step [STEPS]: a child runs all routines again and again while its parent single-steps it,
// which aborts every section at its first instruction. The routines must give up in the end, do
// nothing then, and never do anything wrong; and the child must get on.
//
// Exits with 77 where restartable sequences or ptrace are not to be had.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "stress/rseq/operations.h"
#include "stress/rseq/traced_child.h"

namespace tcmalloc::testing {
namespace {

constexpr int kSkipped = 77;

struct Progress {
  bool end = false;
  uint64_t rounds = 0;
  uint64_t done = 0;
  uint64_t refused = 0;
  uint64_t aborts = 0;
};

std::vector<Operation> operations;
Progress* progress;

// Exits with 1 if an operation went wrong.
[[noreturn]] void RunOperations() {
  std::map<CpuIds, std::unique_ptr<OperationRunner>> runners;
  for (const Operation& operation : operations) {
    auto& runner = runners[operation.ids];
    if (runner == nullptr) runner = std::make_unique<OperationRunner>(operation.ids, false);
  }
  TracedChild::Stop();
  for (; !progress->end; ++progress->rounds) {
    for (const Operation& operation : operations) {
      OperationRunner& runner = *runners[operation.ids];
      const uint32_t aborts = runner.aborts();
      runner.Prepare();
      runner.Run(operation);
      const Outcome outcome = runner.Judge(operation);
      if (outcome == Outcome::kWrong) ::_exit(1);
      ++(outcome == Outcome::kDone ? progress->done : progress->refused);
      progress->aborts += runner.aborts() - aborts;
    }
  }
  ::_exit(0);
}

int Check(const TracedChild& child, uint64_t steps) {
  std::printf("%lu steps: %lu rounds, %lu operations done, %lu given up, %lu aborts\n",
              static_cast<unsigned long>(steps), static_cast<unsigned long>(progress->rounds),
              static_cast<unsigned long>(progress->done),
              static_cast<unsigned long>(progress->refused),
              static_cast<unsigned long>(progress->aborts));
  if (!WIFEXITED(child.status()) || WEXITSTATUS(child.status()) != 0) {
    std::fprintf(stderr, "an operation went wrong\n");
    return 1;
  }
  if (progress->rounds == 0 || progress->refused == 0 || progress->aborts == 0) {
    std::fprintf(stderr, "nothing was given up, or there was no progress\n");
    return 1;
  }
  return 0;
}

int Run(uint64_t steps) {
  operations = UsableOperations();
  if (operations.empty()) {
    std::printf("skipped: %s\n", RseqStateName(Support().state));
    return kSkipped;
  }
  progress = NewShared<Progress>();
  TracedChild child(RunOperations);
  if (!child.traced()) {
    std::printf("skipped: no ptrace\n");
    return kSkipped;
  }
  if (!child.Continue()) return 1;
  // As many steps again must be enough for the round in which the child is told to end.
  uint64_t step = 0;
  while (step < 2 * steps && child.Step()) progress->end = ++step >= steps;
  if (!WIFEXITED(child.status())) {
    std::fprintf(stderr, "the child does not get on\n");
    return 1;
  }
  return Check(child, step);
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  // Some rounds of all operations, each of which aborts alike.
  constexpr uint64_t kSteps = 250'000;
  return tcmalloc::testing::Run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : kSteps);
}
