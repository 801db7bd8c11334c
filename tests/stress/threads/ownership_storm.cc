// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// More threads than CPUs allocate, free, and free what others allocated; every block is handed out
// exactly once. The threads come in waves: between two waves few are alive, so that an allocator
// that goes by their number changes its mind. Now and then one of them has the allocator give back
// what it can, which empties the caches of the others.
// Usage: ownership_storm [seconds [threads [steps]]], with 0 for the usual number of threads. The
// steps are those of each thread in a wave; the last wave is finished.

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "stress/threads/owned_block.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kStepsPerTrim = 20'000;  // of one of the threads
constexpr int kThreadsPerCpu = 6;

int seconds = 10;
int thread_count = 0;
int steps_per_wave = 400'000;  // of each thread

void Work(OwnedMailbox& mailbox, uint64_t seed, bool trims, Progress& progress) {
  OwnedBlocks blocks(mailbox, seed);
  for (int step = 0; step < steps_per_wave; step += 1000) {
    blocks.Steps(1000);
    progress.Advance();
    if (trims && step % kStepsPerTrim == 0) malloc_trim(0);
  }
}

void RunWave(OwnedMailbox& mailbox, uint64_t seed, Progress& progress) {
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back(
        [&, i] { Work(mailbox, seed + static_cast<uint64_t>(i), i == 0, progress); });
  }
  for (std::thread& thread : threads) thread.join();
}

int Body(Progress& progress) {
  OwnedMailbox mailbox;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  uint64_t waves = 0;
  do {
    RunWave(mailbox, 1000 * waves++, progress);
  } while (std::chrono::steady_clock::now() < end);
  printf("%d threads, %llu waves, %llu steps\n", thread_count,
         static_cast<unsigned long long>(waves),
         static_cast<unsigned long long>(progress.steps() * 1000));
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using tcmalloc::testing::seconds;
  using tcmalloc::testing::steps_per_wave;
  using tcmalloc::testing::thread_count;
  if (argc > 1) seconds = atoi(argv[1]);
  if (argc > 2) thread_count = atoi(argv[2]);
  if (argc > 3) steps_per_wave = atoi(argv[3]);
  if (thread_count == 0) {
    thread_count = std::min<int>(
        tcmalloc::testing::kThreadsPerCpu * static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 128);
  }
  return tcmalloc::testing::RunSupervised("ownership_storm", tcmalloc::testing::Body);
}
