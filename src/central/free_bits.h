// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Which objects of a span are free.

#ifndef TCMALLOC_CENTRAL_FREE_BITS_H_
#define TCMALLOC_CENTRAL_FREE_BITS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/attributes.h"
#include "pages/metadata_arena.h"
#include "pages/span.h"

namespace tcmalloc {

// A bit for each object of a span, set while the span has it and it was handed out before. Freed
// objects are thus found in address order, a second free of one is noticed at once, and nothing
// that the program can overwrite says what is free.
//
// A span of at most 64 objects has the bits in its record, any other one in words that the record
// points to. Guarded by the owner of the span.
class FreeBits {
 public:
  static constexpr size_t kWordBits = 64;

  static constexpr size_t WordsFor(size_t objects) { return (objects + kWordBits - 1) / kWordBits; }

  // `words` is the number of words for the objects of the span.
  TCMALLOC_ALWAYS_INLINE FreeBits(Span* span, size_t words)
      : words_(words == 1 ? &span->details : reinterpret_cast<uint64_t*>(span->details)),
        count_(words) {}

  // Returns false if the bit was set before.
  TCMALLOC_ALWAYS_INLINE bool Set(size_t index) {
    uint64_t& word = words_[index / kWordBits];
    const uint64_t bit = uint64_t{1} << (index % kWordBits);
    const bool added = (word & bit) == 0;
    word |= bit;
    return added;
  }

  bool IsSet(size_t index) const { return words_[index / kWordBits] >> (index % kWordBits) & 1; }

  // Clears the `most` lowest bits that are set, or all if there are fewer, and writes their indices
  // to `out`, the lowest first. Returns their number.
  uint32_t Take(uint32_t most, uint16_t* out) {
    uint32_t taken = 0;
    for (size_t i = 0; i < count_ && taken < most; ++i) {
      uint64_t bits = words_[i];
      for (; bits != 0 && taken < most; bits &= bits - 1) {
        out[taken++] =
            static_cast<uint16_t>(i * kWordBits + static_cast<size_t>(std::countr_zero(bits)));
      }
      words_[i] = bits;
    }
    return taken;
  }

  // Calls f(index) for each bit that is set, in ascending order, as long as it returns true.
  template <typename F>
  void ForEach(F f) const {
    for (size_t i = 0; i < count_; ++i) {
      for (uint64_t bits = words_[i]; bits != 0; bits &= bits - 1) {
        if (!f(i * kWordBits + static_cast<size_t>(std::countr_zero(bits)))) return;
      }
    }
  }

  void Clear() { std::fill_n(words_, count_, 0); }

 private:
  uint64_t* words_;
  size_t count_;
};

// The words of the spans of one size class. Those of spans that went back serve the next ones.
// Guarded by its owner.
class FreeBitsPool {
 public:
  void Initialize(MetadataArena& arena, size_t objects) {
    arena_ = &arena;
    words_ = static_cast<uint32_t>(FreeBits::WordsFor(objects));
  }

  size_t words() const { return words_; }

  // Gives a span bits, none of them set. Returns false if no memory can be had.
  [[nodiscard]] bool Attach(Span* span) {
    span->details = 0;
    if (words_ == 1) return true;
    uint64_t* words = free_;
    if (words != nullptr) {
      std::memcpy(&free_, words, sizeof(free_));
      words[0] = 0;
    } else {
      words =
          static_cast<uint64_t*>(arena_->Allocate(words_ * sizeof(uint64_t), alignof(uint64_t)));
      if (words == nullptr) return false;
    }
    span->details = reinterpret_cast<uintptr_t>(words);
    return true;
  }

  // Takes the bits of a span away.
  void Detach(Span* span) {
    FreeBits(span, words_).Clear();
    if (words_ == 1) return;
    auto* words = reinterpret_cast<uint64_t*>(span->details);
    std::memcpy(words, &free_, sizeof(free_));
    free_ = words;
    span->details = 0;
  }

 private:
  MetadataArena* arena_ = nullptr;
  uint64_t* free_ = nullptr;  // words that nobody has; each begins with the address of the next
  uint32_t words_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_FREE_BITS_H_
