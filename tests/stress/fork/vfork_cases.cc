// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Effects of vfork on the thread that calls it, and on its front end.

#include <malloc.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "stress/modes/refuse_calls.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kBlocks = 20;
constexpr size_t kBlockBytes = 1000;

void AllocateAndFree() {
  std::array<void*, kBlocks> blocks{};
  for (void*& block : blocks) {
    block = malloc(kBlockBytes);
    PROGRAM_CHECK(block != nullptr);
    memset(block, 1, kBlockBytes);
  }
  for (void* block : blocks) free(block);
}

size_t Attribute(const char* text, const char* name) {
  const char* found = strstr(text, name);
  PROGRAM_CHECK(found != nullptr);
  const char* value = strstr(found, "value=\"");
  PROGRAM_CHECK(value != nullptr);
  return strtoul(value + strlen("value=\""), nullptr, 10);
}

// Returns the bytes in the caches of threads and of CPUs.
size_t CachedBytes() {
  static std::array<char, size_t{64} << 10> text;
  FILE* stream = fmemopen(text.data(), text.size(), "w");
  PROGRAM_CHECK(stream != nullptr);
  PROGRAM_CHECK(malloc_info(0, stream) == 0);
  PROGRAM_CHECK(fclose(stream) == 0);
  return Attribute(text.data(), "\"thread_free\"") + Attribute(text.data(), "\"cpu_free\"");
}

// True if most blocks that are freed now stay in a front end.
bool FrontEndKeepsBlocks() {
  std::array<void*, kBlocks> blocks{};
  for (void*& block : blocks) block = malloc(kBlockBytes);
  const size_t before = CachedBytes();
  for (void* block : blocks) free(block);
  return CachedBytes() >= before + kBlocks / 2 * kBlockBytes;
}

// A CPU to which the thread has just been moved has room for few blocks at first.
bool HasFrontEnd() {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (FrontEndKeepsBlocks()) return true;
  }
  return false;
}

// Waits for a child that must have passed.
void Await(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) PROGRAM_CHECK(errno == EINTR);
  PROGRAM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Runs `body` in a child of vfork.
template <typename Body>
void InVforkChild(Body body) {
  const pid_t pid = vfork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) {
    body();
    _exit(0);
  }
  Await(pid);
}

// Before the constructors of the C++ library, which allocate.
void VforkComesFirst(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  InVforkChild(AllocateAndFree);
}
__attribute__((section(".preinit_array"),
               used)) void (*const vfork_comes_first)(int, char**, char**) = VforkComesFirst;

void FrontEndComesBack() {
  for (int i = 0; i < 10; ++i) AllocateAndFree();
  PROGRAM_CHECK(HasFrontEnd());
  InVforkChild([] { PROGRAM_CHECK(!HasFrontEnd()); });
  PROGRAM_CHECK(HasFrontEnd());
}

void Nested() {
  InVforkChild([] {
    InVforkChild([] { PROGRAM_CHECK(!HasFrontEnd()); });
    PROGRAM_CHECK(!HasFrontEnd());
  });
  PROGRAM_CHECK(HasFrontEnd());
}

// The child's heap is its own then; its thread stays without a front end.
void ForkInChild() {
  InVforkChild([] {
    const pid_t pid = fork();
    PROGRAM_CHECK(pid >= 0);
    if (pid == 0) {
      std::thread(AllocateAndFree).join();
      AllocateAndFree();
      _exit(0);
    }
    Await(pid);
  });
  PROGRAM_CHECK(HasFrontEnd());
}

void ThreadBeginsWithVfork() {
  std::thread([] { InVforkChild(AllocateAndFree); }).join();
}

// POSIX gives the child the parent's memory, where both keep errno.
void KeepsErrno() {
  constexpr int kValue = 12345;
  errno = kValue;
  const pid_t pid = vfork();
  if (pid == 0) _exit(errno == kValue ? 0 : 1);
  PROGRAM_CHECK(errno == kValue);
  Await(pid);
}

#if defined(SYS_vfork)
constexpr long kCallOfVfork = SYS_vfork;
#else
constexpr long kCallOfVfork = SYS_clone;
#endif

void Fails() {
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0);
  if (pid > 0) return Await(pid);
  if (RefuseCall(kCallOfVfork, EAGAIN)) {
    errno = 0;
    PROGRAM_CHECK(vfork() == -1);
    PROGRAM_CHECK(errno == EAGAIN);
    PROGRAM_CHECK(HasFrontEnd());
  }
  _exit(0);
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  tcmalloc::testing::FrontEndComesBack();
  tcmalloc::testing::Nested();
  tcmalloc::testing::ForkInChild();
  tcmalloc::testing::ThreadBeginsWithVfork();
  tcmalloc::testing::KeepsErrno();
  tcmalloc::testing::Fails();
  return 0;
}
