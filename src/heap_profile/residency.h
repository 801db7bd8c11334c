// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How much of blocks is in memory, and how much is swapped.

#ifndef TCMALLOC_HEAP_PROFILE_RESIDENCY_H_
#define TCMALLOC_HEAP_PROFILE_RESIDENCY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "heap_profile/sample_buffer.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

struct PageBytes {
  uint64_t resident = 0;
  uint64_t swapped = 0;
};

// Asks the kernel about pages: by /proc/self/pagemap or, where that cannot be read, by mincore,
// which knows nothing of swap. Remembers what it read last, so that a caller should ask in order of
// address. Keeps errno. Not thread safe.
class Residency {
 public:
  explicit Residency(const char* pagemap = "/proc/self/pagemap");
  ~Residency();
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  // Counts the bytes of a range. Of a long one, parts at equal distances are looked at and stand
  // for the rest, so that the time is bounded.
  PageBytes Of(uintptr_t start, uint64_t bytes);

 private:
  // The kernel describes a page by one word.
  static constexpr size_t kWindowPages = 256;
  // Ranges of more are not read as wholes.
  static constexpr uint64_t kMostWindows = 1024;

  PageBytes Count(uintptr_t start, uintptr_t end);
  void Read(uintptr_t first_page);
  void ReadByMincore(uintptr_t first_page);

  const size_t page_bytes_;
  int saved_errno_;
  int fd_;
  uintptr_t window_ = UINTPTR_MAX;  // number of the first page that was read
  uint64_t pages_[kWindowPages] = {};
};

// Counts the bytes of the block of each row. Empty if no memory can be had.
Scratch<PageBytes> PagesOf(std::span<const ProfileRow> rows);

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_RESIDENCY_H_
