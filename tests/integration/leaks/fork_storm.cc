// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads allocate and free while another one forks. Then some blocks come from memory that the
// allocator keeps for this case. All are freed, so the leak checker must not find any.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kThreads = 4;
constexpr int kForks = 100;
constexpr size_t kKept = 200;
constexpr size_t kAllocations = 50'000;

void UseHeap() {
  std::vector<void*> blocks(kKept);
  for (size_t i = 0; i < kAllocations; ++i) {
    void*& block = blocks[i * 7 % kKept];
    std::free(block);
    block = std::malloc(i % 3000);
  }
  for (void* block : blocks) std::free(block);
}

bool ForkOnce() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(UseHeap);
  bool forked = true;
  for (int i = 0; i < kForks; ++i) forked &= ForkOnce();
  for (std::thread& thread : threads) thread.join();
  return forked ? 0 : 2;
}
