// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A child process under ptrace.

#ifndef TCMALLOC_TESTS_STRESS_RSEQ_TRACED_CHILD_H_
#define TCMALLOC_TESTS_STRESS_RSEQ_TRACED_CHILD_H_

#include <sys/mman.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace tcmalloc::testing {

// Memory that parent and child share.
template <typename T>
T* NewShared() {
  void* memory =
      ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return new (memory) T();
}

class TracedChild {
 public:
  static constexpr int kBreakpoints = 2;

  // Forks a child that calls run(), which does not return, once it is traced. Where the kernel
  // refuses, or this architecture is not known, traced() is false.
  explicit TracedChild(void (*run)());
  ~TracedChild();
  TracedChild(const TracedChild&) = delete;
  TracedChild& operator=(const TracedChild&) = delete;

  // In the child: stops until the parent lets it go on.
  static void Stop();

  bool traced() const { return traced_; }

  // Each lets the child run until it stops again. False once it has ended.
  bool Continue();
  bool Step();

  // True if the child stands where Stop was called, rather than at a breakpoint or after a step.
  bool stopped_itself() const { return stopped_itself_; }
  uintptr_t instruction_pointer() const;
  // From the child's memory; `address` is aligned.
  uint64_t Read(const uint64_t* address) const;

  // Stops the child before it executes the instruction; 0 takes the breakpoint away. False if the
  // kernel refuses.
  [[nodiscard]] bool SetBreakpoint(int index, uintptr_t address);

  // How the child ended, as waitpid says.
  int status() const { return status_; }

 private:
  bool Resume(int request);
  // The child's registers, by their place in struct user.
  uintptr_t Peek(size_t offset) const;
  bool Poke(size_t offset, uintptr_t value);

  pid_t pid_;
  bool traced_ = false;
  bool ended_ = false;
  bool stopped_itself_ = false;
  int status_ = 0;
  uintptr_t breakpoints_[kBreakpoints] = {};
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_RSEQ_TRACED_CHILD_H_
