// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The mappings that the program made.

#ifndef TCMALLOC_RECORDER_RECORDED_MAPPINGS_H_
#define TCMALLOC_RECORDER_RECORDED_MAPPINGS_H_

#include <cstddef>
#include <cstdint>

#include "base/spin_lock.h"
#include "recorder/recorded_stacks.h"

namespace tcmalloc {

// Ranges of addresses with the stack that mapped each, sorted, in memory of their own. Counts in a
// RecordedStacks: a mapping counts once as an object, and its bytes count as freed when they are
// unmapped, in whatever pieces.
//
// Invariant: ranges do not overlap; of the pieces of one mapping, at most one counts as its object.
//
// Thread safe. To be called as BlockTable is: in the slow path.
class RecordedMappings {
 public:
  constexpr explicit RecordedMappings(RecordedStacks& stacks) : stacks_(stacks) {}
  RecordedMappings(const RecordedMappings&) = delete;
  RecordedMappings& operator=(const RecordedMappings&) = delete;

  // Records a mapping, which takes the place of whatever was there. Returns the bytes unmapped by
  // that. Leaves it out if no memory can be had.
  uint64_t Add(uintptr_t start, size_t bytes, StackId stack) TCMALLOC_EXCLUDES(lock_);
  // Notes that a range is no longer mapped. Returns how many bytes of it were recorded.
  uint64_t Remove(uintptr_t start, size_t bytes) TCMALLOC_EXCLUDES(lock_);
  void Clear() TCMALLOC_EXCLUDES(lock_);

 private:
  static constexpr size_t kFirstRanges = 128;

  struct Range {
    uintptr_t start;
    uintptr_t limit;
    StackId stack;
    bool counts;  // as the object
  };

  Range* FirstEndingAfter(uintptr_t address) TCMALLOC_REQUIRES(lock_);
  bool EnsureRoom() TCMALLOC_REQUIRES(lock_);
  void Insert(Range* place, const Range& range) TCMALLOC_REQUIRES(lock_);
  void Cut(Range& range, uintptr_t start, uintptr_t limit) TCMALLOC_REQUIRES(lock_);
  uint64_t RemoveLocked(uintptr_t start, uintptr_t limit) TCMALLOC_REQUIRES(lock_);

  RecordedStacks& stacks_;
  SpinLock lock_{LockRank::kBlockTable};
  Range* ranges_ TCMALLOC_GUARDED_BY(lock_) = nullptr;
  size_t room_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t count_ TCMALLOC_GUARDED_BY(lock_) = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_RECORDED_MAPPINGS_H_
