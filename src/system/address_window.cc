// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/address_window.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "base/bits.h"
#include "base/random.h"
#include "system/region_name.h"
#include "system/resource_limit.h"
#include "system/system_calls.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {
namespace {

constexpr uintptr_t kGiB = uintptr_t{1} << 30;
constexpr uintptr_t kTiB = uintptr_t{1} << 40;
// The largest page of any kernel, so that every chosen address is a whole page.
constexpr uintptr_t kPlaceAlignment = uintptr_t{64} << 10;
// No heap begins so close behind a multiple of 4 GiB. Two small numbers side by side, such as a
// size and a count, would look like the address of one of its first blocks to whoever takes any
// word for a pointer: the leak checker and conservative garbage collectors.
constexpr uintptr_t kSmallNumbers = uintptr_t{16} << 20;
constexpr size_t kSmallestTable = size_t{64} << 10;
constexpr size_t kLimitShare = 64;

constinit uint8_t static_table[kSmallestTable];

// Parts of the address space in which the kernel places nothing by itself: programs, libraries and
// stacks lie higher, at two thirds of it and at its end. The first part is above any window; the
// second is for processors whose addresses end below the first.
struct Places {
  uintptr_t begin;
  uintptr_t bytes;
};
constexpr Places kPlacesForTable[] = {{64 * kTiB, 16 * kTiB}, {128 * kGiB, 128 * kGiB}};
constexpr Places kPlacesForLoneTable[] = {{32 * kTiB, 4 * kTiB}, {256 * kGiB, 64 * kGiB}};

size_t MostTableBytes() { return std::max(AddressSpaceLimit() / kLimitShare, kSmallestTable); }

// Maps the bytes of a table at `address`, or anywhere if that is 0. Returns null if they cannot be
// had there, with EEXIST in errno if something is there already.
uint8_t* MapTable(uintptr_t address, size_t bytes) {
  void* table = system_calls.mmap(
      reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address != 0 ? MAP_FIXED_NOREPLACE : 0), -1,
      0);
  if (table == MAP_FAILED) return nullptr;
  // Kernels before 4.17 do not know the flag and map elsewhere.
  if (address != 0 && reinterpret_cast<uintptr_t>(table) != address) {
    system_calls.munmap(table, bytes);
    errno = EEXIST;
    return nullptr;
  }
  // One written byte must not make 2 MiB resident.
  system_calls.madvise(table, bytes, MADV_NOHUGEPAGE);
  NameRegion(table, bytes, kMetadataName);
  return static_cast<uint8_t*>(table);
}

uint8_t* MapFirstTable(size_t bytes, uint64_t random) {
  for (const Places& places : kPlacesForTable) {
    const uintptr_t place =
        places.begin + random % (places.bytes / kPlaceAlignment) * kPlaceAlignment;
    if (uint8_t* table = MapTable(place, bytes)) return table;
  }
  return MapTable(0, bytes);
}

}  // namespace

size_t AddressSpaceLimit() {
  return std::min(ResourceLimit(RLIMIT_AS), ResourceLimit(RLIMIT_DATA));
}

void* MapLoneTable(size_t bytes, size_t room, uint64_t random) {
  for (const Places& places : kPlacesForLoneTable) {
    const uintptr_t place =
        places.begin + random % ((places.bytes - room) / kPlaceAlignment) * kPlaceAlignment;
    if (void* table = MapTable(place, bytes)) return table;
  }
  return nullptr;
}

bool MapPartOfLoneTable(void* part, size_t bytes) {
  errno = 0;
  return MapTable(reinterpret_cast<uintptr_t>(part), bytes) != nullptr || errno == EEXIST;
}

uintptr_t ChooseHintStart(uintptr_t limit, uint64_t random) {
  // A heap of whole hugepages begins up to one behind the place.
  constexpr uintptr_t kShunned = kHugePageSize + kSmallNumbers;
  const uintptr_t low = std::max(4 * kGiB, AlignUp(limit / 8, kPlaceAlignment));
  const uintptr_t high = AlignDown(limit - limit / 8 - kShunned, kPlaceAlignment);
  if (high < low) return 0;
  const uintptr_t place = low + random % ((high - low) / kPlaceAlignment + 1) * kPlaceAlignment;
  return (place + kHugePageSize) % (4 * kGiB) < kShunned ? place + kShunned : place;
}

AddressWindow ReserveAddressWindow(int page_shift, size_t table_bytes, uint64_t random) {
  const size_t most = MostTableBytes();
  AddressWindow window = {.table = static_table, .page_shift = page_shift};
  size_t bytes = kSmallestTable;
  const size_t first = std::min(table_bytes, kLargestWindow >> page_shift);
  for (size_t tried = first; tried >= kSmallestTable; tried /= 2) {
    if (tried > most) continue;
    uint8_t* table = MapFirstTable(tried, NextRandom(random));
    if (table == nullptr) continue;
    window.table = table;
    bytes = tried;
    break;
  }
  window.limit = uintptr_t{bytes} << page_shift;
  window.hint_start = ChooseHintStart(window.limit, random);
  return window;
}

bool ExtendAddressWindow(AddressWindow* window, uintptr_t end) {
  if (end > kLargestWindow || window->table == static_table) return false;
  const size_t bytes = window->limit >> window->page_shift;
  const size_t needed = AlignUp(((end - 1) >> window->page_shift) + 1, kPlaceAlignment);
  const size_t most = std::min(MostTableBytes(), kLargestWindow >> window->page_shift);
  if (needed > most) return false;
  const size_t extended = std::clamp(2 * bytes, needed, most);
  const uintptr_t behind = reinterpret_cast<uintptr_t>(window->table) + bytes;
  if (MapTable(behind, extended - bytes) == nullptr) return false;
  window->limit = uintptr_t{extended} << window->page_shift;
  return true;
}

}  // namespace tcmalloc
