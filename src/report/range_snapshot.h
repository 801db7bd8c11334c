// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The ranges of the heap at one moment.

#ifndef TCMALLOC_REPORT_RANGE_SNAPSHOT_H_
#define TCMALLOC_REPORT_RANGE_SNAPSHOT_H_

#include <gperftools/malloc_extension.h>

#include <cstddef>
#include <span>

namespace tcmalloc {

// A copy in memory from the system, so that its reader holds no lock and may allocate.
class RangeSnapshot {
 public:
  // Leaves it empty if no memory can be had, or if the slow path was interrupted.
  RangeSnapshot();
  ~RangeSnapshot();
  RangeSnapshot(const RangeSnapshot&) = delete;
  RangeSnapshot& operator=(const RangeSnapshot&) = delete;

  // The ranges in order of address.
  std::span<const base::MallocRange> ranges() const { return {ranges_, count_}; }

 private:
  bool Reserve(size_t count);
  void Free();
  // Returns false if there are more ranges than were reserved.
  bool Fill();

  base::MallocRange* ranges_ = nullptr;
  size_t capacity_ = 0;
  size_t count_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_RANGE_SNAPSHOT_H_
