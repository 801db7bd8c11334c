// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The machine's settings for hugepages.

#ifndef TCMALLOC_SYSTEM_TRANSPARENT_HUGEPAGES_H_
#define TCMALLOC_SYSTEM_TRANSPARENT_HUGEPAGES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tcmalloc {

// Of x86-64, and of aarch64 with pages of 4 KiB.
inline constexpr int kHugePageShift = 21;
inline constexpr size_t kHugePageSize = size_t{1} << kHugePageShift;

enum class HugepageMode : uint8_t {
  kNever,
  kMadvise,  // where a program asks for them
  kAlways,
};

// The relevant part of /sys/kernel/mm/transparent_hugepage.
struct TransparentHugepages {
  HugepageMode mode = HugepageMode::kNever;
  // True if a program that asks for hugepages may have to wait until memory was moved.
  bool may_stall = false;
  // The most missing pages that the kernel's daemon adds to make a hugepage.
  uint64_t max_ptes_none = 0;
  size_t hugepage_bytes = 0;
};

// Returns kNever if the kernel gives no setting, or if hugepages are off for this process. May
// change errno.
TransparentHugepages ReadTransparentHugepages();

// Returns the chosen word of a line like "always [madvise] never"; empty if there is none.
std::string_view ParseChosenWord(std::string_view line);

const char* HugepageModeName(HugepageMode mode);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_TRANSPARENT_HUGEPAGES_H_
