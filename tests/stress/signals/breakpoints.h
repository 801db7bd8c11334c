// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stops a thread at the next instruction of a text, in a tenth of the time that a trap after an
// instruction takes on a virtual machine.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_BREAKPOINTS_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_BREAKPOINTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {

// Knows what may run after an instruction: from its bytes if it jumps, and otherwise from steps
// that were taken before, in this process or in another one that was forked from the same parent.
// No other thread of the process may run in the text while breakpoints lie there.
class Breakpoints {
 public:
  // Makes the text writable. Without success nothing is ever known.
  void Initialize(uintptr_t begin, uintptr_t end);

  // True if breakpoints may lie there.
  bool Contain(uintptr_t address) const { return address >= begin_ && address < end_; }

  // The thread came from the instruction at `from` to the one at `to` by a single step.
  void Learn(uintptr_t from, uintptr_t to);

  // Puts breakpoints wherever the thread may be after the instruction at `address`, where the stack
  // pointer is `stack`. False, and nothing is put anywhere, if some of that is not known or not
  // part of the text.
  bool PutAfter(uintptr_t address, uintptr_t stack);
  // Requires Contain(address).
  void Put(uintptr_t address);
  bool IsAt(uintptr_t address) const;
  void RemoveAll();

 private:
  struct Breakpoint {
    uintptr_t address;
    uint8_t instead_of;
  };
  // Two ways of a branch, and where each of their sections is aborted.
  static constexpr size_t kMost = 8;
  static constexpr size_t kLongestInstruction = 15;

  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  // Lengths of the instructions that were stepped, by their offset; 0 for those that were not. Lies
  // in memory that forked processes share.
  uint8_t* lengths_ = nullptr;
  std::array<Breakpoint, kMost> breakpoints_;
  size_t count_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_BREAKPOINTS_H_
