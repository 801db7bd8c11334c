// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads that allocate are moved between CPUs, by themselves and by another thread, at any
// instruction; every block is handed out exactly once.
// Usage: affinity_storm [changes of affinity]

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "stress/threads/owned_block.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kWorkers = 6;

int changes_wanted = 30'000;

std::atomic<int> changes{0};

// Sets of the CPUs that the process may use.
class Masks {
 public:
  Masks() { PROGRAM_CHECK(sched_getaffinity(0, sizeof(usable_), &usable_) == 0); }

  // Not empty.
  cpu_set_t Pick(Random& random) const {
    cpu_set_t mask;
    do {
      CPU_ZERO(&mask);
      for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &usable_) && random.Below(2) == 0) CPU_SET(cpu, &mask);
      }
    } while (CPU_COUNT(&mask) == 0);
    return mask;
  }

 private:
  cpu_set_t usable_;
};

void Move(pid_t thread, const Masks& masks, Random& random, Progress& progress) {
  const cpu_set_t mask = masks.Pick(random);
  PROGRAM_CHECK(sched_setaffinity(thread, sizeof(mask), &mask) == 0);
  changes.fetch_add(1, std::memory_order_relaxed);
  progress.Advance();
}

bool IsOver() { return changes.load(std::memory_order_relaxed) >= changes_wanted; }

void Work(OwnedMailbox& mailbox, uint64_t seed, const Masks& masks, std::atomic<pid_t>& id,
          const std::atomic<bool>& stop, Progress& progress) {
  id.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_release);
  id.notify_one();
  OwnedBlocks blocks(mailbox, seed);
  while (!stop.load(std::memory_order_relaxed)) {
    blocks.Steps(static_cast<int>(blocks.random().Below(2000)));
    Move(0, masks, blocks.random(), progress);
  }
}

int Body(Progress& progress) {
  const Masks masks;
  OwnedMailbox mailbox;
  std::atomic<bool> stop{false};
  std::array<std::atomic<pid_t>, kWorkers> ids{};
  std::vector<std::thread> workers;
  for (size_t i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&, i] { Work(mailbox, i, masks, ids[i], stop, progress); });
  }
  for (const std::atomic<pid_t>& id : ids) id.wait(0, std::memory_order_acquire);
  OwnedBlocks blocks(mailbox, kWorkers);
  while (!IsOver()) {
    blocks.Steps(static_cast<int>(blocks.random().Below(100)));
    Move(ids[blocks.random().Below(kWorkers)].load(), masks, blocks.random(), progress);
  }
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& worker : workers) worker.join();
  printf("%d changes of affinity\n", changes.load());
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  if (argc > 1) tcmalloc::testing::changes_wanted = atoi(argv[1]);
  return tcmalloc::testing::RunSupervised("affinity_storm", tcmalloc::testing::Body);
}
