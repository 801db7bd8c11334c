// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Allocation beyond the standard: functions that return the size that a block has or will have,
// functions that free a block whose size the caller knows, and operator new with a hint. The
// interface of google/tcmalloc. For C++ from C++17 on.
//
// The caller owns the returned blocks. Blocks of any function here and of malloc or new are freed
// by any function that frees, except that blocks of malloc are not meant for delete. All functions
// are thread safe. Sizes and alignments are in bytes; an alignment is a power of two.

#ifndef TCMALLOC_INCLUDE_TCMALLOC_NEW_EXTENSION_H_
#define TCMALLOC_INCLUDE_TCMALLOC_NEW_EXTENSION_H_

#include <stddef.h>
#include <stdint.h>

#include <new>

// Weak references, for programs that are to run without the library as well. The library itself
// defines it as nothing.
#ifndef TCMALLOC_OPTIONAL
#define TCMALLOC_OPTIONAL __attribute__((weak))
#endif

// In the flags of nallocx and sdallocx: the block is aligned to 2 to the power of `la`.
#ifndef MALLOCX_LG_ALIGN
#define MALLOCX_LG_ALIGN(la) ((int)(la))
#endif

// A block and its true size. n is 0 where p is null.
struct __sized_ptr_t {
  void* p;
  size_t n;
};

// The expected frequency of use of a block: from 0, hardly ever, to 255. It is accepted and changes
// nothing yet: blocks of all hints come from the same place.
enum class __hot_cold_t : uint8_t;

namespace tcmalloc {
using sized_ptr_t = __sized_ptr_t;
using hot_cold_t = __hot_cold_t;
}  // namespace tcmalloc

extern "C" {

// --- These are null where the library is absent. A program that is to run without it tests them
// --- before a call: if (&sdallocx != nullptr).

// Returns the bytes that a block for a request of `size` and the flags above would have; 0 if no
// block can be that large. A sample between guard pages has only what was asked for. Allocates
// nothing. tcmalloc_size_returning_operator_new also returns the size of its block, which saves a
// call.
[[nodiscard]] TCMALLOC_OPTIONAL size_t nallocx(size_t size, int flags);

// Frees a block, or does nothing for null. `size` and the alignment are those of the request;
// `size` may also be any up to the size that nallocx or a size-returning function returned. Keeps
// errno. Ends the process if the size is larger than any small block (256 KiB) and than the block.
// Any other wrong size does no harm, and is not noticed. The alignment is not checked.
TCMALLOC_OPTIONAL void sdallocx(void* ptr, size_t size, int flags) noexcept;
TCMALLOC_OPTIONAL void free_sized(void* ptr, size_t size) noexcept;
TCMALLOC_OPTIONAL void free_aligned_sized(void* ptr, size_t alignment, size_t size) noexcept;

// --- These as well. Where no memory can be had, the first four call the new handler and throw
// --- std::bad_alloc as operator new does; the nothrow ones return null as its nothrow forms do.

[[nodiscard]] TCMALLOC_OPTIONAL __sized_ptr_t __size_returning_new(size_t size);
[[nodiscard]] TCMALLOC_OPTIONAL __sized_ptr_t __size_returning_new_hot_cold(size_t size,
                                                                            __hot_cold_t hot_cold);
[[nodiscard]] TCMALLOC_OPTIONAL __sized_ptr_t
__size_returning_new_aligned(size_t size, std::align_val_t alignment);
[[nodiscard]] TCMALLOC_OPTIONAL __sized_ptr_t __size_returning_new_aligned_hot_cold(
    size_t size, std::align_val_t alignment, __hot_cold_t hot_cold);

[[nodiscard]] TCMALLOC_OPTIONAL __sized_ptr_t
tcmalloc_size_returning_operator_new_nothrow(size_t size) noexcept;
[[nodiscard]] TCMALLOC_OPTIONAL __sized_ptr_t
tcmalloc_size_returning_operator_new_hot_cold_nothrow(size_t size, __hot_cold_t hot_cold) noexcept;
[[nodiscard]] TCMALLOC_OPTIONAL __sized_ptr_t tcmalloc_size_returning_operator_new_aligned_nothrow(
    size_t size, std::align_val_t alignment) noexcept;
[[nodiscard]] TCMALLOC_OPTIONAL __sized_ptr_t
tcmalloc_size_returning_operator_new_aligned_hot_cold_nothrow(size_t size,
                                                              std::align_val_t alignment,
                                                              __hot_cold_t hot_cold) noexcept;

// --- operator new that says how much it gave: all n bytes may be used. Freed by operator delete;
// --- a sized one is given any size from the one asked for up to n. Without the library they are
// --- operator new, and n is `size`.

[[nodiscard]] inline __sized_ptr_t tcmalloc_size_returning_operator_new(size_t size) {
  if (__size_returning_new != nullptr) return __size_returning_new(size);
  return {::operator new(size), size};
}
[[nodiscard]] inline __sized_ptr_t tcmalloc_size_returning_operator_new_hot_cold(
    size_t size, __hot_cold_t hot_cold) {
  if (__size_returning_new_hot_cold != nullptr) {
    return __size_returning_new_hot_cold(size, hot_cold);
  }
  return {::operator new(size), size};
}
[[nodiscard]] inline __sized_ptr_t tcmalloc_size_returning_operator_new_aligned(
    size_t size, std::align_val_t alignment) {
  if (__size_returning_new_aligned != nullptr) return __size_returning_new_aligned(size, alignment);
  return {::operator new(size, alignment), size};
}
[[nodiscard]] inline __sized_ptr_t tcmalloc_size_returning_operator_new_aligned_hot_cold(
    size_t size, std::align_val_t alignment, __hot_cold_t hot_cold) {
  if (__size_returning_new_aligned_hot_cold != nullptr) {
    return __size_returning_new_aligned_hot_cold(size, alignment, hot_cold);
  }
  return {::operator new(size, alignment), size};
}

}  // extern "C"

// --- operator new with a hint. Fails as the forms without one do; freed as what those return. Only
// --- for programs that are linked with the library.

[[nodiscard]] void* operator new(size_t size, __hot_cold_t hot_cold);
[[nodiscard]] void* operator new(size_t size, const std::nothrow_t&,
                                 __hot_cold_t hot_cold) noexcept;
[[nodiscard]] void* operator new[](size_t size, __hot_cold_t hot_cold);
[[nodiscard]] void* operator new[](size_t size, const std::nothrow_t&,
                                   __hot_cold_t hot_cold) noexcept;
[[nodiscard]] void* operator new(size_t size, std::align_val_t alignment, __hot_cold_t hot_cold);
[[nodiscard]] void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&,
                                 __hot_cold_t hot_cold) noexcept;
[[nodiscard]] void* operator new[](size_t size, std::align_val_t alignment, __hot_cold_t hot_cold);
[[nodiscard]] void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&,
                                   __hot_cold_t hot_cold) noexcept;

#endif  // TCMALLOC_INCLUDE_TCMALLOC_NEW_EXTENSION_H_
