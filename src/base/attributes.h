// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Compiler attributes used on hot and cold paths.

#ifndef TCMALLOC_BASE_ATTRIBUTES_H_
#define TCMALLOC_BASE_ATTRIBUTES_H_

#define TCMALLOC_ALWAYS_INLINE inline __attribute__((always_inline))
#define TCMALLOC_NOINLINE __attribute__((noinline))
#define TCMALLOC_COLD __attribute__((cold, noinline))
#define TCMALLOC_EXPORT __attribute__((visibility("default")))
// A variable that nothing refers to but whose own references count, for the compiler and for a
// linker that leaves out what nothing refers to.
#define TCMALLOC_RETAINED __attribute__((used, retain))
// For thread-local variables of a few bytes: with the initialized ones they fill up what the linker
// would leave between those and an aligned one among the others.
#define TCMALLOC_INITIALIZED_TLS __attribute__((section(".tdata")))
#define TCMALLOC_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define TCMALLOC_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)

namespace tcmalloc {

// Makes the compiler compute `value`, a pointer or an integer, once and forget how, where it would
// otherwise compute it again for each use.
template <typename T>
TCMALLOC_ALWAYS_INLINE T OpaqueToOptimizer(T value) {
  asm("" : "+r"(value));
  return value;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_ATTRIBUTES_H_
