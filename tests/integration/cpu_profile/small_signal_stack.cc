// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Takes a CPU profile of a thread whose signal handlers run on a stack of 8 KiB above a page
// without access, as the run time of Rust gives its threads. Where the kernel alone takes half of
// that or more for the registers, the stack is larger by as much. Then takes one where the stack
// has little more than what the kernel takes, so that no handler may run there. Passes if the
// process survives.

#include <gperftools/profiler.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStack = 2 * kPage;
constexpr int kTicks = 50;

// Returns false if the kernel has no memory.
bool SetSignalStack(size_t bytes) {
  void* memory =
      mmap(nullptr, kPage + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kPage, PROT_NONE) != 0) return false;
  stack_t stack = {};
  stack.ss_sp = static_cast<char*>(memory) + kPage;
  stack.ss_size = bytes;
  return sigaltstack(&stack, nullptr) == 0;
}

int TicksTaken() {
  ProfilerState state = {};
  ProfilerGetCurrentState(&state);
  return state.samples_gathered;
}

// So many frames deep, as the stacks of real programs are.
__attribute__((noinline)) int Burn(int depth) {
  if (depth > 0) return Burn(depth - 1) + 1;
  while (TicksTaken() < kTicks) {
    for (size_t i = 0; i < 1000; ++i) std::free(std::malloc(i));
  }
  return 0;
}

// Returns false if no profile can be taken.
bool ProfileOn(size_t stack_bytes) {
  const std::string path = "/tmp/small_signal_stack." + std::to_string(getpid());
  if (!SetSignalStack(stack_bytes) || ProfilerStart(path.c_str()) == 0) return false;
  const int depth = Burn(300);
  ProfilerStop();
  unlink(path.c_str());
  std::printf("%zu bytes, %d frames deep\n", stack_bytes, depth);
  return true;
}

}  // namespace

int main() {
  constexpr size_t kLittle = 1024;
  const size_t of_kernel = getauxval(AT_MINSIGSTKSZ);
  return ProfileOn(std::max(kStack, of_kernel + kPage)) && ProfileOn(of_kernel + kLittle) ? 0 : 1;
}
