// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A hundred mostly idle threads where the machine backs everything by hugepages: the program may
// have 1.3 times the resident memory that it has without hugepages. Elsewhere there is nothing to
// compare.

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace {

using tcmalloc::testing::Random;
using tcmalloc::testing::ResidentBytes;

constexpr int kThreads = 100;
constexpr int kSkipped = 77;
constexpr double kMostRatio = 1.3;

// Allocates a little, and frees half of it; the rest stays until the process ends.
void WorkALittle(uint64_t seed) {
  Random random(seed);
  std::vector<void*> blocks(200);
  for (void*& block : blocks) {
    const size_t size = 16 + random.Below(2000);
    block = malloc(size);
    PROGRAM_CHECK(block != nullptr);
    memset(block, 1, size);
  }
  for (size_t i = 0; i < blocks.size(); i += 2) free(blocks[i]);
}

// Prints the resident bytes with all threads idle.
int Measure() {
  std::barrier idle(kThreads + 1);
  std::barrier end(kThreads + 1);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      WorkALittle(i + 1);
      idle.arrive_and_wait();
      end.arrive_and_wait();
    });
  }
  idle.arrive_and_wait();
  printf("%zu\n", ResidentBytes());
  end.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// In a new process, for the allocator looks at the machine's setting when it starts.
size_t MeasureInChild(const char* program, bool with_hugepages) {
  int pipe_ends[2];
  PROGRAM_CHECK(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    if (!with_hugepages) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    execl(program, program, "measure", nullptr);
    _exit(1);
  }
  close(pipe_ends[1]);
  FILE* output = fdopen(pipe_ends[0], "r");
  size_t bytes = 0;
  PROGRAM_CHECK(fscanf(output, "%zu", &bytes) == 1);
  fclose(output);
  int status = -1;
  PROGRAM_CHECK(waitpid(child, &status, 0) == child && status == 0);
  return bytes;
}

bool AlwaysOn() {
  FILE* file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  if (file == nullptr) return false;
  char line[64] = {};
  const bool on = fgets(line, sizeof(line), file) != nullptr && strstr(line, "[always]") != nullptr;
  fclose(file);
  return on;
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) return Measure();
  if (!AlwaysOn()) {
    fprintf(stderr, "hugepages are not always on\n");
    return kSkipped;
  }
  const size_t without = MeasureInChild("/proc/self/exe", false);
  const size_t with = MeasureInChild("/proc/self/exe", true);
  const double ratio = static_cast<double>(with) / static_cast<double>(without);
  fprintf(stderr, "resident: %zu bytes without hugepages, %.2f times as many with\n", without,
          ratio);
  PROGRAM_CHECK(ratio <= kMostRatio);
  return 0;
}
