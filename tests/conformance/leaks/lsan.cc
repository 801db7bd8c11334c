// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of LeakSanitizer.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

extern "C" {
void __lsan_disable();
void __lsan_enable();
void __lsan_ignore_object(const void* object);
void __lsan_register_root_region(const void* start, size_t bytes);
void __lsan_unregister_root_region(const void* start, size_t bytes);
int __lsan_do_recoverable_leak_check();
void __lsan_do_leak_check();

const char* __lsan_default_suppressions() {
  return "# blocks of this function\nleak:LoseSuppress*\n";
}
}

namespace {

int failures = 0;

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  ++failures;
}

__attribute__((noinline)) void* Get(size_t bytes) {
  void* block = std::malloc(bytes);
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

__attribute__((noinline)) void ClearStack() {
  volatile char bytes[8 << 10];
  for (size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = 0;
}

bool HasLeaks() {
  ClearStack();
  return __lsan_do_recoverable_leak_check() != 0;
}

}  // namespace

__attribute__((noinline)) void LoseSuppressed(size_t bytes) {
  Get(bytes);
  asm volatile("");
}

__attribute__((noinline)) void LoseUnder(const void* root) {
  *static_cast<void* volatile*>(const_cast<void*>(root)) = Get(60);
}

int main() {
  Expect(!HasLeaks(), "no leaks at first");
  __lsan_disable();
  Get(10);
  __lsan_enable();
  Expect(!HasLeaks(), "what is lost while it is disabled is no leak");
  __lsan_ignore_object(Get(20));
  Expect(!HasLeaks(), "an ignored object is no leak");
  LoseSuppressed(30);
  Expect(!HasLeaks(), "a suppressed block is no leak");

  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  LoseUnder(memory);
  __lsan_register_root_region(memory, 4096);
  Expect(!HasLeaks(), "what a root region leads to is no leak");
  *static_cast<void* volatile*>(memory) = nullptr;
  Expect(HasLeaks(), "a lost block is a leak");
  __lsan_unregister_root_region(memory, 4096);

  // It ends the program that has leaks.
  const pid_t child = ::fork();
  if (child == 0) {
    __lsan_do_leak_check();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  Expect(WIFEXITED(status) && WEXITSTATUS(status) == 5, "a check ends a program with leaks");
  std::fflush(nullptr);
  ::_exit(failures == 0 ? 0 : 1);
}
