// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Call stacks, captured without a lock, without an allocation and without a fault. Every function
// may be called at any time: inside malloc, in a signal handler, on an alternate stack, in a thread
// that starts or ends, in the child of a fork. All keep errno.

#ifndef TCMALLOC_UNWIND_STACK_TRACE_H_
#define TCMALLOC_UNWIND_STACK_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/attributes.h"
#include "unwind/machine.h"
#include "unwind/readable_memory.h"
#include "unwind/stack_frames.h"

namespace tcmalloc {

enum class UnwindMethod : uint8_t {
  kTables,         // unwind tables, and frame pointers where they say nothing
  kFramePointers,  // tables up to where the program keeps frame pointers, and these from there
  kLibunwind,      // libunwind, which takes locks; tables where it is not linked
};

// Chooses how stacks are walked from now on, by all threads.
void SetUnwindMethod(UnwindMethod method);
UnwindMethod unwind_method();

// Returns the method for a value of TCMALLOC_STACKTRACE_METHOD, none if the text is not known.
std::optional<UnwindMethod> ParseUnwindMethod(std::string_view text);

// Walks the stack from a function that is making a call and that has these registers. Stores the
// return addresses of the frames above it, without the `skip` innermost ones, and returns their
// number. Walks `skip` frames by the tables with either method.
int CaptureCallers(const Registers& registers, const StackFrames& frames, int skip);

// Captures the stack from where a signal handler interrupted a thread: `context` is the handler's
// third argument. The first address is that of the interrupted instruction.
int CaptureInterrupted(const void* context, const StackFrames& frames, int skip);

// A copy of a stack, for a walk that comes later: the registers of a function that was making a
// call, and the words from its stack pointer on.
struct StackCopy {
  Registers registers;
  CopiedWords stack;
};

// Returns how many bytes from `sp` on, the stack pointer of a function that runs, make up the rest
// of the thread's own stack; 0 if it is not known to be that.
size_t OwnStackBytesFrom(uintptr_t sp);

// The bytes of a stack, as CopiedWords has them.
struct StackExtent {
  size_t bytes = 0;
  size_t zero_bytes = 0;
  size_t bytes_after = 0;

  size_t copied() const { return bytes + bytes_after; }
};

// Returns the extent of the bytes of OwnStackBytesFrom.
StackExtent OwnStackFrom(uintptr_t sp);

// Walks a copy by the tables, with the result that CaptureCallers had. Where a library has gone
// since, the walk ends; if another one is in its place, the callers may be wrong.
int CaptureFromCopy(const StackCopy& copy, const StackFrames& frames, int skip);

// Stores the return address of the function that it is called from, of its caller and so on,
// without the `skip` innermost ones, and returns their number. Inlined, so that the function it is
// called from is known to have a frame.
TCMALLOC_ALWAYS_INLINE int CaptureStack(void** frames, int limit, int skip) {
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  return CaptureCallers(registers, {.addresses = frames, .limit = limit}, skip);
}

// Stores the same, and the size of each frame.
TCMALLOC_ALWAYS_INLINE int CaptureStackFrames(void** frames, int* sizes, int limit, int skip) {
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  return CaptureCallers(registers, {.addresses = frames, .sizes = sizes, .limit = limit}, skip);
}

inline int CaptureStackFrom(const void* context, void** frames, int limit, int skip) {
  return CaptureInterrupted(context, {.addresses = frames, .limit = limit}, skip);
}

// Returns how many frames of an interrupted stack to skip for a program that counts from its signal
// handler, as gperftools does: the frames of the handler and of the kernel's return from it come
// before the interrupted instruction.
constexpr int SkippedBeyondHandler(int skip_count) {
  constexpr int kFramesOfHandler = 2;
  return skip_count > kFramesOfHandler ? skip_count - kFramesOfHandler : 0;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_STACK_TRACE_H_
