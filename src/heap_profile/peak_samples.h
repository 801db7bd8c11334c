// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The samples that were live when the heap was largest.

#ifndef TCMALLOC_HEAP_PROFILE_PEAK_SAMPLES_H_
#define TCMALLOC_HEAP_PROFILE_PEAK_SAMPLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "heap_profile/sample_buffer.h"
#include "heap_profile/sample_table.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// Copies all live samples whenever the bytes for which they stand have grown by a sixteenth since
// the last copy, so that the copies together cost a bounded amount for each sample. The peak is
// known to within that sixteenth.
//
// Thread safe. Called in the slow path, so that no signal handler and no fork meets the lock.
class PeakSamples {
 public:
  constexpr PeakSamples(SampleTable& samples, StackTable& stacks)
      : samples_(samples), stacks_(stacks) {}
  PeakSamples(const PeakSamples&) = delete;
  PeakSamples& operator=(const PeakSamples&) = delete;

  // Notes that the blocks for which live samples stand have so many bytes more, or fewer.
  void NoteChange(double bytes);

  // Appends the rows of the peak to `out`.
  void CopyTo(SampleBuffer* out) TCMALLOC_EXCLUDES(lock_);

 private:
  void Copy(int64_t live) TCMALLOC_REQUIRES(lock_);

  // Small programs have no more, and need no mapping for them.
  static constexpr size_t kFirstRows = 8;

  SampleTable& samples_;
  StackTable& stacks_;
  std::atomic<int64_t> live_{0};
  Relaxed<int64_t> next_ = 1;  // bytes at which a copy is due
  SpinLock lock_{LockRank::kProfile};
  SampleBuffer rows_ TCMALLOC_GUARDED_BY(lock_);
  ProfileRow first_rows_[kFirstRows] TCMALLOC_GUARDED_BY(lock_) = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_PEAK_SAMPLES_H_
