/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * How large a block would be. For C from C89 on and for C++ from C++11 on.
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

/* The bytes that a block would have which is asked for with `size` bytes and the flags above; 0 if
 * none can be that large. Allocates nothing and is thread safe. Other flags are ignored. */
PERFTOOLS_DLL_DECL size_t nallocx(size_t size, int flags);
/* The same, by a name that only this allocator has. */
PERFTOOLS_DLL_DECL size_t tc_nallocx(size_t size, int flags);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TCMALLOC_INCLUDE_GPERFTOOLS_NALLOCX_H_ */
