// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/api/journal.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace tcmalloc::testing {

Journal::Journal() {
  void* memory = mmap(nullptr, kCapacity * sizeof(JournalEntry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("journal");
    std::exit(2);
  }
  entries_ = static_cast<JournalEntry*>(memory);
}

Journal::~Journal() { munmap(entries_, kCapacity * sizeof(JournalEntry)); }

void Journal::Add(const JournalEntry& entry) { entries_[count_++ % kCapacity] = entry; }

const JournalEntry& Journal::EntryBack(std::size_t age) const {
  return entries_[(count_ - 1 - age) % kCapacity];
}

bool Journal::Touches(const JournalEntry& entry, const void* address, std::size_t size) {
  const auto entry_start = reinterpret_cast<std::uintptr_t>(entry.address);
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  return entry_start < start + std::max<std::size_t>(size, 1) &&
         start < entry_start + std::max<std::size_t>(entry.size, 1);
}

void Journal::PrintHistory(unsigned thread, const void* address, std::size_t size,
                           std::size_t limit) const {
  const std::size_t held = std::min(count_, kCapacity);
  std::size_t oldest = 0;
  std::size_t found = 0;
  while (oldest < held && found < limit) {
    if (Touches(EntryBack(oldest++), address, size)) ++found;
  }
  while (oldest > 0) {
    const JournalEntry& entry = EntryBack(--oldest);
    if (!Touches(entry, address, size)) continue;
    std::fprintf(stderr, "  thread %u op %llu: %s %p, %zu bytes\n", thread,
                 static_cast<unsigned long long>(entry.operation), entry.name, entry.address,
                 entry.size);
  }
}

}  // namespace tcmalloc::testing
