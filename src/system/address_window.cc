// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/address_window.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/bits.h"
#include "system/memory.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr uintptr_t kGiB = uintptr_t{1} << 30;
constexpr uintptr_t kHintAlignment = uintptr_t{2} << 20;
constexpr size_t kSmallestTable = size_t{64} << 10;
constexpr size_t kLimitShare = 64;

constinit uint8_t static_table[kSmallestTable];

size_t Limit(int resource) {
  rlimit limit = {};
  const bool known = system_calls.getrlimit(resource, &limit) == 0;
  return known && limit.rlim_cur != RLIM_INFINITY ? static_cast<size_t>(limit.rlim_cur) : SIZE_MAX;
}

uint8_t* MapTable(size_t bytes) {
  void* table = system_calls.mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) return nullptr;
  // One written byte must not make 2 MiB resident.
  system_calls.madvise(table, bytes, MADV_NOHUGEPAGE);
  NameRegion(table, bytes, kMetadataName);
  return static_cast<uint8_t*>(table);
}

}  // namespace

size_t AddressSpaceLimit() { return std::min(Limit(RLIMIT_AS), Limit(RLIMIT_DATA)); }

uintptr_t ChooseHintStart(uintptr_t limit, uint64_t random) {
  const uintptr_t high = AlignDown(limit / 2, kHintAlignment);
  uintptr_t low = std::max(limit / 8, 4 * kGiB);
  if (high > 64 * kGiB) low = std::max(low, 64 * kGiB);
  low = AlignUp(low, kHintAlignment);
  if (low > high) return 0;
  return low + random % ((high - low) / kHintAlignment + 1) * kHintAlignment;
}

AddressWindow ReserveAddressWindow(int page_shift, uint64_t random) {
  const size_t most = std::max(AddressSpaceLimit() / kLimitShare, kSmallestTable);
  AddressWindow window = {.table = static_table};
  size_t bytes = kSmallestTable;
  for (size_t tried = kLargestWindow >> page_shift; tried >= kSmallestTable; tried /= 2) {
    if (tried > most) continue;
    uint8_t* table = MapTable(tried);
    if (table == nullptr) continue;
    window.table = table;
    bytes = tried;
    break;
  }
  window.limit = uintptr_t{bytes} << page_shift;
  window.hint_start = ChooseHintStart(window.limit, random);
  return window;
}

}  // namespace tcmalloc
