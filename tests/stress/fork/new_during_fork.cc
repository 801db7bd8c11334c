// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Another thread's fork keeps slow paths closed while an operator new[] returns, and while a
// realloc runs. The block must be one of new[] even so, and what moves must keep its bytes. A hook,
// which is called once there is a block, lets that fork begin.

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

#include "stress/threads/workload.h"

extern "C" __attribute__((weak)) int MallocHook_AddNewHook(void (*hook)(const void*, size_t));

namespace tcmalloc::testing {
namespace {

constexpr size_t kSize = 3210;
constexpr std::align_val_t kAligned{64};

enum Step : int { kIdle, kArmed, kForks, kClosed, kOver };
std::atomic<int> step{kIdle};

void Await(int awaited) {
  while (step.load() != awaited) usleep(50);
}

// Runs behind the allocator's own handler, because it is registered before that.
void HoldFork() {
  if (step.load() != kForks) return;
  step.store(kClosed);
  Await(kOver);
}

void BeginFork(const void* /*block*/, size_t size) {
  int armed = kArmed;
  if (size != kSize || !step.compare_exchange_strong(armed, kForks)) return;
  Await(kClosed);
}

void Fork() {
  Await(kForks);
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) _exit(0);
  int status = 0;
  PROGRAM_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

void AllocateDuringFork(const std::function<void*()>& allocate,
                        const std::function<void(void*)>& free) {
  std::thread forker(Fork);
  step.store(kArmed);
  void* const block = allocate();
  PROGRAM_CHECK(block != nullptr);
  PROGRAM_CHECK(step.load() == kClosed);
  step.store(kOver);
  forker.join();
  free(block);
}

// The blocks of these alignments begin at any page of theirs.
void ReallocateDuringFork(size_t alignment, size_t size) {
  char* const block = static_cast<char*>(std::aligned_alloc(alignment, size));
  PROGRAM_CHECK(block != nullptr);
  std::memset(block, 'b', size);
  char* moved = nullptr;
  const auto reallocate = [&]() -> void* {
    void* const armed = std::malloc(kSize);
    PROGRAM_CHECK(malloc_usable_size(block) >= size);
    moved = static_cast<char*>(std::realloc(block, size + 1));
    return armed;
  };
  AllocateDuringFork(reallocate, [](void* armed) { std::free(armed); });
  PROGRAM_CHECK(moved != nullptr);
  PROGRAM_CHECK(std::count(moved, moved + size, 'b') == static_cast<ptrdiff_t>(size));
  std::free(moved);
}

void Run() {
  PROGRAM_CHECK(&MallocHook_AddNewHook != nullptr && MallocHook_AddNewHook(BeginFork) != 0);
  AllocateDuringFork([] { return ::operator new[](kSize, std::nothrow); },
                     [](void* block) { ::operator delete[](block); });
  AllocateDuringFork([] { return ::operator new[](kSize, kAligned, std::nothrow); },
                     [](void* block) { ::operator delete[](block, kAligned); });
  ReallocateDuringFork(size_t{16} << 10, 700);
  ReallocateDuringFork(size_t{16} << 10, size_t{64} << 10);
  ReallocateDuringFork(size_t{1} << 20, size_t{96} << 10);
}

void RegisterHandler(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  pthread_atfork(HoldFork, nullptr, nullptr);
}
__attribute__((section(".preinit_array"),
               used)) void (*const register_handler)(int, char**, char**) = RegisterHandler;

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  tcmalloc::testing::Run();
  return 0;
}
