/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Returns the size that a block would have. For C from C89 on and for C++ from C++98 on.
 */

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_NALLOCX_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_NALLOCX_H_

#include <stddef.h>

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* In `flags`: the block is aligned to 2 to the power of `la`. */
#define MALLOCX_LG_ALIGN(la) ((int)(la))

/* Returns the bytes that a block for a request of `size` bytes and the flags above would have; 0 if
 * no block can be that large. A sample between guard pages has only what was asked for: a program
 * that wants the other bytes asks for so many, or asks its block with malloc_usable_size. Allocates
 * nothing and is thread safe. Other flags are ignored. */
PERFTOOLS_DLL_DECL size_t nallocx(size_t size, int flags);
/* Works as nallocx, by a name that only this allocator has. */
PERFTOOLS_DLL_DECL size_t tc_nallocx(size_t size, int flags);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TCMALLOC_INCLUDE_GPERFTOOLS_NALLOCX_H_ */
