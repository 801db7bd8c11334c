// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/api/size_mix.h"

#include <cstring>

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMiB = 1024 * kKiB;

std::size_t Tiny(Random& random) { return random.Below(65); }
std::size_t Small(Random& random) { return random.Between(1, kKiB); }
std::size_t Medium(Random& random) { return random.Logarithmic(kKiB, 64 * kKiB); }
std::size_t Large(Random& random) { return random.Logarithmic(64 * kKiB, 4 * kMiB); }

// Around a multiple of 4 KiB, where spans, pages and mappings begin and end.
std::size_t PageEdge(Random& random) {
  return random.Between(1, 80) * 4 * kKiB - 32 + random.Below(65);
}

std::size_t Mixed(Random& random) {
  const std::size_t draw = random.Below(1000);
  if (draw < 500) return Tiny(random);
  if (draw < 900) return Small(random);
  if (draw < 985) return Medium(random);
  if (draw < 998) return PageEdge(random);
  return Large(random);
}

constexpr SizeMix kMixes[] = {
    {"tiny", 16384, Tiny}, {"small", 8192, Small},       {"medium", 512, Medium},
    {"large", 48, Large},  {"page-edge", 512, PageEdge}, {"mixed", 4096, Mixed},
};

}  // namespace

std::span<const SizeMix> SizeMixes() { return kMixes; }

const SizeMix* FindSizeMix(const char* name) {
  for (const SizeMix& mix : kMixes) {
    if (std::strcmp(mix.name, name) == 0) return &mix;
  }
  return nullptr;
}

}  // namespace tcmalloc::testing
