// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The table of C entry points: every exported name and its function in c_entry_points.cc.

#ifndef TCMALLOC_OVERRIDE_C_ENTRY_POINT_NAMES_H_
#define TCMALLOC_OVERRIDE_C_ENTRY_POINT_NAMES_H_

// ALIAS(name, target). One list, so that a test can compare it with what the library exports.
#define TCMALLOC_FOR_EACH_ALIAS(ALIAS)             \
  ALIAS(malloc, tc_malloc)                         \
  ALIAS(free, tc_free)                             \
  ALIAS(cfree, tc_free)                            \
  ALIAS(tc_cfree, tc_free)                         \
  ALIAS(calloc, tc_calloc)                         \
  ALIAS(realloc, tc_realloc)                       \
  ALIAS(reallocarray, tc_reallocarray)             \
  ALIAS(memalign, tc_memalign)                     \
  ALIAS(aligned_alloc, tc_memalign)                \
  ALIAS(posix_memalign, tc_posix_memalign)         \
  ALIAS(valloc, tc_valloc)                         \
  ALIAS(pvalloc, tc_pvalloc)                       \
  ALIAS(malloc_size, tc_malloc_size)               \
  ALIAS(malloc_usable_size, tc_malloc_size)        \
  ALIAS(malloc_stats, tc_malloc_stats)             \
  ALIAS(mallopt, tc_mallopt)                       \
  ALIAS(mallinfo, tc_mallinfo)                     \
  ALIAS(mallinfo2, tc_mallinfo2)                   \
  ALIAS(nallocx, tc_nallocx)                       \
  ALIAS(free_sized, tc_free_sized)                 \
  ALIAS(free_aligned_sized, tc_free_aligned_sized) \
  ALIAS(__libc_malloc, tc_malloc)                  \
  ALIAS(__libc_free, tc_free)                      \
  ALIAS(__libc_cfree, tc_free)                     \
  ALIAS(__libc_calloc, tc_calloc)                  \
  ALIAS(__libc_realloc, tc_realloc)                \
  ALIAS(__libc_memalign, tc_memalign)              \
  ALIAS(__libc_valloc, tc_valloc)                  \
  ALIAS(__libc_pvalloc, tc_pvalloc)                \
  ALIAS(__posix_memalign, tc_posix_memalign)

#endif  // TCMALLOC_OVERRIDE_C_ENTRY_POINT_NAMES_H_
