// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Bytes that show writes where none should be.

#ifndef TCMALLOC_HARDENED_CANARY_H_
#define TCMALLOC_HARDENED_CANARY_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/attributes.h"
#include "system/word_pair.h"

namespace tcmalloc {

// Fills freed blocks: read as a pointer, it is no address. Other allocators' debuggers use it, too.
inline constexpr unsigned char kFreedFill = 0xCD;
// Begins a block that the program has not written yet, with the debug libraries' byte.
inline constexpr unsigned char kFreshFill = 0xAB;
inline constexpr size_t kFreshBytes = 16;
// A freed block of more bytes is filled at both ends only. Half of it is the program's at least,
// unless it asked for an alignment.
inline constexpr size_t kMostFilled = 528;
inline constexpr size_t kHeadFill = 256;
inline constexpr size_t kTailFill = 64;

constexpr uint64_t RepeatByte(unsigned char byte) { return uint64_t{byte} * 0x0101'0101'0101'0101; }
constexpr uint64_t FreedWord(bool zeroes) { return zeroes ? 0 : RepeatByte(kFreedFill); }

// The last byte of a block, as part of its last word.
inline constexpr uint64_t kLastByte = uint64_t{0xff} << 56;

// Read from byte n on, selects all bytes of a pair but the last n.
struct AllButLast {
  consteval AllButLast() {
    for (size_t i = 0; i < sizeof(WordPair); ++i) bytes[i] = '\xff';
  }
  char bytes[2 * sizeof(WordPair)] = {};
};
inline constexpr AllButLast kAllButLast;

// A secret of the process. Its byte at an address depends on the address modulo 8, and is odd, so
// that a string's end, and every other even byte, does not pass for it. An odd one does once in 128
// processes.
class Canary {
 public:
  // The most bytes behind a block that are looked at, besides the last eight of its memory.
  static constexpr size_t kMostBytes = 32;

  constexpr Canary() = default;
  explicit Canary(uint64_t secret) : word_(secret | 0x0101'0101'0101'0101) {
    pair_ = WordPair{word_, word_};
    for (size_t i = 0; i < sizeof(WordPair); ++i) {
      const WordPair before = LoadPair(kAllButLast.bytes + sizeof(WordPair) - i);
      fresh_ends_[i] = (kFreshPair & before) | (pair_ & ~before);
    }
  }

  uint64_t word() const { return word_; }

  unsigned char ByteAt(const char* address) const {
    return static_cast<unsigned char>(word_ >> reinterpret_cast<uintptr_t>(address) % 8 * 8);
  }

  // Writes and checks the bytes behind a block of `size` bytes in `capacity`, which is a multiple
  // of 16 and more than `size`. The check returns the first byte that was written, or null.
  void Write(char* block, size_t size, size_t capacity) const {
    const size_t slack = capacity - size;
    char* last = block + capacity - 8;
    uint64_t word = word_;
    if (slack < 8) word = Load(last) ^ ((Load(last) ^ word_) & OfLast(slack));
    std::memcpy(last, &word, sizeof(word));
    if (slack <= 8) return;
    char* begin = block + size;
    word = WordAt(begin);
    const char* end = begin + std::min(slack - 7, kMostBytes);
    for (; begin < end; begin += 8) std::memcpy(begin, &word, sizeof(word));
  }
  TCMALLOC_ALWAYS_INLINE const char* Check(const char* block, size_t size, size_t capacity) const {
    if (capacity == kTinyBytes) return CheckTiny(block, size);
    const bool is_intact = IsIntactLong(block, size, capacity);
    return TCMALLOC_LIKELY(is_intact) ? nullptr : FindDamage(block, size, capacity);
  }
  // Works as Check for a capacity of more than 16, without telling the place.
  TCMALLOC_ALWAYS_INLINE bool IsIntactLong(const char* block, size_t size, size_t capacity) const {
    const size_t slack = capacity - size;
    const char* last = block + capacity - 8;
    uint64_t damage = (Load(last) ^ word_) & OfLast(std::min<size_t>(slack, 8));
    if (slack > 8) {
      const char* begin = block + size;
      const uint64_t word = WordAt(begin);
      const char* end = begin + std::min(slack - 7, kMostBytes);
      for (; begin < end; begin += 8) damage |= Load(begin) ^ word;
    }
    return damage == 0;
  }

  // Works as Write for a block without contents, and begins it with kFreshFill. Requires `size` of
  // at least 16, or a capacity of 16.
  TCMALLOC_ALWAYS_INLINE void WriteFresh(char* block, size_t size, size_t capacity) const {
    constexpr uint64_t kFresh = uint64_t{kFreshFill} * 0x0101'0101'0101'0101;
    if (capacity == kTinyBytes) {
      // The word in which the canary begins. Neighbours look at the last byte at any time, so each
      // word is written once.
      const uint64_t mask = OfTiny(size);
      const uint64_t edge = (kFresh & ~mask) | (word_ & mask);
      Store(block, size < 8 ? edge : kFresh);
      return Store(block + 8, size < 8 ? word_ : edge);
    }
    Store(block, kFresh);
    Store(block + 8, kFresh);
    Store(block + capacity - 8, word_);
    const size_t slack = capacity - size;
    if (slack <= 8) return;
    char* begin = block + size;
    const uint64_t word = WordAt(begin);
    const char* end = begin + std::min(slack - 7, kMostBytes);
    do {
      Store(begin, word);
      begin += 8;
    } while (begin < end);
  }

  // Check and write the canary of a slack of 1 to kShortSlack bytes, given the last pair of a block
  // whose address is a multiple of 16. The first returns true if all of it is there. The second
  // fills the bytes before it with kFreshFill.
  static constexpr size_t kShortSlack = sizeof(WordPair);
  TCMALLOC_ALWAYS_INLINE bool IsIntactShort(const char* last, size_t slack) const {
    return AreAllSet(EqualBytes(pair_, LoadAlignedPair(last)) |
                     LoadPair(kAllButLast.bytes + slack));
  }
  TCMALLOC_ALWAYS_INLINE void WriteFreshEnd(char* last, size_t size) const {
    StoreAlignedPair(last, fresh_ends_[size % sizeof(WordPair)]);
  }
  // Does this, and begins the block with kFreshFill.
  TCMALLOC_ALWAYS_INLINE void WriteFreshShort(char* block, size_t size, size_t capacity) const {
    constexpr uint64_t kFresh = RepeatByte(kFreshFill);
    Store(block, kFresh);
    // Neighbours look at the last byte at any time, so it is written once.
    Store(block + (capacity == kTinyBytes ? 0 : 8), kFresh);
    WriteFreshEnd(block + capacity - sizeof(WordPair), size);
  }
  // Does it, or what WriteFresh does for a longer slack.
  TCMALLOC_ALWAYS_INLINE void WriteFreshOfAny(char* block, size_t size, size_t capacity) const {
    if (TCMALLOC_LIKELY(capacity - size <= kShortSlack)) {
      WriteFreshShort(block, size, capacity);
    } else {
      WriteFresh(block, size, capacity);
    }
  }
  // Writes the last byte of a block, whose address is a multiple of 16 as its capacity is.
  void WriteLast(char* block, size_t capacity) const {
    block[capacity - 1] = static_cast<char>(word_ >> 56);
  }
  // Returns true if the canary before a block whose address is a multiple of 16 is there.
  bool IsIntactBefore(const char* block) const {
    return static_cast<unsigned char>(block[-1]) == word_ >> 56;
  }
  bool IsIntact(const char* address) const {
    return static_cast<unsigned char>(*address) == ByteAt(address);
  }

 private:
  static constexpr size_t kTinyBytes = 16;
  static constexpr WordPair kFreshPair = {RepeatByte(kFreshFill), RepeatByte(kFreshFill)};

  TCMALLOC_ALWAYS_INLINE const char* CheckTiny(const char* block, size_t size) const {
    const uint64_t first = Load(block) ^ word_;
    const uint64_t second = Load(block + 8) ^ word_;
    const uint64_t mask = OfTiny(size);
    const uint64_t damage = size < 8 ? (first & mask) | second : second & mask;
    return TCMALLOC_LIKELY(damage == 0) ? nullptr : FindDamage(block, size, kTinyBytes);
  }
  // Selects the bytes of the canary in the word in which it begins.
  static uint64_t OfTiny(size_t size) { return ~uint64_t{0} << size % 8 * 8; }

  static void Store(char* to, uint64_t word) { std::memcpy(to, &word, sizeof(word)); }
  static uint64_t Load(const char* from) {
    uint64_t word;
    std::memcpy(&word, from, sizeof(word));
    return word;
  }
  // Selects the last `bytes` bytes, 1 to 8, of a word.
  static uint64_t OfLast(size_t bytes) { return ~uint64_t{0} << (8 - bytes) * 8; }

  TCMALLOC_COLD const char* FindDamage(const char* block, size_t size, size_t capacity) const {
    const char* end = block + capacity;
    const char* near_end = std::min(block + size + kMostBytes, end);
    const char* found = block + size;
    while (found < near_end && IsIntact(found)) ++found;
    if (found < near_end) return found;
    found = std::max(found, end - 8);
    while (found < end && IsIntact(found)) ++found;
    return found;
  }

  // The eight bytes from any address on.
  uint64_t WordAt(const char* address) const {
    static_assert(std::endian::native == std::endian::little);
    return std::rotr(word_, static_cast<int>(reinterpret_cast<uintptr_t>(address) % 8 * 8));
  }

  uint64_t word_ = 0;
  WordPair pair_ = {};
  // The last pairs of blocks without contents, by the bytes before the canary.
  WordPair fresh_ends_[sizeof(WordPair)] = {};
};

// The contents of a freed block of at most kMostFilled bytes.
struct Filling {
  WordPair pair = {};
  WordPair last = {};  // its last 16 bytes, with the canary before the next block
};

// The bytes of a block of at most kMostFilled, a multiple of 16, as pairs that cover it. Up to
// kMostInFour bytes have four pairs, some of them the same, so that these blocks take the same
// instructions. Longer ones have four pairs at a time.
inline constexpr size_t kMostInFour = 4 * sizeof(WordPair);
struct BlockPairs {
  constexpr BlockPairs() = default;
  BlockPairs(size_t block_bytes, const Filling& filling) {
    constexpr size_t kPair = sizeof(WordPair);
    const bool is_one = block_bytes == kPair;
    first = is_one ? filling.last : filling.pair;
    second = block_bytes > 2 * kPair ? kPair : 0;
    third = block_bytes > 3 * kPair ? 2 * kPair : 0;
    bytes = static_cast<uint16_t>(block_bytes);
    word = is_one ? 0 : sizeof(uint64_t);
  }

  TCMALLOC_ALWAYS_INLINE char* LastOf(char* block) const {
    return block + bytes - sizeof(WordPair);
  }
  TCMALLOC_ALWAYS_INLINE const char* LastOf(const char* block) const {
    return block + bytes - sizeof(WordPair);
  }

  // Where pairs begin.
  uint8_t second = 0;
  uint8_t third = 0;
  uint16_t bytes = 0;   // of the block
  uint8_t word = 0;     // where the last word of the first 16 bytes begins that is not of `last`
  WordPair first = {};  // all but the last one, when the block is filled
};

// Do what FillWhole and IsFilledWhole do, for a block whose address is a multiple of 16. kIsLong
// tells that it has more than kMostInFour bytes.
template <bool kIsLong>
TCMALLOC_ALWAYS_INLINE void FillPairs(char* block, const BlockPairs& pairs,
                                      const Filling& filling) {
  const WordPair first = pairs.first;
  if constexpr (kIsLong) {
    char* last = pairs.LastOf(block);
    for (; block < last - kMostInFour; block += kMostInFour) {
      StoreAlignedPair(block, first);
      StoreAlignedPair(block + 16, first);
      StoreAlignedPair(block + 32, first);
      StoreAlignedPair(block + 48, first);
    }
    StoreAlignedPair(last - 64, first);
    StoreAlignedPair(last - 48, first);
    StoreAlignedPair(last - 32, first);
    StoreAlignedPair(last - 16, first);
    StoreAlignedPair(last, filling.last);
  } else {
    StoreAlignedPair(block, first);
    StoreAlignedPair(block + pairs.second, first);
    StoreAlignedPair(block + pairs.third, first);
    StoreAlignedPair(pairs.LastOf(block), filling.last);
  }
}
template <bool kIsLong>
TCMALLOC_ALWAYS_INLINE bool ArePairsFilled(const char* block, const BlockPairs& pairs,
                                           const Filling& filling) {
  const WordPair first = pairs.first;
  WordPair same = EqualBytes(LoadAlignedPair(pairs.LastOf(block)), filling.last);
  const auto look = [&](const char* at) { same &= EqualBytes(LoadAlignedPair(at), first); };
  if constexpr (kIsLong) {
    const char* last = pairs.LastOf(block);
    for (; block < last - kMostInFour; block += kMostInFour) {
      look(block);
      look(block + 16);
      look(block + 32);
      look(block + 48);
    }
    look(last - 64);
    look(last - 48);
    look(last - 32);
    look(last - 16);
  } else {
    look(block);
    look(block + pairs.second);
    look(block + pairs.third);
  }
  return AreAllSet(same);
}
// Begins a block without contents, whose last pair is written apart, with kFreshFill.
TCMALLOC_ALWAYS_INLINE void BeginFresh(char* block, const BlockPairs& pairs) {
  constexpr uint64_t kFresh = RepeatByte(kFreshFill);
  std::memcpy(block, &kFresh, sizeof(kFresh));
  std::memcpy(block + pairs.word, &kFresh, sizeof(kFresh));
}

// Calls f(offset, pair) for places in a block of a multiple of 16 bytes, so that pairs there cover
// it, without the last 16 bytes if it has more. Some overlap, because a branch for each of them
// would often be predicted wrong.
template <typename F>
TCMALLOC_ALWAYS_INLINE void ForEachPair(size_t bytes, const Filling& filling, F f) {
  constexpr size_t kPair = sizeof(WordPair);
  const WordPair pair = bytes == kPair ? filling.last : filling.pair;
  size_t first = 0;
  size_t last = std::max(bytes, 2 * kPair) - 2 * kPair;
  while (TCMALLOC_UNLIKELY(last - first > 2 * kPair)) {
    f(first, pair);
    f(first + kPair, pair);
    f(first + 2 * kPair, pair);
    first += 3 * kPair;
  }
  f(first, pair);
  f(std::min(first + kPair, last), pair);
  f(last, pair);
}

TCMALLOC_ALWAYS_INLINE void FillWhole(char* block, size_t bytes, const Filling& filling) {
  ForEachPair(bytes, filling, [&](size_t i, WordPair pair) { StorePair(block + i, pair); });
  StorePair(block + bytes - sizeof(WordPair), filling.last);
}
// Returns true if nobody wrote to the block since.
TCMALLOC_ALWAYS_INLINE bool IsFilledWhole(const char* block, size_t bytes, const Filling& filling) {
  WordPair damage = LoadPair(block + bytes - sizeof(WordPair)) ^ filling.last;
  ForEachPair(bytes, filling,
              [&](size_t i, WordPair pair) { damage |= LoadPair(block + i) ^ pair; });
  return IsZero(damage);
}
// Returns the filling of a block whose last byte stays what it is.
TCMALLOC_ALWAYS_INLINE Filling FillingFor(const char* block, size_t bytes, bool zeroes) {
  const uint64_t word = FreedWord(zeroes);
  const uint64_t last_byte = LoadPair(block + bytes - sizeof(WordPair))[1] & kLastByte;
  return {WordPair{word, word}, WordPair{word, (word & ~kLastByte) | last_byte}};
}

// Fills a freed block whose program asked for `size` of its `bytes` bytes, a multiple of 16. The
// last byte stays what it is.
TCMALLOC_ALWAYS_INLINE void FillFreed(char* block, size_t size, size_t bytes, bool zeroes) {
  if (TCMALLOC_LIKELY(bytes <= kMostFilled)) {
    FillWhole(block, bytes, FillingFor(block, bytes, zeroes));
  } else if (zeroes) {
    std::memset(block, 0, bytes - 1);  // also what the block had before it was made smaller
  } else {
    std::memset(block, kFreedFill, kHeadFill);
    std::memset(block + size - kTailFill, kFreedFill, kTailFill);
  }
}

TCMALLOC_COLD inline const char* FindWrittenByte(const char* begin, const char* end,
                                                 unsigned char fill) {
  return std::find_if(begin, end, [fill](char c) { return static_cast<unsigned char>(c) != fill; });
}

// Looks for a byte that was written since, in a multiple of 16 bytes. Returns null if there is
// none.
inline const char* FindWritten(const char* begin, size_t bytes, unsigned char fill) {
  const uint64_t word = RepeatByte(fill);
  const char* end = begin + bytes;
  WordPair damage = {};
  for (const char* next = begin; next < end; next += sizeof(WordPair)) {
    damage |= LoadPair(next) ^ WordPair { word, word };
  }
  if (TCMALLOC_LIKELY((damage[0] | damage[1]) == 0)) return nullptr;
  return FindWrittenByte(begin, end, fill);
}

// Returns the first byte of a block, filled by FillFreed with the same arguments, that was written
// since, or null.
TCMALLOC_ALWAYS_INLINE const char* FindWrittenFreed(const char* block, size_t size, size_t bytes,
                                                    bool zeroes) {
  const unsigned char fill = zeroes ? 0 : kFreedFill;
  if (TCMALLOC_LIKELY(bytes <= kMostFilled)) {
    const Filling filling = FillingFor(block, bytes, zeroes);
    if (TCMALLOC_LIKELY(IsFilledWhole(block, bytes, filling))) return nullptr;
    return FindWrittenByte(block, block + bytes - 1, fill);
  }
  const char* found = FindWritten(block, kHeadFill, fill);
  return found != nullptr ? found : FindWritten(block + size - kTailFill, kTailFill, fill);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_CANARY_H_
