// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_API_SHADOW_MAP_H_
#define TCMALLOC_TESTS_STRESS_API_SHADOW_MAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {

// Which bytes of the address space belong to a live block: one bit per 8-byte granule, in one
// sparse reservation, so that it never calls the allocator under test and costs one sixty-fourth
// of the memory that blocks touch. Blocks start at multiples of 8, so no two share a granule.
// All methods may be called by any thread at any time.
class ShadowMap {
 public:
  // Exits with a message where the reservation is refused.
  ShadowMap();

  // Marks [address, address + size) live. False: part of it was live already, or lies outside the
  // user half of the address space.
  bool Claim(const void* address, std::size_t size);

  // The reverse. False: part of it was not live.
  bool Release(const void* address, std::size_t size);

 private:
  using Word = std::atomic<std::uint64_t>;

  template <typename Visit>
  bool ForEachWord(const void* address, std::size_t size, Visit visit);

  Word* words_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_API_SHADOW_MAP_H_
