// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Walks a stack by libunwind, where the library or the program is linked with it.

#ifndef TCMALLOC_UNWIND_LIBUNWIND_WALKER_H_
#define TCMALLOC_UNWIND_LIBUNWIND_WALKER_H_

#include <ucontext.h>

#include <cstdint>

#include "unwind/machine.h"
#include "unwind/walker.h"

namespace tcmalloc {

// Returns true if libunwind is in the process.
bool HasLibunwind();

// Has the interface of Walker. libunwind may take locks and memory of its own.
class LibunwindWalker {
 public:
  LibunwindWalker(const Registers& registers, bool at_call);
  LibunwindWalker(const LibunwindWalker&) = delete;
  LibunwindWalker& operator=(const LibunwindWalker&) = delete;

  StepResult Step();
  StepResult StepPastSkipped() { return Step(); }
  uintptr_t pc() const { return pc_; }
  uintptr_t sp() const { return sp_; }

 private:
  static constexpr size_t kCursorWords = 512;  // of any architecture

  bool good_;
  uintptr_t pc_;
  uintptr_t sp_;
  ucontext_t context_;
  uintptr_t cursor_[kCursorWords];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_LIBUNWIND_WALKER_H_
