// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Copies of samples, with their stacks.

#ifndef TCMALLOC_HEAP_PROFILE_SAMPLE_BUFFER_H_
#define TCMALLOC_HEAP_PROFILE_SAMPLE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "heap_profile/sample_table.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// A sample in a profile.
struct ProfileRow {
  Sample sample;
  int64_t end_ns = 0;     // when its block was freed, or 0
  bool censored = false;  // if its block was allocated before the profile began, or freed after it
  double pinned = 0;      // bytes that are free, and that fall to its block: see fragmentation.h
};

// An array of rows in memory of its own that holds a reference to each row's stack. Trivially
// destructible: whoever is done with the rows calls Free. Not thread safe.
class SampleBuffer {
 public:
  constexpr SampleBuffer() = default;

  // Adds a row. Requires a StackTable::Reader that had begun when the sample was read. Leaves the
  // row out and counts it if no memory can be had.
  void Append(const ProfileRow& row, StackTable& stacks);
  // Counts rows that could not be added.
  void NoteLeftOut(uint64_t rows) { left_out_ += rows; }

  std::span<const ProfileRow> rows() const { return {rows_, count_}; }
  std::span<ProfileRow> mutable_rows() { return {rows_, count_}; }
  uint64_t left_out() const { return left_out_; }

  // Lends rows to a buffer that has no memory. They are the first that it uses, and stay the
  // caller's.
  void Lend(std::span<ProfileRow> rows);

  // Releases the stacks and forgets the rows, but keeps the memory.
  void Clear(StackTable& stacks);
  // Gives the memory back as well.
  void Free(StackTable& stacks);

 private:
  bool Grow();
  void GiveBack();

  ProfileRow* rows_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
  uint64_t left_out_ = 0;
  bool is_lent_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_SAMPLE_BUFFER_H_
