// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The mappings of the process, and which memory of them can be read.

#ifndef TCMALLOC_LEAK_CHECK_MEMORY_MAP_H_
#define TCMALLOC_LEAK_CHECK_MEMORY_MAP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "profile_format/maps_text.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

struct Range {
  uintptr_t begin = 0;
  uintptr_t end = 0;

  bool empty() const { return begin >= end; }
  size_t bytes() const { return empty() ? 0 : end - begin; }
  bool Contains(uintptr_t address) const { return begin <= address && address < end; }
  Range Within(const Range& other) const {
    return {begin > other.begin ? begin : other.begin, end < other.end ? end : other.end};
  }
};

// A line of /proc/PID/maps.
struct MappedRange {
  Range range;
  bool readable = false;
  bool writable = false;
  bool shared = false;
  bool of_file = false;
  bool of_first_stack = false;
};

std::optional<MappedRange> ParseMappedRange(std::string_view line);

// A copy of the mappings in the order of their addresses, valid while nobody changes them.
class MemoryMap {
 public:
  MemoryMap() = default;
  MemoryMap(const MemoryMap&) = delete;
  MemoryMap& operator=(const MemoryMap&) = delete;
  ~MemoryMap();

  // Reads the mappings of the process from a text. Returns false if there are none, or no memory
  // for them.
  [[nodiscard]] bool Read(const MapsText& text);

  size_t size() const { return count_; }
  const MappedRange& operator[](size_t i) const { return entries_[i]; }
  // Returns the mapping that an address lies in, or null.
  const MappedRange* Find(uintptr_t address) const;

  // Calls f(Range) for the parts of `range` that can be read. Leaves out memory that was never
  // touched, where there is much of it.
  template <typename F>
  void ForEachReadable(const Range& range, F f) const {
    for (size_t i = IndexAt(range.begin); i < count_; ++i) {
      const MappedRange& entry = entries_[i];
      if (entry.range.begin >= range.end) return;
      const Range part = range.Within(entry.range);
      if (!entry.readable || part.empty()) continue;
      if (!NeedsProbing(entry, part)) {
        f(part);
        continue;
      }
      Prober prober(*this, entry);
      for (Range piece{part.begin, part.begin}; prober.Next(part, &piece);) f(piece);
    }
  }

 private:
  static constexpr size_t kMostEntries = size_t{1} << 17;
  static constexpr size_t kPageBytes = 4096;
  // Memory of less is not worth a look at which pages of it are there: a system call takes as long
  // as the faults of a few pages.
  static constexpr size_t kLeastProbedBytes = size_t{1} << 16;

  // Finds the runs of pages that are there: by the kernel's table of pages for memory of the
  // process's own, by asking for each page of a file, which may have become shorter. Pages of a
  // file's private mapping that were never touched have what the file has, which are no pointers of
  // this process. A page of shared memory that no process has touched is left out, because a look
  // at it would make one.
  class Prober {
   public:
    Prober(const MemoryMap& map, const MappedRange& entry);
    Prober(const Prober&) = delete;
    Prober& operator=(const Prober&) = delete;

    // Moves *piece to the next run in `part`. Returns false if there is none.
    bool Next(const Range& part, Range* piece);

   private:
    static constexpr size_t kPagesAtOnce = 512;

    // Looks at the pages from this one up to `end`, if it is not known yet.
    bool IsThere(uintptr_t page, uintptr_t end);
    bool Knows(uintptr_t page) const { return page >= first_ && page < first_ + known_; }
    // Reads flags of at most `wanted` pages from first_ on and returns their number.
    size_t ReadFlags(size_t wanted);
    bool TellsAbsentPages();

    const MappedRange& entry_;
    int table_;                       // of pages; -1 if it is of no use
    std::optional<bool> tells_core_;  // mincore tells which pages there are; once it is known
    uintptr_t first_ = 0;             // the page that flags_ begins with
    size_t known_ = 0;
    uint64_t flags_[kPagesAtOnce];
  };

  static bool NeedsProbing(const MappedRange& entry, const Range& part) {
    return entry.of_file || (!entry.shared && part.bytes() >= kLeastProbedBytes);
  }
  // Returns a descriptor of the kernel's table of pages, or -1. Opens it once.
  int PageTable() const;
  // Returns the index of the first mapping that ends behind `address`.
  size_t IndexAt(uintptr_t address) const;

  Scratch<MappedRange> entries_;
  size_t count_ = 0;
  mutable size_t last_ = 0;  // what IndexAt returned last
  mutable int page_table_ = -1;
  mutable bool opened_page_table_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_MEMORY_MAP_H_
