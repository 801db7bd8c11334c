// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/peak_samples.h"

namespace tcmalloc {

void PeakSamples::Copy(int64_t live) {
  rows_.Lend(first_rows_);
  rows_.Clear(stacks_);
  const StackTable::Reader reader(stacks_);
  samples_.ForEach([rows = &rows_, &stacks = stacks_](const Sample& sample) {
    rows->Append({.sample = sample}, stacks);
  });
  next_ = live + live / 16 + 1;
}

void PeakSamples::NoteChange(double bytes) {
  const auto change = static_cast<int64_t>(bytes);
  const int64_t live = live_.fetch_add(change, std::memory_order_relaxed) + change;
  // Where another thread copies already, its copy is as good.
  if (live < next_ || !lock_.TryLock()) return;
  Copy(live);
  lock_.Unlock();
}

void PeakSamples::CopyTo(SampleBuffer* out) {
  SpinLockHolder holder(lock_);
  const StackTable::Reader reader(stacks_);
  for (const ProfileRow& row : rows_.rows()) out->Append(row, stacks_);
}

}  // namespace tcmalloc
