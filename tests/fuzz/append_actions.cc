// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Mutations for the targets that take actions. libFuzzer's own keep an input short until shorter
// ones show nothing new, but a component fills up and drains only in long runs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  constexpr size_t kMostAppended = 500;
  std::minstd_rand random(seed);
  if (random() % 4 != 0 || size >= max_size) return LLVMFuzzerMutate(data, size, max_size);
  const size_t longer = std::min(max_size, size + 1 + random() % kMostAppended);
  std::generate(data + size, data + longer, [&] { return static_cast<uint8_t>(random() >> 8); });
  return longer;
}
