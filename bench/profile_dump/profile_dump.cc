// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What it costs to write a heap profile of many live samples: time, CPU time and memory, and how
// long another thread that allocates is held up meanwhile. Run it with TCMALLOC_SAMPLE_PARAMETER=1,
// so that each block is a sample: profile_dump PATH [SAMPLES].

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

extern "C" bool tcmalloc_write_heap_profile(const char* path);

namespace {

double Milliseconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

long PeakKib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// How often the running thread has given its CPU up, as it does to wait for a lock.
long ThreadWaits() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Allocates below `depth` frames, with a path of calls that depends on `seed`.
__attribute__((noinline)) void* AllocateBelow(int depth, unsigned seed) {
  if (depth == 0) return std::malloc(1000);
  // Two calls, and work after each, so that the stacks differ.
  void* block = seed % 2 == 0 ? AllocateBelow(depth - 1, seed / 2) : nullptr;
  asm volatile("" : "+r"(block));
  if (block == nullptr) block = AllocateBelow(depth - 1, seed / 2);
  asm volatile("" : "+r"(block));
  return block;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const size_t samples = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 100'000;
  std::vector<void*> blocks;
  for (size_t i = 0; i < samples; ++i) {
    blocks.push_back(AllocateBelow(20 + static_cast<int>(i % 8), static_cast<unsigned>(i)));
  }
  std::atomic<bool> done = false;
  double longest = 0;
  double longest_cpu = 0;
  long waits = 0;
  std::thread other([&] {
    const long before = ThreadWaits();
    // The part of a round in which the thread does not run: it waits for a lock, or for a CPU.
    for (double last = Milliseconds(CLOCK_THREAD_CPUTIME_ID), wall = Milliseconds(CLOCK_MONOTONIC);
         !done;) {
      std::free(std::malloc(1000));
      const double cpu = Milliseconds(CLOCK_THREAD_CPUTIME_ID);
      const double now = Milliseconds(CLOCK_MONOTONIC);
      longest = std::max(longest, now - wall - (cpu - last));
      longest_cpu = std::max(longest_cpu, cpu - last);
      last = cpu;
      wall = now;
    }
    waits = ThreadWaits() - before;
  });
  for (int round = 0; round < 3; ++round) {
    const long before = PeakKib();
    const double wall = Milliseconds(CLOCK_MONOTONIC);
    const double cpu = Milliseconds(CLOCK_THREAD_CPUTIME_ID);
    const bool written = tcmalloc_write_heap_profile(argv[1]);
    std::printf(
        "{\"written\": %s, \"samples\": %zu, \"ms\": %.1f, \"cpu_ms\": %.1f, "
        "\"peak_kib_more\": %ld}\n",
        written ? "true" : "false", samples, Milliseconds(CLOCK_MONOTONIC) - wall,
        Milliseconds(CLOCK_THREAD_CPUTIME_ID) - cpu, PeakKib() - before);
  }
  done = true;
  other.join();
  // A wait for a CPU is no wait of its own, so that the last two numbers hold on a busy machine: a
  // thread that is kept from its work either gives its CPU up or spins.
  std::printf(
      "{\"longest_wait_of_another_thread_ms\": %.3f, \"its_waits_for_others\": %ld, "
      "\"its_longest_round_cpu_ms\": %.3f}\n",
      longest, waits, longest_cpu);
  return 0;
}
