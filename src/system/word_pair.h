// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Sixteen bytes that are read, written and compared at once.

#ifndef TCMALLOC_SYSTEM_WORD_PAIR_H_
#define TCMALLOC_SYSTEM_WORD_PAIR_H_

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "base/attributes.h"

namespace tcmalloc {

using WordPair = uint64_t __attribute__((vector_size(16)));

TCMALLOC_ALWAYS_INLINE WordPair LoadPair(const char* from) {
  WordPair pair;
  std::memcpy(&pair, from, sizeof(pair));
  return pair;
}
TCMALLOC_ALWAYS_INLINE void StorePair(char* to, WordPair pair) {
  std::memcpy(to, &pair, sizeof(pair));
}

// Do the same at a multiple of 16, which the processor's instructions can name in place of a
// register.
TCMALLOC_ALWAYS_INLINE WordPair LoadAlignedPair(const char* from) {
  return LoadPair(static_cast<const char*>(__builtin_assume_aligned(from, sizeof(WordPair))));
}
TCMALLOC_ALWAYS_INLINE void StoreAlignedPair(char* to, WordPair pair) {
  StorePair(static_cast<char*>(__builtin_assume_aligned(to, sizeof(WordPair))), pair);
}

TCMALLOC_ALWAYS_INLINE bool IsZero(WordPair pair) { return (pair[0] | pair[1]) == 0; }

// Returns 0xff for each byte that is the same in both, and 0 for the others.
TCMALLOC_ALWAYS_INLINE WordPair EqualBytes(WordPair one, WordPair other) {
  using Bytes = signed char __attribute__((vector_size(16)));
  return reinterpret_cast<WordPair>(reinterpret_cast<Bytes>(one) == reinterpret_cast<Bytes>(other));
}

// Returns true if all bits are set. Requires that each byte is 0 or 0xff.
TCMALLOC_ALWAYS_INLINE bool AreAllSet(WordPair bytes) {
#if defined(__SSE2__)
  return _mm_movemask_epi8(reinterpret_cast<__m128i>(bytes)) == 0xffff;
#else
  return (bytes[0] & bytes[1]) == UINT64_MAX;
#endif
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_WORD_PAIR_H_
