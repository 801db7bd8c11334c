// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/rseq/traced_child.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

namespace tcmalloc::testing {

TracedChild::TracedChild(void (*run)()) : pid_(::fork()) {
  if (pid_ == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(1);
    Stop();
    run();
    ::_exit(1);
  }
  if (::waitpid(pid_, &status_, 0) != pid_ || !WIFSTOPPED(status_)) {
    ended_ = true;
    return;
  }
  ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
  stopped_itself_ = true;
#if defined(__x86_64__)
  traced_ = true;
#endif
}

TracedChild::~TracedChild() {
  if (ended_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
}

void TracedChild::Stop() { ::raise(SIGTRAP); }

bool TracedChild::Resume(int request) {
  if (ended_) return false;
  const auto r = static_cast<__ptrace_request>(request);
  if (::ptrace(r, pid_, nullptr, nullptr) != 0 || ::waitpid(pid_, &status_, 0) != pid_)
    return false;
  if (!WIFSTOPPED(status_)) {
    ended_ = true;
    return false;
  }
  siginfo_t info = {};
  ::ptrace(PTRACE_GETSIGINFO, pid_, nullptr, &info);
  stopped_itself_ = info.si_code == SI_TKILL;
  if (info.si_signo == SIGTRAP) return true;
  std::fprintf(stderr, "the child was stopped by signal %d\n", info.si_signo);
  return false;
}

bool TracedChild::Continue() { return Resume(PTRACE_CONT); }
bool TracedChild::Step() { return Resume(PTRACE_SINGLESTEP); }

uint64_t TracedChild::Read(const uint64_t* address) const {
  return static_cast<uint64_t>(::ptrace(PTRACE_PEEKDATA, pid_, address, nullptr));
}

#if defined(__x86_64__)

uintptr_t TracedChild::Peek(size_t offset) const {
  return static_cast<uintptr_t>(
      ::ptrace(PTRACE_PEEKUSER, pid_, reinterpret_cast<void*>(offset), nullptr));
}

bool TracedChild::Poke(size_t offset, uintptr_t value) {
  return ::ptrace(PTRACE_POKEUSER, pid_, reinterpret_cast<void*>(offset),
                  reinterpret_cast<void*>(value)) == 0;
}

namespace {

size_t DebugRegister(int index) {
  return offsetof(struct user, u_debugreg) + static_cast<size_t>(index) * sizeof(uint64_t);
}

}  // namespace

uintptr_t TracedChild::instruction_pointer() const { return Peek(offsetof(struct user, regs.rip)); }

// In register 7, two bits for each breakpoint enable it; kinds and lengths of zero mean execution.
// Where the child stands at a breakpoint, its resume flag lets it pass; that must not hide another
// one where the kernel makes it go on.
bool TracedChild::SetBreakpoint(int index, uintptr_t address) {
  constexpr uintptr_t kResumeFlag = uintptr_t{1} << 16;
  breakpoints_[index] = address;
  uintptr_t enabled = 0;
  for (int i = 0; i < kBreakpoints; ++i) {
    if (breakpoints_[i] != 0) enabled |= uintptr_t{1} << (2 * i);
  }
  return Poke(offsetof(struct user, regs.eflags),
              Peek(offsetof(struct user, regs.eflags)) & ~kResumeFlag) &&
         Poke(DebugRegister(index), address) && Poke(DebugRegister(7), enabled);
}

#else

uintptr_t TracedChild::instruction_pointer() const { return 0; }
bool TracedChild::SetBreakpoint(int, uintptr_t) { return false; }

#endif

}  // namespace tcmalloc::testing
