// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where the objects of a span begin, and a chain of them in address order.

#ifndef TCMALLOC_CENTRAL_OBJECT_ORDER_H_
#define TCMALLOC_CENTRAL_OBJECT_ORDER_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "pages/free_link.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// Tells where the objects of a size class begin in a span, from what a loop keeps in registers.
struct ObjectStarts {
  explicit ObjectStarts(uint8_t size_class)
      : reciprocal(kSizeClasses[size_class].reciprocal),
        size(kSizeClasses[size_class].size),
        bytes(size_t{kSizeClasses[size_class].objects} * size) {}

  // Returns the offset of an object in the span that begins at `start`. Gives an offset at which
  // nothing begins if the reference is to no aligned address.
  static size_t OffsetIn(uintptr_t start, ObjectReference reference) {
    return AddressAt(reference) - start;
  }
  // Requires an offset inside the span.
  size_t IndexAt(size_t offset) const { return ObjectIndexBy(reciprocal, offset); }
  // Loads every line in which an object of `span` begins.
  void Prefetch(const Span* span) const {
    constexpr size_t kLineBytes = 64;
    const char* const start = span->start();
    const size_t step = std::max(size, kLineBytes);
    for (size_t offset = 0; offset < bytes; offset += step) __builtin_prefetch(start + offset, 1);
  }
  // Returns true if an object begins at `offset`: see size_class_internal::Product.
  bool IsAt(size_t offset) const { return offset < bytes && offset * reciprocal < reciprocal; }

  uint64_t reciprocal;
  size_t size;
  size_t bytes;  // of all objects
};

// Chains objects of one span in address order, in which they were not freed. The program then finds
// what it allocates in a row in a row, and the processor fetches ahead of its walks.
class ObjectOrder {
 public:
  static constexpr size_t kMostObjects = [] {
    size_t most = 0;
    for (const SizeClassInfo& info : kSizeClasses) most = std::max<size_t>(most, info.objects);
    return most;
  }();

  explicit ObjectOrder(size_t objects) : words_((objects + kBits - 1) / kBits) {
    std::fill_n(bits_, words_, 0);
  }

  // Returns false if the object was added before.
  TCMALLOC_ALWAYS_INLINE bool Add(size_t index) {
    const uint64_t bit = uint64_t{1} << (index % kBits);
    const bool added = (bits_[index / kBits] & bit) == 0;
    bits_[index / kBits] |= bit;
    return added;
  }

  // Links the objects that were added, of `size` bytes each in the span that begins at `start`, and
  // the last one to `rest`. Returns the first one.
  ObjectReference LinkAll(char* start, size_t size, ObjectReference rest,
                          const LinkCodec& codec) const {
    for (size_t word = words_; word-- > 0;) {
      for (uint64_t bits = bits_[word]; bits != 0;) {
        const auto bit = static_cast<size_t>(std::bit_width(bits)) - 1;
        bits ^= uint64_t{1} << bit;
        char* const object = start + (word * kBits + bit) * size;
        codec.Link(object, rest);
        rest = ReferenceTo(object);
      }
    }
    return rest;
  }

  // Copies their addresses to the places before `end`, the lowest one last. Returns the place of
  // the highest one.
  void** CopyAll(char* start, size_t size, void** end) const {
    for (size_t word = 0; word < words_; ++word) {
      for (uint64_t bits = bits_[word]; bits != 0; bits &= bits - 1) {
        *--end = start + (word * kBits + static_cast<size_t>(std::countr_zero(bits))) * size;
      }
    }
    return end;
  }

 private:
  static constexpr size_t kBits = 64;

  size_t words_;
  uint64_t bits_[(kMostObjects + kBits - 1) / kBits];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_OBJECT_ORDER_H_
