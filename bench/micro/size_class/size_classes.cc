// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "size_class/size_classes.h"

#include <array>
#include <cstdint>
#include <random>

#include "common/harness.h"

namespace tcmalloc::bench {
namespace {

constexpr size_t kSizes = 4096;  // a power of two

std::array<size_t, kSizes> RandomSizes(size_t most) {
  std::mt19937_64 random(1);
  std::array<size_t, kSizes> sizes;
  for (size_t& size : sizes) size = random() % most + 1;
  return sizes;
}

void RunLookups(Harness& harness) {
  const auto small = RandomSizes(1024);
  const auto all = RandomSizes(kMaxSmallSize);
  harness.Run("size_class/by_size/most:1024", [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) Use(SizeClassFor(small[i % kSizes]));
  });
  harness.Run("size_class/by_size/most:262144", [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) Use(SizeClassFor(all[i % kSizes]));
  });
  harness.Run("size_class/by_size_and_alignment", [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) Use(SizeClassForAligned(small[i % kSizes], 64));
  });
  harness.Run("size_class/object_index", [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      Use(ObjectIndex(small[i % kSizes], static_cast<uint8_t>(1 + i % (kSizeClassCount - 1))));
    }
  });
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) {
  tcmalloc::bench::Harness harness(argc, argv);
  tcmalloc::bench::RunLookups(harness);
}
