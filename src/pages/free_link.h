// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The links between free objects: each free object's first word holds an encoded reference to the
// next one.
//
// A reference is the address of an object, aligned to 8, in a form that one comparison can
// validate:
//
//     reference = rotate_right(address + 4, 3)
//
//     bit 63   62 61   60 ............................ 0
//          1    0  0   address / 8                           of an aligned address
//          ?    ?  ?   with any other top bits               of a misaligned one
//
// Read as a signed number, the reference of an aligned address is INT64_MIN + address / 8. The
// signed comparison `reference < limit` with limit = INT64_MIN + window_limit / 8 therefore tells
// at once that the address is aligned and lies below window_limit. Misaligned addresses and small
// integers fail it.
//
// A link is the reference times a secret odd number modulo 2^64; multiplying with the inverse
// decodes it. Overwriting any part of it changes the top bits of the product: of all 2^64 words a
// fraction of window_limit / 2^67, about 2^-27, decodes to a valid reference. A word of zero never
// does. An overwritten free object is thus noticed when it is about to be handed out, before its
// link is followed. A live object whose first word is a valid link is almost certainly a free one
// that is being freed again.

#ifndef TCMALLOC_PAGES_FREE_LINK_H_
#define TCMALLOC_PAGES_FREE_LINK_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "pages/page_types.h"

namespace tcmalloc {

// A reference as explained at the head of this file. A plain integer, because it is compared,
// stored and multiplied.
using ObjectReference = uint64_t;

TCMALLOC_ALWAYS_INLINE ObjectReference ReferenceTo(const void* object) {
  return std::rotr(reinterpret_cast<uint64_t>(object) + 4, 3);
}

TCMALLOC_ALWAYS_INLINE void* ObjectAt(ObjectReference reference) {
  return reinterpret_cast<void*>(reference << 3);
}

// Undoes ReferenceTo exactly. ObjectAt, which takes an instruction less, ignores the top bits.
TCMALLOC_ALWAYS_INLINE uintptr_t AddressAt(ObjectReference reference) {
  return std::rotl(reference, 3) - 4;
}

TCMALLOC_ALWAYS_INLINE bool IsBelow(ObjectReference reference, int64_t limit) {
  return static_cast<int64_t>(reference) < limit;
}

// The word of a free object that links it to the next.
TCMALLOC_ALWAYS_INLINE uint64_t& LinkWord(void* object) { return *static_cast<uint64_t*>(object); }

// A list of `count` free objects of one size class, whose last one links to LinkCodec::end. That
// holds in every case; the count may be wrong by a few in a list in which a signal handler has
// interrupted a fast path (docs/locking.md), and decides only how many are kept. A chain that is
// not empty has at least one object.
struct Chain {
  ObjectReference head = 0;
  uint32_t count = 0;

  bool empty() const { return count == 0; }
};

// The process's secret and the values derived from it. Set once, before the first object is freed.
// Only the limit grows later, with the address window.
struct LinkCodec {
  uint64_t key = 1;      // odd
  uint64_t inverse = 1;  // key * inverse == 1 modulo 2^64
  // The reference that ends every list. It refers to a readable word that holds zero, which is
  // itself no valid link.
  ObjectReference end = 0;

  // References below this, compared as signed numbers, are to aligned addresses in the address
  // window. Acquire pairs with the release in SetWindowLimit and publishes that the window's table
  // is mapped.
  int64_t limit() const { return __atomic_load_n(&limit_, __ATOMIC_ACQUIRE); }

  // `window_limit` is a multiple of 8, and never less than it was.
  void SetWindowLimit(uintptr_t window_limit) {
    const auto limit = static_cast<int64_t>((uint64_t{1} << 63) + window_limit / 8);
    // Release pairs with the acquire in limit.
    __atomic_store_n(&limit_, limit, __ATOMIC_RELEASE);
  }

  uint64_t Encode(ObjectReference reference) const { return reference * key; }
  ObjectReference Decode(uint64_t link) const { return link * inverse; }
  // Excludes a reference to null, which passes the comparison. A word with only its highest bit set
  // decodes to it under any key, so the slow path tells the two apart.
  bool InWindow(ObjectReference reference) const {
    return IsBelow(reference, limit()) && reference != ReferenceTo(nullptr);
  }

  // Returns true if the reference is to an aligned address that a program may have, as that of each
  // link is, the end included. Of all words that are no links a fraction of 2^-19 decodes to one.
  static bool IsToAddress(ObjectReference reference) {
    constexpr uint64_t kNull = uint64_t{1} << 63;
    return reference - kNull - 1 < (uint64_t{1} << (kAddressBits - 3)) - 1;
  }

  ObjectReference Next(void* object) const { return Decode(LinkWord(object)); }
  void Link(void* object, ObjectReference next) const { LinkWord(object) = Encode(next); }
  // Adds an object to the front of a chain.
  void Prepend(void* object, Chain* chain) const {
    Link(object, chain->head);
    *chain = {ReferenceTo(object), chain->count + 1};
  }

  // Derives the secret from `random` bits. `end_word` points to the word that `end` refers to.
  void Initialize(uint64_t random, uintptr_t window_limit, const void* end_word) {
    key = random | 1;
    inverse = key;  // correct modulo 8; every step doubles the number of correct bits
    for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - key * inverse;
    SetWindowLimit(window_limit);
    end = ReferenceTo(end_word);
  }

 private:
  int64_t limit_ = INT64_MIN;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGES_FREE_LINK_H_
