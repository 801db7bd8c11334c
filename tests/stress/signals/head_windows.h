// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Finds the boundaries between the instruction that reads a list's head and the one that writes it.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_HEAD_WINDOWS_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_HEAD_WINDOWS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "stress/signals/stepper.h"

namespace tcmalloc::testing {

// Finds where the heads of lists are read and written, of the sizes that handlers keep, free or
// free in order. At each boundary a handler looks which block the list gives out, which tells when
// its head is written. The registers tell when its head is read. Nothing here knows the compiler's
// instructions: only that a head goes through a register, as a reference or as a link, before
// another one is written.
//
// Lies in memory that a child shares with its parent.
class HeadWindows {
 public:
  static constexpr size_t kMostBoundaries = Stepper::kLongestPath;

  // Learns how the last block of a list is linked. Empties all lists.
  void LearnEnd();
  // Learns which two blocks each list would give out first, and leaves it so. To be called before
  // the operation is interrupted at boundary `i`; not for an operation that begins without blocks.
  void Learn(size_t i);
  // Called by the handler at boundary `i`. Frees what it allocates.
  void Look(size_t i);
  // After a run that was not interrupted: takes its way through the code for the usual one, unless
  // an earlier one was shorter, as where the clock did not expire.
  void NotePath();
  // True if the last run went that way until boundary `i`.
  bool IsOnPath(size_t i) const { return Stepper::address(i) == path_[i]; }
  // True if boundary `i` lies between a read and a write. Requires a Look at it and all before it.
  bool Contain(size_t i) const;

 private:
  static constexpr std::array<size_t, 3> kSizes = {48, 96, 20000};

  // One list at one boundary; addresses of blocks.
  struct List {
    uintptr_t first;   // that it would have given out before the operation
    uintptr_t second;  // after that one
    uint64_t link;     // of the first one to the second
    uintptr_t now;     // that it gives out at the boundary
  };
  struct Boundary {
    std::array<List, kSizes.size()> lists;
    Stepper::Registers registers;
  };

  bool IsNewInRegister(size_t i, uint64_t word) const;
  bool IsRead(size_t i, size_t list) const;
  bool IsWritten(size_t i, size_t list) const;

  uint64_t end_link_ = 0;
  uint64_t path_length_ = 0;
  std::array<uintptr_t, kMostBoundaries> path_;
  std::array<Boundary, kMostBoundaries> boundaries_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_HEAD_WINDOWS_H_
