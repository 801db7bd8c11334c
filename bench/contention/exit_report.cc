// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Appends what was counted, as one line of JSON, to the file that CONTENTION_REPORT names, when the
// process exits.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/lock_rank.h"
#include "base/spin_lock.h"
#include "counts.h"

// Where the library begins in memory, as the linker knows it.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;

namespace tcmalloc::bench {
namespace {

// In the order of LockRank.
constexpr const char* kRankNames[] = {
    "initialization", "limits",       "peak",         "thread caches",  "cache budget",
    "full chains",    "CPU slab",     "size classes", "transfer cache", "central list",
    "free bits",      "span zones",   "samples",      "chain arrays",   "profile",
    "block table",    "debug blocks", "debug queue",  "page heap",      "metadata",
    "system"};
static_assert(std::size(kRankNames) == kLockRankCount);

void PrintLocks(FILE* file) {
  for (size_t rank = 0; rank < kLockRankCount; ++rank) {
    const LockCounts locks = CurrentLockCounts(static_cast<LockRank>(rank));
    std::fprintf(file, "%s\"%s\":[%llu,%llu]", rank == 0 ? "" : ",", kRankNames[rank],
                 static_cast<unsigned long long>(locks.acquisitions),
                 static_cast<unsigned long long>(locks.contentions));
  }
}

void PrintPlaces(FILE* file) {
  const char* separator = "";
  counts.places.ForEach([&](const void* address, uint64_t count) {
    std::fprintf(file, "%s\"%#tx\":%llu", separator,
                 static_cast<const char*>(address) - &__ehdr_start,
                 static_cast<unsigned long long>(count));
    separator = ",";
  });
}

__attribute__((destructor)) void PrintReport() {
  const char* path = std::getenv("CONTENTION_REPORT");
  FILE* file = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return;
  const auto value = [](const std::atomic<uint64_t>& count) {
    return static_cast<unsigned long long>(count.load(std::memory_order_relaxed));
  };
  std::fprintf(file, "{\"shared_by_threads\":%llu,\"shared_by_cpus\":%llu,\"displaced\":%llu",
               value(counts.shared_by_threads), value(counts.shared_by_cpus),
               value(counts.displaced));
  std::fprintf(file, ",\"locks\":{");
  PrintLocks(file);
  std::fprintf(file, "},\"places\":{");
  PrintPlaces(file);
  std::fprintf(file, "}}\n");
  std::fclose(file);
}

}  // namespace
}  // namespace tcmalloc::bench
