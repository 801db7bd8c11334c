// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/sample_buffer.h"

#include <algorithm>

#include "system/own_memory.h"

namespace tcmalloc {

// Makes room for more rows. Returns false if no memory can be had.
bool SampleBuffer::Grow() {
  constexpr size_t kFirstRows = 256;
  const size_t capacity = std::max(capacity_ * 2, kFirstRows);
  void* memory = MapZeroed(capacity * sizeof(ProfileRow));
  if (memory == nullptr) return false;
  auto* rows = static_cast<ProfileRow*>(memory);
  std::copy_n(rows_, count_, rows);
  GiveBack();
  rows_ = rows;
  capacity_ = capacity;
  is_lent_ = false;
  return true;
}

// Gives back the memory that this buffer has mapped.
void SampleBuffer::GiveBack() {
  if (rows_ != nullptr && !is_lent_) UnmapZeroed(rows_, capacity_ * sizeof(ProfileRow));
}

void SampleBuffer::Lend(std::span<ProfileRow> rows) {
  if (rows_ != nullptr) return;
  rows_ = rows.data();
  capacity_ = rows.size();
  is_lent_ = true;
}

void SampleBuffer::Append(const ProfileRow& row, StackTable& stacks) {
  if (count_ == capacity_ && !Grow()) return NoteLeftOut(1);
  ProfileRow& added = rows_[count_++];
  added = row;
  if (added.sample.stack != 0 && !stacks.Retain(added.sample.stack)) added.sample.stack = 0;
}

void SampleBuffer::Clear(StackTable& stacks) {
  for (const ProfileRow& row : rows()) {
    if (row.sample.stack != 0) stacks.Release(row.sample.stack);
  }
  count_ = 0;
  left_out_ = 0;
}

void SampleBuffer::Free(StackTable& stacks) {
  Clear(stacks);
  GiveBack();
  *this = SampleBuffer();
}

}  // namespace tcmalloc
