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
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "pages/metadata_arena.h"
#include "pages/span.h"

namespace tcmalloc {

// A bit for each object of a span, set while the span has it and it was handed out before. Freed
// objects are thus found in address order, a second free of one is noticed at once, and nothing
// that the program can overwrite says what is free.
//
// A span of at most 64 objects has the bits in its record, any other one in words that the record
// points to. These lie where the program does not write, except where no memory could be had for
// them. Guarded by the owner of the span.
class FreeBits {
 public:
  static constexpr size_t kWordBits = 64;

  // Return the index of the lowest, or highest, of the bits of a word, which has one.
  static constexpr size_t IndexOf(size_t word, uint64_t bits) {
    return word * kWordBits + static_cast<size_t>(std::countr_zero(bits));
  }
  static constexpr size_t HighestOf(size_t word, uint64_t bits) {
    return word * kWordBits + static_cast<size_t>(std::bit_width(bits)) - 1;
  }

  static constexpr size_t WordsFor(size_t objects) { return (objects + kWordBits - 1) / kWordBits; }

  // `words` is the number of words for the objects of the span.
  TCMALLOC_ALWAYS_INLINE FreeBits(Span* span, size_t words)
      : words_(words == 1 ? &span->details : reinterpret_cast<uint64_t*>(span->details)),
        count_(words) {}

  // Sets bits of a word. Returns those that were set before.
  TCMALLOC_ALWAYS_INLINE uint64_t Set(size_t word, uint64_t bits) {
    const uint64_t before = words_[word];
    words_[word] = before | bits;
    return before & bits;
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

// The words of the spans of one size class. Those of spans that went back serve the next ones of
// any central free list of the class. Thread safe; the owner of a span guards its bits.
class FreeBitsPool {
 public:
  // A span has so many objects, of `object_bytes` each, a multiple of 8.
  void Initialize(MetadataArena& arena, size_t objects, uint32_t object_bytes) {
    arena_ = &arena;
    words_ = static_cast<uint32_t>(FreeBits::WordsFor(objects));
    object_bytes_ = object_bytes;
  }

  size_t words() const { return words_; }

  // Gives a new span bits, none of them set. If no memory can be had, they take the place of its
  // last objects, and it has fewer: a program that used up a limit with objects of one class, and
  // freed them, can have others.
  void Attach(Span* span) TCMALLOC_EXCLUDES(lock_) {
    span->details = 0;
    if (words_ == 1) return;
    uint64_t* words = Take();
    if (words == nullptr) {
      words = static_cast<uint64_t*>(arena_->AllocateUnreserved(bytes(), alignof(uint64_t)));
    }
    if (words == nullptr) words = TakeLastObjects(span);
    span->details = reinterpret_cast<uintptr_t>(words);
  }

  // Takes the bits of a span away.
  void Detach(Span* span) TCMALLOC_EXCLUDES(lock_) {
    FreeBits(span, words_).Clear();
    if (words_ == 1) return;
    auto* words = reinterpret_cast<uint64_t*>(span->details);
    span->details = 0;
    if (TCMALLOC_UNLIKELY(IsWithin(span, words))) return;
    SpinLockHolder holder(lock_);
    std::memcpy(words, &free_, sizeof(free_));
    free_ = words;
  }

 private:
  size_t bytes() const { return words_ * sizeof(uint64_t); }
  static bool IsWithin(const Span* span, const uint64_t* words) {
    return reinterpret_cast<uintptr_t>(words) - span->first.address() < span->bytes();
  }
  // Returns words of zeros in memory of the span, which is no longer as the system gave it.
  TCMALLOC_COLD uint64_t* TakeLastObjects(Span* span) const {
    span->capacity -= static_cast<uint32_t>((bytes() + object_bytes_ - 1) / object_bytes_);
    span->zeroed = false;
    auto* words =
        reinterpret_cast<uint64_t*>(span->start() + size_t{span->capacity} * object_bytes_);
    std::fill_n(words, words_, 0);
    return words;
  }
  // Returns words of zeros that a span had, or null.
  uint64_t* Take() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    uint64_t* words = free_;
    if (words == nullptr) return nullptr;
    std::memcpy(&free_, words, sizeof(free_));
    words[0] = 0;
    return words;
  }

  MetadataArena* arena_ = nullptr;
  SpinLock lock_{LockRank::kFreeBits};
  uint32_t words_ = 0;
  uint32_t object_bytes_ = 0;
  // Words that nobody has; each begins with the address of the next.
  uint64_t* free_ TCMALLOC_GUARDED_BY(lock_) = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_FREE_BITS_H_
