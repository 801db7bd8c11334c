// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Spends known shares of CPU time in functions and threads, and prints the CPU milliseconds that it
// spent in each. A test compares a CPU profile with them. The last line says how much of its time
// the first thread waited for a CPU.
//
// Usage: shares MODE MILLISECONDS, where MODE is functions, threads, short or all

#include <pthread.h>
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

volatile uint64_t sink = 0;

int64_t ThreadCpuNs() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void Work(int64_t ns) {
  const int64_t end = ThreadCpuNs() + ns;
  while (ThreadCpuNs() < end) {
    for (int i = 0; i < 2000; ++i) sink = sink + 1;
  }
}

}  // namespace

extern "C" {

// Each has a name that profiles show, and a frame that calls on it do not lose.
__attribute__((noinline)) void burn_one(int64_t ns) {
  Work(ns);
  asm volatile("");
}
__attribute__((noinline)) void burn_three(int64_t ns) {
  Work(3 * ns);
  asm volatile("");
}
__attribute__((noinline)) void burn_in_thread(int64_t ns) {
  Work(ns);
  asm volatile("");
}
__attribute__((noinline)) void burn_shortly(int64_t ns) {
  Work(ns);
  asm volatile("");
}

}  // extern "C"

namespace {

struct Spent {
  const char* function;
  int64_t ns;
};
std::vector<Spent> spent;

// Interleaves the functions, so that drift of the machine meets both.
void Functions(int64_t ns) {
  constexpr int kRounds = 100;
  int64_t one = 0;
  int64_t three = 0;
  for (int i = 0; i < kRounds; ++i) {
    const int64_t begin = ThreadCpuNs();
    burn_one(ns / 4 / kRounds);
    const int64_t middle = ThreadCpuNs();
    burn_three(ns / 4 / kRounds);
    one += middle - begin;
    three += ThreadCpuNs() - middle;
  }
  spent.push_back({"burn_one", one});
  spent.push_back({"burn_three", three});
}

void Threads(int64_t ns) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  int64_t used[kThreads] = {};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&used, ns, i] {
      const int64_t begin = ThreadCpuNs();
      burn_in_thread(ns / kThreads);
      used[i] = ThreadCpuNs() - begin;
    });
  }
  int64_t sum = 0;
  for (int i = 0; i < kThreads; ++i) {
    threads[static_cast<size_t>(i)].join();
    sum += used[i];
  }
  spent.push_back({"burn_in_thread", sum});
}

// Threads that end before a period has passed.
void ShortThreads(int64_t ns) {
  constexpr int64_t kEachNs = 1'000'000;
  int64_t sum = 0;
  while (sum < ns) {
    std::thread([&sum] {
      const int64_t begin = ThreadCpuNs();
      burn_shortly(kEachNs);
      sum += ThreadCpuNs() - begin;
    }).join();
  }
  spent.push_back({"burn_shortly", sum});
}

// Returns the part of the first thread's time, without sleep, in which others had the CPU.
double WaitedShare() {
  FILE* file = std::fopen("/proc/self/schedstat", "r");
  if (file == nullptr) return 0;
  unsigned long long ran = 0;
  unsigned long long waited = 0;
  const bool read = std::fscanf(file, "%llu %llu", &ran, &waited) == 2;
  std::fclose(file);
  return read ? static_cast<double>(waited) / static_cast<double>(ran + waited) : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int64_t ns = int64_t{std::atoi(argv[2])} * 1'000'000;
  const bool all = std::strcmp(argv[1], "all") == 0;
  if (all || std::strcmp(argv[1], "functions") == 0) Functions(ns);
  if (all || std::strcmp(argv[1], "threads") == 0) Threads(ns);
  if (all || std::strcmp(argv[1], "short") == 0) ShortThreads(ns);
  for (const Spent& one : spent) {
    std::printf("%s %.3f\n", one.function, static_cast<double>(one.ns) / 1e6);
  }
  std::printf("waited %.3f\n", WaitedShare());
  return 0;
}
