// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

#include "fuzz/fuzz_actions.h"
#include "fuzz/fuzz_target.h"

namespace tcmalloc::testing {

size_t AppendActions(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  constexpr size_t kMostAppended = 500;
  std::minstd_rand random(seed);
  if (random() % 4 != 0 || size >= max_size) return MutateBytes(data, size, max_size, seed);
  const size_t longer = std::min(max_size, size + 1 + random() % kMostAppended);
  std::generate(data + size, data + longer, [&] { return static_cast<uint8_t>(random() >> 8); });
  return longer;
}

}  // namespace tcmalloc::testing
