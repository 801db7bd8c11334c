// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on sizes and addresses. Every function that could overflow says so.

#ifndef TCMALLOC_BASE_BITS_H_
#define TCMALLOC_BASE_BITS_H_

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// Without the instruction that counts bits, which x86-64 need not have, counting is a call.
constexpr bool IsPowerOfTwo(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Floor of the base-2 logarithm. Requires n > 0.
constexpr int Log2Floor(uint64_t n) { return std::countl_zero(n) ^ 63; }

// Ceiling of the base-2 logarithm. Requires n > 0.
constexpr int Log2Ceil(uint64_t n) { return n == 1 ? 0 : Log2Floor(n - 1) + 1; }

// Requires `alignment` to be a power of two.
constexpr uintptr_t AlignDown(uintptr_t n, size_t alignment) { return n & ~(alignment - 1); }

// Requires `alignment` to be a power of two and the result to be representable.
constexpr uintptr_t AlignUp(uintptr_t n, size_t alignment) {
  return (n + alignment - 1) & ~(alignment - 1);
}

constexpr bool IsAligned(uintptr_t n, size_t alignment) { return (n & (alignment - 1)) == 0; }

// Rounds `n` up to a multiple of `alignment`, a power of two. Returns false, and leaves `*result`
// alone, if the result does not fit.
[[nodiscard]] constexpr bool CheckedAlignUp(size_t n, size_t alignment, size_t* result) {
  size_t sum = 0;
  if (__builtin_add_overflow(n, alignment - 1, &sum)) return false;
  *result = sum & ~(alignment - 1);
  return true;
}

[[nodiscard]] constexpr bool CheckedMultiply(size_t a, size_t b, size_t* result) {
  return !__builtin_mul_overflow(a, b, result);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_BITS_H_
