// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Uses the heap in every way while system calls of the allocator fail, then takes the faults back
// and checks that nothing is left of them. Linked with the library for fault injection; fault_sweep
// runs it. Usage: see protocol.h.

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "stress/faults/address_space.h"
#include "stress/faults/faulty_block.h"
#include "stress/faults/protocol.h"
#include "stress/faults/statistics.h"
#include "stress/threads/workload.h"

extern "C" {
int tcmalloc_test_inject_faults(const char* plans);
unsigned long tcmalloc_test_faults_injected();
void tcmalloc_test_grow_in_small_steps();
}

namespace tcmalloc::testing {
namespace {

constexpr int kThreads = 3;
// So many that each kind of call that can be repeated is made 200 times.
constexpr int kWaves = 12;
constexpr int kWavesPerTrim = 2;
constexpr int kWavesPerFork = 6;
constexpr int kStepsPerWave = 80;
constexpr int kLargeStepsPerWave = 60;
// libc keeps the thread-local storage vectors of threads that have ended; one page of the heap, the
// least that a lost span takes, is more.
constexpr size_t kKeptByLibc = 4096;
// Span records, thread caches and the leaves of the page map.
constexpr size_t kMostForRecords = size_t{2} << 20;
constexpr size_t kStackBytes = size_t{256} << 10;

struct Arguments {
  const char* plans = nullptr;
  bool quiet_fork = false;
  bool exact_space = false;
  bool small_steps = false;
};

size_t MixedSize(Random& random) {
  const size_t kind = random.Below(64);
  if (kind == 0) return 1 + random.Below(size_t{2} << 20);
  if (kind < 4) return 1 + random.Below(size_t{300} << 10);
  if (kind < 12) return 1 + random.Below(size_t{16} << 10);
  return 1 + random.Below(600);
}

// A span of its own, too large for what is left over of others.
size_t LargeSize(Random& random) { return (size_t{256} << 10) + random.Below(size_t{1800} << 10); }

using MixedBlocks = FaultyBlockSet<64>;
using LargeBlocks = FaultyBlockSet<512>;

// One set for each thread of a wave; the next wave's thread goes on with it, so that blocks are
// freed by other threads than those that allocated them.
std::array<MixedBlocks, kThreads> thread_blocks = {MixedBlocks(MixedSize), MixedBlocks(MixedSize),
                                                   MixedBlocks(MixedSize)};
MixedBlocks main_blocks(MixedSize);
LargeBlocks large_blocks(LargeSize);

// Stacks from libc would be address space of neither the program nor the heap.
alignas(4096) std::array<std::array<unsigned char, kStackBytes>, kThreads> stacks;

struct ThreadTask {
  MixedBlocks* blocks = nullptr;
  uint64_t seed = 0;
  Memory memory = Memory::kMayFail;
};

void* RunThread(void* argument) {
  const auto* task = static_cast<ThreadTask*>(argument);
  Random random(task->seed);
  task->blocks->Steps(random, kStepsPerWave, task->memory);
  return nullptr;
}

// Threads that run during its life. Where memory may fail, a thread may fail to start.
class Wave {
 public:
  Wave(uint64_t seed, Memory memory) {
    for (size_t i = 0; i < kThreads; ++i) {
      tasks_[i] = {&thread_blocks[i], seed * kThreads + i, memory};
      pthread_attr_t attributes;
      PROGRAM_CHECK(pthread_attr_init(&attributes) == 0);
      PROGRAM_CHECK(pthread_attr_setstack(&attributes, stacks[i].data(), kStackBytes) == 0);
      const int error = pthread_create(&threads_[i], &attributes, RunThread, &tasks_[i]);
      pthread_attr_destroy(&attributes);
      PROGRAM_CHECK(error == 0 || memory == Memory::kMayFail);
      PROGRAM_CHECK(error == 0 || error == EAGAIN || error == ENOMEM);
      running_[i] = error == 0;
    }
  }
  Wave(const Wave&) = delete;
  Wave& operator=(const Wave&) = delete;
  ~Wave() {
    for (size_t i = 0; i < kThreads; ++i) {
      if (running_[i]) PROGRAM_CHECK(pthread_join(threads_[i], nullptr) == 0);
    }
  }

 private:
  std::array<ThreadTask, kThreads> tasks_;
  std::array<pthread_t, kThreads> threads_{};
  std::array<bool, kThreads> running_{};
};

[[noreturn]] void RunForkedChild(Random& random, Memory memory) {
  alarm(kHangSeconds);
  main_blocks.CheckAll();
  large_blocks.CheckAll();
  main_blocks.Steps(random, kStepsPerWave, memory);
  malloc_trim(0);
  main_blocks.ForEach([](FaultyBlock& block) { block.Free(); });
  _exit(0);
}

void ForkAndWait(Random& random, Memory memory) {
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0 || (memory == Memory::kMayFail && errno == ENOMEM));
  if (pid < 0) return;
  if (pid == 0) RunForkedChild(random, memory);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) PROGRAM_CHECK(errno == EINTR);
  PROGRAM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void RunWaves(Random& random, bool quiet_fork, int waves, Memory memory) {
  for (int i = 1; i <= waves; ++i) {
    const bool fork_now = i % kWavesPerFork == 0;
    {
      const Wave wave(random.Next(), memory);
      main_blocks.Steps(random, kStepsPerWave, memory);
      large_blocks.Steps(random, kLargeStepsPerWave, memory);
      if (i % kWavesPerTrim == 0) malloc_trim(0);
      if (fork_now && !quiet_fork) ForkAndWait(random, memory);
    }
    if (fork_now && quiet_fork) ForkAndWait(random, memory);
  }
}

template <typename Visit>
void ForEachBlock(Visit visit) {
  for (MixedBlocks& blocks : thread_blocks) blocks.ForEach(visit);
  main_blocks.ForEach(visit);
  large_blocks.ForEach(visit);
}

// Frees all blocks; each byte of theirs, and no other, must leave the statistics.
void FreeAllAndCount() {
  size_t live = 0;
  ForEachBlock([&](const FaultyBlock& block) { live += block.usable_size(); });
  const size_t before = BytesInUse();
  ForEachBlock([](FaultyBlock& block) { block.Free(); });
  PROGRAM_CHECK(before - BytesInUse() == live);
}

// Address space that the allocator does not report as its own, or that is nobody's any more.
size_t Unaccounted() { return AddressSpaceBytes() - BytesMapped(); }

void CheckUnaccounted(size_t at_start) {
  const size_t now = Unaccounted();
  PROGRAM_CHECK(now >= at_start && now - at_start <= kMostForRecords);
}

void CheckRecovery(Random& random, const Arguments& arguments, size_t in_use_at_start,
                   size_t unaccounted_at_start) {
  ForEachBlock([](const FaultyBlock& block) { block.Check(); });
  CheckStatistics();
  RunWaves(random, arguments.quiet_fork, kWavesPerFork, Memory::kMustBeThere);
  CheckStatistics();
  if (arguments.exact_space) CheckUnaccounted(unaccounted_at_start);
  FreeAllAndCount();
  CheckStatistics();
  PROGRAM_CHECK(BytesInUse() <= in_use_at_start + kKeptByLibc);
}

bool StartsWith(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

Arguments ParseArguments(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i < count; ++i) {
    if (StartsWith(values[i], kPlansArgument)) {
      arguments.plans = values[i] + strlen(kPlansArgument);
    } else if (strcmp(values[i], kQuietForkArgument) == 0) {
      arguments.quiet_fork = true;
    } else if (strcmp(values[i], kExactSpaceArgument) == 0) {
      arguments.exact_space = true;
    } else {
      PROGRAM_CHECK(strcmp(values[i], kSmallStepsArgument) == 0);
      arguments.small_steps = true;
    }
  }
  return arguments;
}

int Run(const Arguments& arguments) {
  if (arguments.plans != nullptr) PROGRAM_CHECK(tcmalloc_test_inject_faults(arguments.plans) != 0);
  if (arguments.small_steps) tcmalloc_test_grow_in_small_steps();
  const size_t in_use_at_start = BytesInUse();
  const size_t unaccounted_at_start = Unaccounted();
  Random random(1);
  RunWaves(random, arguments.quiet_fork, kWaves, Memory::kMayFail);
  const unsigned long injected = tcmalloc_test_faults_injected();
  PROGRAM_CHECK(tcmalloc_test_inject_faults(nullptr) != 0);
  CheckRecovery(random, arguments, in_use_at_start, unaccounted_at_start);
  if (injected == 0) return kNothingInjectedStatus;
  return injected == 1 ? kOneFaultAbsorbedStatus : kAbsorbedStatus;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  return tcmalloc::testing::Run(tcmalloc::testing::ParseArguments(argc, argv));
}
