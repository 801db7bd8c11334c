// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The bytes around blocks and in free ones, by which overwriting shows.

#ifndef TCMALLOC_DEBUG_FENCES_H_
#define TCMALLOC_DEBUG_FENCES_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/attributes.h"
#include "debug/block_record.h"

namespace tcmalloc {

// gperftools' fillings. Programs and debuggers know them.
inline constexpr unsigned char kFreshByte = 0xAB;
inline constexpr unsigned char kFreedByte = 0xCD;

// The most bytes of a block that are filled and looked at. Of a larger one these are half at each
// end: what is filled becomes resident, and programs ask for more than they use.
inline constexpr size_t kMostFilled = size_t{64} << 20;

inline constexpr size_t kSealBytes = 2 * sizeof(uint64_t);
// Behind them, at least and at most.
inline constexpr size_t kLeastBackBytes = 16;
inline constexpr size_t kMostFenceBytes = 4096;

// The bytes of a fence, by address. Neighbours differ, so that no filling passes for one.
inline constexpr uint64_t kFencePattern = 0xF2E5'D9C3'B7A6'9481;

// Returns the byte of a fence at `address`.
inline unsigned char FenceByte(const char* address) {
  return static_cast<unsigned char>(kFencePattern >>
                                    (reinterpret_cast<uintptr_t>(address) % 8 * 8));
}

inline uint64_t LoadUnaligned(const char* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Two words, which both architectures compare at once.
using WordPair = uint64_t __attribute__((vector_size(16)));

inline WordPair LoadPair(const char* from) {
  WordPair pair;
  std::memcpy(&pair, from, sizeof(pair));
  return pair;
}

inline void StorePair(char* to, WordPair pair) { std::memcpy(to, &pair, sizeof(pair)); }

// The pattern three times: sixteen bytes from each of the first eight on are those of a fence.
static_assert(std::endian::native == std::endian::little);
inline constexpr uint64_t kFencePatterns[] = {kFencePattern, kFencePattern, kFencePattern};

// Returns sixteen bytes of a fence that begins at `address`.
TCMALLOC_ALWAYS_INLINE WordPair FencePair(const char* address) {
  return LoadPair(reinterpret_cast<const char*>(kFencePatterns) +
                  reinterpret_cast<uintptr_t>(address) % 8);
}

// The last words overlap others where the length is no multiple.
inline void WriteFence(char* begin, char* end) {
  if (TCMALLOC_UNLIKELY(end - begin < 16)) {
    for (; begin < end; ++begin) *begin = static_cast<char>(FenceByte(begin));
    return;
  }
  const WordPair pair = FencePair(begin);
  StorePair(end - 16, FencePair(end));
  for (; end - begin > 16; begin += 16) StorePair(begin, pair);
}

// Returns true if all bytes of [begin, end) are those of a fence.
// `difference` is 0, or another difference that should be none.
TCMALLOC_ALWAYS_INLINE bool IsFence(const char* begin, const char* end,
                                    WordPair difference = WordPair{}) {
  // Behind a block with pages of its own there are a few bytes, or none.
  if (TCMALLOC_UNLIKELY(end - begin < 16)) {
    while (begin < end && static_cast<unsigned char>(*begin) == FenceByte(begin)) ++begin;
    return begin == end && (difference[0] | difference[1]) == 0;
  }
  const WordPair pair = FencePair(begin);
  difference |= LoadPair(end - 16) ^ FencePair(end);
  for (; end - begin > 16; begin += 16) difference |= LoadPair(begin) ^ pair;
  return (difference[0] | difference[1]) == 0;
}

// Returns the first byte in [begin, end) that is no fence, or null.
inline const char* FindFenceDamage(const char* begin, const char* end) {
  if (TCMALLOC_LIKELY(IsFence(begin, end))) return nullptr;
  while (begin < end && static_cast<unsigned char>(*begin) == FenceByte(begin)) ++begin;
  // Another thread may have made the fence whole meanwhile.
  return begin < end ? begin : nullptr;
}

// Fills `size` bytes. Of few, the last words overlap others; a call of libc would take longer.
template <unsigned char kByte>
TCMALLOC_ALWAYS_INLINE void FillWith(char* begin, size_t size) {
  constexpr size_t kFew = 64;
  if (TCMALLOC_UNLIKELY(size < 16 || size > kFew)) {
    std::memset(begin, kByte, size);
    return;
  }
  constexpr uint64_t kWord = uint64_t{kByte} * 0x0101'0101'0101'0101;
  constexpr WordPair kPair = {kWord, kWord};
  char* end = begin + size;
  StorePair(begin, kPair);
  if (size > 32) {
    StorePair(begin + 16, kPair);
    StorePair(end - 32, kPair);
  }
  StorePair(end - 16, kPair);
}

// Fills a block of any size.
template <unsigned char kByte>
inline void FillBlock(const BlockRecord& block) {
  if (TCMALLOC_LIKELY(block.size <= kMostFilled)) {
    std::memset(block.user, kByte, block.size);
    return;
  }
  std::memset(block.user, kByte, kMostFilled / 2);
  std::memset(block.end() - kMostFilled / 2, kByte, kMostFilled / 2);
}

// Returns true if all bytes of [begin, end) are kFreedByte. The last words overlap others where the
// length is no multiple.
TCMALLOC_ALWAYS_INLINE bool IsAllFreed(const char* begin, const char* end) {
  constexpr uint64_t kWord = uint64_t{kFreedByte} * 0x0101'0101'0101'0101;
  if (TCMALLOC_UNLIKELY(end - begin < 16)) {
    if (end - begin >= 8) return LoadUnaligned(begin) == kWord && LoadUnaligned(end - 8) == kWord;
    while (begin < end && static_cast<unsigned char>(*begin) == kFreedByte) ++begin;
    return begin == end;
  }
  constexpr WordPair kPair = {kWord, kWord};
  // libc compares in the widest vectors that the processor has.
  constexpr ptrdiff_t kLong = 2048;
  if (end - begin >= kLong &&
      std::memcmp(begin, begin + 64, static_cast<size_t>(end - begin) - 64) == 0) {
    end = begin + 64;
  }
  WordPair difference = LoadPair(end - 16) ^ kPair;
  for (; end - begin >= 64; begin += 64) {
    difference |= (LoadPair(begin) ^ kPair) | (LoadPair(begin + 16) ^ kPair) |
                  (LoadPair(begin + 32) ^ kPair) | (LoadPair(begin + 48) ^ kPair);
  }
  for (; end - begin > 16; begin += 16) difference |= LoadPair(begin) ^ kPair;
  return (difference[0] | difference[1]) == 0;
}

// Returns the first byte in [begin, end) that is not kFreedByte, or null.
inline const char* FindOverwritten(const char* begin, const char* end) {
  if (TCMALLOC_LIKELY(IsAllFreed(begin, end))) return nullptr;
  return std::find_if(begin, end,
                      [](char c) { return static_cast<unsigned char>(c) != kFreedByte; });
}

// Returns the end of the filled bytes that begin at `byte` or before.
inline const char* FilledUntil(const BlockRecord& block, const char* byte) {
  const bool has_gap = block.size > kMostFilled && byte < block.user + kMostFilled / 2;
  return has_gap ? block.user + kMostFilled / 2 : block.end();
}

// Returns the first byte that was written of a freed block of any size, or null.
inline const char* FindOverwritten(const BlockRecord& block) {
  const char* found = FindOverwritten(block.user, FilledUntil(block, block.user));
  if (TCMALLOC_LIKELY(found != nullptr || block.size <= kMostFilled)) return found;
  return FindOverwritten(block.end() - kMostFilled / 2, block.end());
}

// The size of a block, and a word that depends on its address, its size and the place of its
// record, right before the block. By the second word, the record of a whole block is found without
// a search.
struct Seal {
  uint64_t size;
  uint64_t mark;

  static Seal Of(const BlockRecord& block) {
    const size_t size = block.size;
    return {size, kMark ^ Mixed(block.user, size) ^ reinterpret_cast<uintptr_t>(&block)};
  }
  static Seal Read(const void* user) {
    Seal seal;
    std::memcpy(&seal, static_cast<const char*>(user) - kSealBytes, sizeof(seal));
    return seal;
  }
  // Returns the address of the record of the block at `user`, if the seal is whole. It may be any
  // address otherwise.
  BlockRecord* ClaimedRecord(const void* user) const {
    return reinterpret_cast<BlockRecord*>(kMark ^ Mixed(user, size) ^ mark);
  }

 private:
  static constexpr uint64_t kMark = 0xDEADBEEF'5EA1'ED00;

  static uint64_t Mixed(const void* user, uint64_t size) {
    return reinterpret_cast<uintptr_t>(user) ^ (size << 32);
  }
};
static_assert(sizeof(Seal) == kSealBytes);

// The fences of a block; the front one ends at its seal.
inline char* FrontFence(const BlockRecord& block) {
  return std::max(block.base(), block.user - kSealBytes - kMostFenceBytes);
}
TCMALLOC_ALWAYS_INLINE char* BackFenceEnd(const BlockRecord& block, char* user, size_t size) {
  const size_t front = TCMALLOC_LIKELY(block.plain_front) ? kFrontBytes : block.front;
  return user + std::min(block.total - front, size + kMostFenceBytes);
}
inline char* BackFenceEnd(const BlockRecord& block) {
  return BackFenceEnd(block, block.user, block.size);
}

// Writes what depends on the size of a block: its seal, and the fence behind it.
TCMALLOC_ALWAYS_INLINE void WriteSizedFences(const BlockRecord& block) {
  char* user = block.user;
  const Seal seal = Seal::Of(block);
  std::memcpy(user - kSealBytes, &seal, sizeof(seal));
  WriteFence(user + seal.size, BackFenceEnd(block, user, seal.size));
}
inline void WriteFences(const BlockRecord& block) {
  WriteFence(FrontFence(block), block.user - kSealBytes);
  WriteSizedFences(block);
}

// Returns true if the fences of a block are whole. What is before nearly all blocks is four words.
TCMALLOC_ALWAYS_INLINE bool AreFencesWhole(const BlockRecord& block) {
  static_assert(kFrontBytes == 16 + kSealBytes);
  char* user = block.user;
  const Seal seal = Seal::Of(block);
  WordPair difference = LoadPair(user - kSealBytes) ^ WordPair { seal.size, seal.mark };
  if (TCMALLOC_LIKELY(block.plain_front)) {
    difference |= LoadPair(user - kFrontBytes) ^ WordPair { kFencePattern, kFencePattern };
  } else if (!IsFence(FrontFence(block), user - kSealBytes)) {
    return false;
  }
  return IsFence(user + seal.size, BackFenceEnd(block, user, seal.size), difference);
}

// Return the first byte before or behind the block's own that was written, or null.
inline const char* FindDamageBefore(const BlockRecord& block) {
  const Seal seal = Seal::Of(block);
  const char* found = block.user - kSealBytes;
  if (TCMALLOC_UNLIKELY(std::memcmp(found, &seal, kSealBytes) != 0)) {
    return std::mismatch(found, found + kSealBytes, reinterpret_cast<const char*>(&seal)).first;
  }
  return FindFenceDamage(FrontFence(block), found);
}
inline const char* FindDamageAfter(const BlockRecord& block) {
  return FindFenceDamage(block.end(), BackFenceEnd(block));
}

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_FENCES_H_
