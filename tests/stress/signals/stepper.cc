// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/signals/stepper.h"

#include <elf.h>
#include <link.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cache/per_cpu/sections_layout.h"
#include "stress/signals/breakpoints.h"

namespace tcmalloc::testing {
namespace {

// The kernel's struct rseq_cs, and what stands before each abort handler.
struct alignas(32) Section {
  uint32_t version;
  uint32_t flags;
  uint64_t start;
  uint64_t length;
  uint64_t abort;

  bool Contains(uintptr_t address) const { return address - start < length; }
};
constexpr uint32_t kSignature = TCM_SIGNATURE_X86_64;
constexpr uint64_t kLongestSection = 4096;
// Of an abort handler, until it jumps back or gives up, and of what it jumps to before the section.
constexpr uint64_t kAbortBytes = 32;

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool Contains(uintptr_t address) const { return address >= begin && address < end; }
};

struct State {
  const char* library = nullptr;
  uintptr_t base = 0;
  Range text;
  std::array<Range, 8> data;
  size_t data_count = 0;
  std::array<Section, 64> sections;
  size_t section_count = 0;

  Stepper::Boundaries boundaries;
  void (*handler)() = nullptr;
  bool armed = false;
  bool done = false;
  Breakpoints breakpoints;
  uintptr_t stepped = 0;  // the instruction of the text that is run with a trap behind it
  const Section* aborted = nullptr;  // by the handler, and not left since
  uint64_t seen = 0;
  uint64_t handled = 0;
  uintptr_t last = 0;
  Stepper::Registers registers = {};
  std::array<uintptr_t, Stepper::kLongestPath> path = {};
};
State state;

int NoteLibrary(dl_phdr_info* info, size_t, void*) {
  if (std::strstr(info->dlpi_name, state.library) == nullptr) return 0;
  state.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    if ((header.p_flags & PF_X) != 0) {
      // From the first such segment to the end of the last one.
      if (state.text.end == 0) state.text.begin = begin;
      state.text.end = begin + header.p_memsz;
    } else if ((header.p_flags & PF_W) != 0 && state.data_count < state.data.size()) {
      state.data[state.data_count++] = {begin, begin + header.p_filesz};
    }
  }
  return 1;
}

bool IsSection(const Section& section) {
  if (section.version != 0 || section.flags != 0 || section.length == 0 ||
      section.length > kLongestSection || !state.text.Contains(section.start) ||
      !state.text.Contains(section.abort)) {
    return false;
  }
  uint32_t signature = 0;
  std::memcpy(&signature, reinterpret_cast<const void*>(section.abort - sizeof(signature)),
              sizeof(signature));
  return signature == kSignature;
}

void FindSections(Range data) {
  for (uintptr_t p = (data.begin + 31) / 32 * 32; p + sizeof(Section) <= data.end; p += 32) {
    const auto& section = *reinterpret_cast<const Section*>(p);
    if (IsSection(section) && state.section_count < state.sections.size()) {
      state.sections[state.section_count++] = section;
    }
  }
}

const Section* SectionWith(uintptr_t abort) {
  for (size_t i = 0; i < state.section_count; ++i) {
    if (state.sections[i].abort == abort) return &state.sections[i];
  }
  return nullptr;
}
const Section* SectionAround(uintptr_t address) {
  for (size_t i = 0; i < state.section_count; ++i) {
    if (state.sections[i].Contains(address)) return &state.sections[i];
  }
  return nullptr;
}

bool IsChosen(uint64_t boundary) {
  const Stepper::Boundaries& wanted = state.boundaries;
  if (boundary < wanted.first) return false;
  const uint64_t past = boundary - wanted.first;
  return wanted.stride == 0 ? past == 0 : past % wanted.stride == 0;
}

// True if the thread is still in the section that the handler aborted last.
bool IsInAborted(uintptr_t address) {
  const Section* section = state.aborted;
  if (section == nullptr) return false;
  if (address - section->abort < kAbortBytes) return true;
  if (address - (section->start - kAbortBytes) < section->length + kAbortBytes) return true;
  state.aborted = nullptr;
  return false;
}

#if defined(__x86_64__)

// stepper_return.S, and what it is told and tells.
extern "C" {
void tcm_stepper_return();
extern const char tcm_stepper_start;
extern const char tcm_stepper_aborted;
Section tcm_stepper_section;
uintptr_t tcm_stepper_area;       // the thread's rseq area, or 0 outside sections
uintptr_t tcm_stepper_abort;      // where the allocator's section is aborted
uintptr_t tcm_stepper_frame;      // the stack pointer on the way back
uint64_t tcm_stepper_switches;    // of the thread until its section began
rusage tcm_stepper_usage;         // while counting them again
uint8_t tcm_stepper_was_aborted;  // on the instruction returned to
}

constexpr greg_t kTrapFlag = 0x100;

void NoteRegisters(const greg_t* registers) {
  size_t i = 0;
  for (const int r : {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8, REG_R9,
                      REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15}) {
    state.registers[i++] = static_cast<uintptr_t>(registers[r]);
  }
}

uint64_t CountSwitches() {
  rusage usage;
  ::getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw) + static_cast<uint64_t>(usage.ru_nivcsw);
}

// Where the thread stands. A section is aborted by the step that makes it one: then it stood at the
// section's start.
uintptr_t FindPlace(uintptr_t ip, bool was_aborted) {
  const Section* started = SectionWith(ip);
  if (started == nullptr || was_aborted) return ip;
  tcm_stepper_switches = CountSwitches();
  return started->start;
}

// A step may end behind the first instruction at which the section is aborted that it was in.
bool IsAbortOfSectionAround(uintptr_t address, uintptr_t maybe_abort) {
  const Section* section = SectionAround(address);
  return section != nullptr && maybe_abort - section->abort < kAbortBytes;
}

// Lets the next instruction run, and stops behind it: by breakpoints if possible. The kernel may
// abort a section instead.
void StepOnce(greg_t* registers) {
  const auto address = static_cast<uintptr_t>(registers[REG_RIP]);
  const auto stack = static_cast<uintptr_t>(registers[REG_RSP]);
  if (!state.boundaries.alone || !state.breakpoints.PutAfter(address, stack)) {
    registers[REG_EFL] |= kTrapFlag;
    state.stepped = address;
    return;
  }
  registers[REG_EFL] &= ~kTrapFlag;
  for (size_t i = 0; i < state.section_count; ++i) {
    const Section& section = state.sections[i];
    if (section.Contains(address) || state.breakpoints.IsAt(section.start)) {
      state.breakpoints.Put(section.abort);
    }
  }
}

bool IsShortJump(uintptr_t address) {
  return (*reinterpret_cast<const uint8_t*>(address) & 0xf0) == 0x70;
}

// Lets the handler return to `address` in `section` as if the kernel still knew of it. Not to a
// jump, which may lead back to where the kernel would abort the step; it changes nothing itself.
void ReturnInto(const Section& section, uintptr_t address, uintptr_t thread) {
  const auto start = reinterpret_cast<uintptr_t>(&tcm_stepper_start);
  tcm_stepper_section = {0, 0, start, address + 1 - start,
                         reinterpret_cast<uintptr_t>(&tcm_stepper_aborted)};
  tcm_stepper_abort = section.abort;
  std::memcpy(&tcm_stepper_area, reinterpret_cast<const void*>(thread + TCM_RSEQ_AREA),
              sizeof(tcm_stepper_area));
}

// After a step out of the text. What the allocator calls there does not call it.
void RunUntilReturn(greg_t* registers) {
  const auto back = *reinterpret_cast<const uintptr_t*>(registers[REG_RSP]);
  if (!state.boundaries.alone || !state.breakpoints.Contain(back)) return;
  state.breakpoints.Put(back);
  registers[REG_EFL] &= ~kTrapFlag;
}

// Takes away what stopped the thread. Tells if that was a breakpoint, which it then stands at.
bool LeaveBreakpoint(greg_t& ip) {
  const auto before = static_cast<uintptr_t>(ip) - 1;
  const bool stopped = state.breakpoints.IsAt(before);
  state.breakpoints.RemoveAll();
  if (stopped) ip = static_cast<greg_t>(before);
  return stopped;
}

// Calls the handler at a boundary that was chosen. False if nothing is to be stepped any longer.
bool Interrupt(const greg_t* registers, uintptr_t address) {
  state.aborted = SectionAround(address);
  ++state.handled;
  state.done = state.boundaries.stride == 0 || state.handled == state.boundaries.most;
  NoteRegisters(registers);
  const int saved_errno = errno;
  state.last = address;
  state.handler();
  errno = saved_errno;
  return !state.done;
}

void OnStep(int, siginfo_t*, void* raw_context) {
  greg_t* registers = static_cast<ucontext_t*>(raw_context)->uc_mcontext.gregs;
  greg_t& ip = registers[REG_RIP];
  tcm_stepper_area = 0;
  const uintptr_t stepped = std::exchange(state.stepped, 0);
  const bool has_stopped = LeaveBreakpoint(ip);
  if (!state.armed) return;
  if (!state.text.Contains(static_cast<uintptr_t>(ip))) {
    if (stepped != 0) RunUntilReturn(registers);
    return;
  }
  // Where the section is aborted no breakpoint is met before it has been.
  const bool was_aborted = std::exchange(tcm_stepper_was_aborted, uint8_t{0}) != 0 || has_stopped;
  const uintptr_t address = FindPlace(static_cast<uintptr_t>(ip), was_aborted);
  if (stepped != 0 && !IsAbortOfSectionAround(stepped, address)) {
    state.breakpoints.Learn(stepped, address);
  }
  if (state.seen < state.path.size()) state.path[state.seen] = address;
  const bool chosen = IsChosen(state.seen++) && !IsInAborted(address);
  const Section* section = SectionAround(address);
  ip = static_cast<greg_t>(chosen && section != nullptr ? section->abort : address);
  if (chosen && !Interrupt(registers, address)) {
    registers[REG_EFL] &= ~kTrapFlag;
    return;
  }
  if (!chosen && section != nullptr && !IsShortJump(address)) {
    ReturnInto(*section, address, registers[REG_RSI]);
  }
  StepOnce(registers);
}

// As the kernel takes it: libc would put in its own way back.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*);
  unsigned long flags;
  void (*way_back)();
  unsigned long mask;
};
constexpr unsigned long kHasWayBack = 0x04000000;

#endif

}  // namespace

bool Stepper::Initialize(const char* library) {
#if defined(__x86_64__)
  state.library = library;
  if (::dl_iterate_phdr(NoteLibrary, nullptr) == 0) return false;
  // ReturnInto wants to be below.
  if (reinterpret_cast<uintptr_t>(&tcm_stepper_start) > state.text.begin) return false;
  for (size_t i = 0; i < state.data_count; ++i) FindSections(state.data[i]);
  state.breakpoints.Initialize(state.text.begin, state.text.end);
  const KernelAction action = {OnStep, SA_SIGINFO | kHasWayBack, tcm_stepper_return, 0};
  return ::syscall(SYS_rt_sigaction, SIGTRAP, &action, nullptr, sizeof(action.mask)) == 0;
#else
  static_cast<void>(library);
  return false;
#endif
}

void Stepper::Arm(const Boundaries& boundaries, void (*handler)()) {
  state.boundaries = boundaries;
  state.handler = handler;
  state.seen = state.handled = 0;
  state.aborted = nullptr;
  state.done = false;
  state.armed = true;
}
void Stepper::Disarm() { state.armed = false; }

// The processor traps after each instruction while this flag is set. Below the stack pointer there
// may be live data of the function that this is a part of.
#if defined(__x86_64__)
__attribute__((noinline)) void Stepper::On() {
  if (!state.armed || state.done) return;
  asm volatile(
      "lea -128(%%rsp), %%rsp\n\t"
      "pushfq\n\t"
      "orq $0x100, (%%rsp)\n\t"
      "popfq\n\t"
      "lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}
__attribute__((noinline)) void Stepper::Off() {
  asm volatile(
      "lea -128(%%rsp), %%rsp\n\t"
      "pushfq\n\t"
      "andq $-0x101, (%%rsp)\n\t"
      "popfq\n\t"
      "lea 128(%%rsp), %%rsp" ::
          : "memory", "cc");
}
#else
void Stepper::On() {}
void Stepper::Off() {}
#endif

uint64_t Stepper::boundaries() { return state.seen; }
uint64_t Stepper::handled() { return state.handled; }
uintptr_t Stepper::address(size_t boundary) { return state.path[boundary]; }
uintptr_t Stepper::last_offset() { return state.last - state.base; }
uintptr_t Stepper::last_address() { return state.last; }
const Stepper::Registers& Stepper::last_registers() { return state.registers; }

}  // namespace tcmalloc::testing
