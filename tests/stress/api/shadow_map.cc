// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/api/shadow_map.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace tcmalloc::testing {
namespace {

constexpr unsigned kAddressBits = 48;
constexpr unsigned kGranuleShift = 3;
constexpr unsigned kWordShift = 6;
constexpr std::uint64_t kWholeWord = ~std::uint64_t{0};
constexpr std::size_t kReservation = std::size_t{1} << (kAddressBits - kGranuleShift - 3);

// Bits [first, last] of a word, both within 0..63.
std::uint64_t BitRange(std::uint64_t first, std::uint64_t last) {
  return (~std::uint64_t{0} << first) & (~std::uint64_t{0} >> (63 - last));
}

}  // namespace

ShadowMap::ShadowMap() {
  void* memory = mmap(nullptr, kReservation, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("shadow map: cannot reserve address space");
    std::exit(2);
  }
  words_ = static_cast<Word*>(memory);
}

template <typename Visit>
bool ShadowMap::ForEachWord(const void* address, std::size_t size, Visit visit) {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = start + (size == 0 ? 1 : size);
  if (end < start || (end - 1) >> kAddressBits != 0) return false;
  const std::uint64_t first = start >> kGranuleShift;
  const std::uint64_t last = (end - 1) >> kGranuleShift;
  const std::uint64_t last_word = last >> kWordShift;
  bool ok = true;
  for (std::uint64_t word = first >> kWordShift; word <= last_word; ++word) {
    const std::uint64_t low = word == first >> kWordShift ? first & 63 : 0;
    const std::uint64_t high = word == last_word ? last & 63 : 63;
    ok &= visit(words_[word], BitRange(low, high));
  }
  return ok;
}

// Relaxed order is enough: the blocks themselves are handed over by the allocator or by a mailbox,
// and either orders the bits of one block's life; a lost order could only hide an overlap. So could
// a store to a word that is one block's alone, but of two owners the second to release it finds no
// bits.
bool ShadowMap::Claim(const void* address, std::size_t size) {
  return ForEachWord(address, size, [](Word& word, std::uint64_t bits) {
    if (bits != kWholeWord) {
      return (word.fetch_or(bits, std::memory_order_relaxed) & bits) == 0;
    }
    const bool is_free = word.load(std::memory_order_relaxed) == 0;
    word.store(kWholeWord, std::memory_order_relaxed);
    return is_free;
  });
}

bool ShadowMap::Release(const void* address, std::size_t size) {
  return ForEachWord(address, size, [](Word& word, std::uint64_t bits) {
    if (bits != kWholeWord) {
      return (word.fetch_and(~bits, std::memory_order_relaxed) & bits) == bits;
    }
    const bool is_live = word.load(std::memory_order_relaxed) == kWholeWord;
    word.store(0, std::memory_order_relaxed);
    return is_live;
  });
}

}  // namespace tcmalloc::testing
