/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Allocation functions that return the true size of the block. For C from C89 on and for C++ from
 * C++11 on.
 */

#ifndef TCMALLOC_INCLUDE_TCMALLOC_ALLOC_AT_LEAST_H_
#define TCMALLOC_INCLUDE_TCMALLOC_ALLOC_AT_LEAST_H_

#include <stddef.h>

#ifdef __cplusplus
#define TCMALLOC_NOTHROW noexcept
extern "C" {
#else
#define TCMALLOC_NOTHROW __attribute__((__nothrow__))
#endif

/* A block and its true size, all of which may be used. */
typedef struct alloc_result_t {
  void* ptr;
  size_t size;
} alloc_result_t;

/* Returns a block of at least min_size bytes, which the caller owns: free it by free, or by
 * free_sized with any size from min_size up to the one returned. If no memory can be had, returns a
 * null pointer and size 0, and sets errno to ENOMEM. Thread safe. */
alloc_result_t alloc_at_least(size_t min_size) TCMALLOC_NOTHROW;

/* Works as alloc_at_least, aligned. Sets errno to EINVAL if the alignment is no power of two. */
alloc_result_t aligned_alloc_at_least(size_t alignment, size_t min_size) TCMALLOC_NOTHROW;

#ifdef __cplusplus
} /* extern "C" */
#endif

#undef TCMALLOC_NOTHROW

#endif /* TCMALLOC_INCLUDE_TCMALLOC_ALLOC_AT_LEAST_H_ */
