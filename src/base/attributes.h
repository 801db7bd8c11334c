// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Compiler attributes used on hot and cold paths.

#ifndef TCMALLOC_BASE_ATTRIBUTES_H_
#define TCMALLOC_BASE_ATTRIBUTES_H_

#define TCMALLOC_ALWAYS_INLINE inline __attribute__((always_inline))
#define TCMALLOC_NOINLINE __attribute__((noinline))
#define TCMALLOC_COLD __attribute__((cold, noinline))
#define TCMALLOC_EXPORT __attribute__((visibility("default")))
// Marks an exported function with a fast path. It begins a cache line, so that the time it takes
// does not depend on the sizes of the functions before it.
#define TCMALLOC_EXPORT_FAST __attribute__((visibility("default"), aligned(64)))
// Marks a variable to which nothing refers but whose own references count. It keeps the compiler,
// and a linker that drops unreferenced data, from leaving it out.
#define TCMALLOC_RETAINED __attribute__((used, retain))
// Marks thread-local variables of a few bytes. Placed with the initialized ones, they fill the gap
// that the linker would leave before an aligned one.
#define TCMALLOC_INITIALIZED_TLS __attribute__((section(".tdata")))
#define TCMALLOC_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define TCMALLOC_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)

namespace tcmalloc {

// Hides from the compiler how `value`, a pointer or an integer, was computed. It is then computed
// once, instead of again for each use.
template <typename T>
TCMALLOC_ALWAYS_INLINE T OpaqueToOptimizer(T value) {
  asm("" : "+r"(value));
  return value;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_ATTRIBUTES_H_
