// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Forks while other threads allocate; each child must be able to use its heap in full.
// Usage: fork_storm [forks]

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "stress/fork/storm.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kChurners = 4;
constexpr int kForkers = 2;

int forks = 2000;

int Body(Progress& progress) {
  Tally tally;
  std::atomic<int> next_round{0};
  const Churners churners(kChurners);
  std::vector<std::thread> forkers;
  for (int i = 0; i < kForkers; ++i) {
    forkers.emplace_back([&, i] {
      BlockSet<64> blocks(static_cast<uint64_t>(i) + 100);
      for (int round = next_round++; round < forks; round = next_round++) {
        blocks.Steps(20);
        const pid_t pid = fork();
        PROGRAM_CHECK(pid >= 0);
        if (pid == 0) {
          alarm(kChildAlarmSeconds);
          UseHeapInChild(blocks, static_cast<uint64_t>(round));
          LeaveChild(round);
        }
        tally.Await(pid);
        progress.Advance();
      }
      blocks.FreeAll();
    });
  }
  for (std::thread& forker : forkers) forker.join();
  return tally.Report("fork");
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  if (argc > 1) tcmalloc::testing::forks = atoi(argv[1]);
  return tcmalloc::testing::RunSupervised("fork_storm", tcmalloc::testing::Body);
}
