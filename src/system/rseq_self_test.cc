// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/rseq_self_test.h"

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <cerrno>
#include <cstddef>
#include <new>

#include "base/bits.h"
#include "system/auxv.h"
#include "system/rseq_area.h"
#include "system/system_calls.h"

// The section: sets the area's rseq_cs to the descriptor, then faults. Both arguments stay in their
// registers for the handler of the signal.
extern "C" {
void tcmalloc_rseq_test_section(void* area, const void* descriptor)
    __attribute__((visibility("hidden")));
extern const char tcmalloc_rseq_test_start[] __attribute__((visibility("hidden")));
extern const char tcmalloc_rseq_test_end[] __attribute__((visibility("hidden")));
extern const char tcmalloc_rseq_test_abort[] __attribute__((visibility("hidden")));
}

#if defined(__x86_64__)
#define TCMALLOC_SET_SECTION "movq %rsi, 8(%rdi)\n"
#define TCMALLOC_FAULT "ud2\n"
#define TCMALLOC_SIGNATURE ".byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n"
#elif defined(__aarch64__)
#define TCMALLOC_SET_SECTION "str x1, [x0, #8]\n"
#define TCMALLOC_FAULT "udf #0\n"
#define TCMALLOC_SIGNATURE ".inst 0xd428bc00\n"
#endif

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl tcmalloc_rseq_test_section, tcmalloc_rseq_test_start\n"
    ".globl tcmalloc_rseq_test_end, tcmalloc_rseq_test_abort\n"
    ".hidden tcmalloc_rseq_test_section, tcmalloc_rseq_test_start\n"
    ".hidden tcmalloc_rseq_test_end, tcmalloc_rseq_test_abort\n"
    ".type tcmalloc_rseq_test_section, %function\n"
    "tcmalloc_rseq_test_section:\n" TCMALLOC_SET_SECTION
    "tcmalloc_rseq_test_start:\n" TCMALLOC_FAULT "tcmalloc_rseq_test_end:\n" TCMALLOC_SIGNATURE
    "tcmalloc_rseq_test_abort:\n" TCMALLOC_FAULT
    ".size tcmalloc_rseq_test_section, . - tcmalloc_rseq_test_section\n"
    ".popsection\n");

#undef TCMALLOC_SET_SECTION
#undef TCMALLOC_FAULT
#undef TCMALLOC_SIGNATURE

// The child borrows the thread of its parent, and its stack is not one that a sanitizer knows.
#define TCMALLOC_IN_CHILD __attribute__((no_sanitize("address", "thread")))

namespace tcmalloc {
namespace {

constexpr unsigned long kSaRestorer = 0x04000000;
constexpr uint64_t kAllSignals = ~uint64_t{0};
constexpr uint64_t kFaults = uint64_t{1} << (SIGILL - 1) | uint64_t{1} << (SIGSEGV - 1);

// The kernel's description of a section.
struct alignas(32) Descriptor {
  uint32_t version = 0;
  uint32_t flags = 0;
  uint64_t start = 0;
  uint64_t bytes = 0;
  uint64_t abort = 0;
};

// Shared by the parent and the child; begins the memory whose rest is the child's stack.
struct Probe {
  RseqArea area;
  Descriptor descriptor;
  int error = 0;
  bool registered = false;
  bool aborted = false;
};
static_assert(offsetof(Probe, area) == 0, "the section takes the probe for its area");

// Stack for everything but the frame of a signal, which grows with the vector registers.
constexpr size_t kPlainStackBytes = 16 << 10;

size_t ProbeBytes() {
  const size_t frame = system_calls.getauxval(AT_MINSIGSTKSZ);
  return AlignUp(sizeof(Probe) + kPlainStackBytes + frame, KernelPageSize());
}

struct Interrupted {
  uintptr_t instruction;
  uintptr_t first_argument;
};

TCMALLOC_IN_CHILD Interrupted Decode(const void* context) {
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {.instruction = static_cast<uintptr_t>(machine.gregs[REG_RIP]),
          .first_argument = static_cast<uintptr_t>(machine.gregs[REG_RDI])};
#elif defined(__aarch64__)
  return {.instruction = machine.pc, .first_argument = machine.regs[0]};
#endif
}

TCMALLOC_IN_CHILD void Leave() { system_calls.exit(0); }

TCMALLOC_IN_CHILD void OnOtherFault(int, siginfo_t*, void*) { Leave(); }

TCMALLOC_IN_CHILD void OnIllegalInstruction(int, siginfo_t*, void* context) {
  const Interrupted interrupted = Decode(context);
  if (interrupted.instruction == reinterpret_cast<uintptr_t>(tcmalloc_rseq_test_abort)) {
    reinterpret_cast<Probe*>(interrupted.first_argument)->aborted = true;
  }
  Leave();
}

// The handlers never return, but a kernel with shadow stacks requires an address to which they
// would.
TCMALLOC_IN_CHILD bool Handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
  const SignalAction action = {
      .handler = handler, .flags = SA_SIGINFO | kSaRestorer, .restorer = Leave, .mask = 0};
  return system_calls.rt_sigaction(signal, &action, nullptr) == 0;
}

// A kernel that finds an area or a descriptor wrong sends SIGSEGV. No signal may end the child by
// its default action: before Linux 5.16 a dump of its memory ends everyone who shares it.
TCMALLOC_IN_CHILD void RunChild(void* argument) {
  auto* probe = static_cast<Probe*>(argument);
  if (!Handle(SIGILL, OnIllegalInstruction) || !Handle(SIGSEGV, OnOtherFault)) return;
  if (system_calls.rt_sigprocmask(SIG_UNBLOCK, &kFaults, nullptr) != 0) return;
  if (system_calls.rseq(&probe->area, sizeof(probe->area), 0, kRseqSignature) != 0) {
    probe->error = errno;
    return;
  }
  probe->registered = true;
  tcmalloc_rseq_test_section(probe, &probe->descriptor);
}

// The flags are those of vfork, which emulators and debuggers know, without the exit signal: the
// child is invisible to the program's own wait.
void RunProbe(Probe* probe, void* stack_end) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK;
  uint64_t mask = 0;
  if (system_calls.rt_sigprocmask(SIG_BLOCK, &kAllSignals, &mask) != 0) return;
  const pid_t child = system_calls.clone(kFlags, stack_end, RunChild, probe);
  // Nothing can interrupt this, and the child has little more to do than to end.
  if (child > 0) system_calls.wait4(child, nullptr, __WALL);
  system_calls.rt_sigprocmask(SIG_SETMASK, &mask, nullptr);
}

// Makes a registration without an area, which is wrong everywhere; the error tells whether the
// kernel has registrations. An emulator that has none might not survive the child either.
int ErrorOfEmptyRegistration() {
  return system_calls.rseq(nullptr, 0, 0, kRseqSignature) == 0 ? 0 : errno;
}

RseqTestResult ResultOf(const Probe& probe) {
  if (!probe.registered) {
    return {.outcome = probe.error != 0 ? RseqTestOutcome::kRefused : RseqTestOutcome::kFailed,
            .error = probe.error};
  }
  if (!probe.aborted) return {};
  return {.outcome = RseqTestOutcome::kPassed,
          .cpu_id = probe.area.cpu_id,
          .mm_cid = probe.area.mm_cid};
}

}  // namespace

RseqTestResult TestRseq() {
  const int error = ErrorOfEmptyRegistration();
  if (error == ENOSYS || error == EPERM || error == EACCES) {
    return {.outcome = RseqTestOutcome::kRefused, .error = error};
  }
  const size_t bytes = ProbeBytes();
  void* memory =
      system_calls.mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  auto* probe = new (memory) Probe;
  probe->area.cpu_id = UINT32_MAX;
  probe->area.mm_cid = UINT32_MAX;
  probe->descriptor.start = reinterpret_cast<uintptr_t>(tcmalloc_rseq_test_start);
  probe->descriptor.bytes =
      static_cast<uint64_t>(tcmalloc_rseq_test_end - tcmalloc_rseq_test_start);
  probe->descriptor.abort = reinterpret_cast<uintptr_t>(tcmalloc_rseq_test_abort);
  RunProbe(probe, static_cast<char*>(memory) + bytes);
  const RseqTestResult result = ResultOf(*probe);
  system_calls.munmap(memory, bytes);
  return result;
}

}  // namespace tcmalloc
