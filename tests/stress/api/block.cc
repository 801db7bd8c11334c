// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/api/block.h"

#include <algorithm>
#include <cstring>

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kFullPatternSize = 128;
constexpr std::size_t kSamples = 8;
constexpr std::size_t kFullZeroCheckSize = 32 * 1024;
constexpr std::size_t kZeroCheckStride = 512;

// The pattern is a byte stream made of one word per 8 bytes of offset, so that a partial last word
// and its neighbours agree.
std::uint64_t PatternWord(std::uint64_t seed, std::size_t offset) {
  return (seed + offset) * 0x9e3779b97f4a7c15u;
}

// Compare and write `length` bytes, a word at most. For a word, as most are, there is no call,
// although programs of tests have no built-in functions.
bool IsSame(const std::byte* bytes, const std::uint64_t& word, std::size_t length) {
  if (length != kWord) return std::memcmp(bytes, &word, length) == 0;
  std::uint64_t found;
  __builtin_memcpy(&found, bytes, kWord);
  return found == word;
}

void Write(std::byte* bytes, const std::uint64_t& word, std::size_t length) {
  if (length != kWord) {
    std::memcpy(bytes, &word, length);
  } else {
    __builtin_memcpy(bytes, &word, kWord);
  }
}

// Calls visit(offset, length) for the words of the pattern: offsets are multiples of the word.
// Stops when visit returns false.
template <typename Visit>
void ForEachSample(const Block& block, Visit visit) {
  const auto word_at = [&](std::size_t offset, std::size_t end) {
    return visit(offset, std::min(kWord, end - offset));
  };
  if (block.size <= kFullPatternSize) {
    for (std::size_t offset = 0; offset < block.size; offset += kWord) {
      if (!word_at(offset, block.size)) return;
    }
  } else {
    const std::size_t step = block.size / kSamples & ~(kWord - 1);
    for (std::size_t i = 0; i < kSamples; ++i) {
      if (!word_at(i * step, block.size)) return;
    }
    if (!word_at((block.size - 1) & ~(kWord - 1), block.size)) return;
  }
  const std::size_t tail = (block.usable - std::min(block.usable, kWord)) & ~(kWord - 1);
  if (tail >= block.size) word_at(tail, block.usable);
}

}  // namespace

void Stamp(const Block& block) {
  ForEachSample(block, [&](std::size_t offset, std::size_t length) {
    Write(block.address + offset, PatternWord(block.seed, offset), length);
    return true;
  });
}

std::size_t FindDamage(const Block& block, std::size_t length) {
  std::size_t damage = kIntact;
  ForEachSample(block, [&](std::size_t offset, std::size_t bytes) {
    if (offset >= length) return true;
    const std::uint64_t word = PatternWord(block.seed, offset);
    if (!IsSame(block.address + offset, word, std::min(bytes, length - offset))) damage = offset;
    return damage == kIntact;
  });
  return damage;
}

std::size_t FindNonZero(const Block& block) {
  const std::size_t stride = block.size <= kFullZeroCheckSize ? kWord : kZeroCheckStride;
  for (std::size_t offset = 0; offset < block.size; offset += stride) {
    const std::size_t bytes = std::min(kWord, block.size - offset);
    if (!IsSame(block.address + offset, 0, bytes)) return offset;
  }
  return kIntact;
}

}  // namespace tcmalloc::testing
