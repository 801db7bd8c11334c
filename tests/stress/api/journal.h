// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_API_JOURNAL_H_
#define TCMALLOC_TESTS_STRESS_API_JOURNAL_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {

// One operation on one block.
struct JournalEntry {
  std::uint64_t operation;  // number within its thread, from 1
  const void* address;
  std::size_t size;
  const char* name;
};

// The last operations of one thread, in memory that does not come from the allocator under test.
// Written by its thread only; read by the thread that reports a failure, which tolerates that the
// newest entry may be half written.
class Journal {
 public:
  Journal();
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void Add(const JournalEntry& entry);

  // Prints to stderr, oldest first, at most `limit` of the entries that touch the address range.
  void PrintHistory(unsigned thread, const void* address, std::size_t size,
                    std::size_t limit) const;

 private:
  static constexpr std::size_t kCapacity = std::size_t{1} << 16;

  const JournalEntry& EntryBack(std::size_t age) const;
  static bool Touches(const JournalEntry& entry, const void* address, std::size_t size);

  JournalEntry* entries_;
  std::size_t count_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_API_JOURNAL_H_
