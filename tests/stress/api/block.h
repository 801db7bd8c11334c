// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_API_BLOCK_H_
#define TCMALLOC_TESTS_STRESS_API_BLOCK_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {

// Which deallocation functions a block may be given to.
enum class Family : std::uint8_t {
  kMalloc,
  kAligned,
  kNew,
  kNewArray,
  kNewAligned,
  kNewArrayAligned,
};

// One live block as the test knows it. `alignment` is what the caller may rely on; `seed` selects
// the pattern that fills it.
struct Block {
  std::byte* address = nullptr;
  std::size_t size = 0;
  std::size_t usable = 0;
  std::size_t alignment = 0;
  std::uint64_t seed = 0;
  Family family = Family::kMalloc;
};

// Writes the pattern of `block` at its start, its end, the end of its usable size and sampled
// places between (everywhere in small blocks).
void Stamp(const Block& block);

// The offset of the first damaged word in the first `length` bytes, or kIntact. A length of
// `block.usable` checks the tail behind the requested size too.
inline constexpr std::size_t kIntact = ~std::size_t{0};
std::size_t FindDamage(const Block& block, std::size_t length);

// The offset of a byte that is not zero, or kIntact. Complete up to 32 KiB, sampled above.
std::size_t FindNonZero(const Block& block);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_API_BLOCK_H_
