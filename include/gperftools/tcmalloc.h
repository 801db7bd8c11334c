/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * malloc, operator new and their kin under names of their own. They are the functions that the
 * library also exports as malloc, free, operator new and so on, so that blocks may be passed from
 * one name to the other. With these names a program asks for this allocator and does not link
 * where it is absent.
 *
 * Names and types are those of gperftools 2.18. For C from C89 on and for C++ from C++98 on.
 *
 * All functions are thread safe. Sizes and alignments are in bytes; an alignment is a power of two.
 * Functions without a throw specification throw std::bad_alloc where no memory can be had; those
 * that take std::nothrow_t return null then. The other functions return null and set errno to
 * ENOMEM.
 */

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_TCMALLOC_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_TCMALLOC_H_

#include <malloc.h> /* struct mallinfo */
#include <stddef.h>

#ifdef __cplusplus
#include <new>
#endif

/* The release of gperftools whose interface this is. */
#define TC_VERSION_MAJOR 2
#define TC_VERSION_MINOR 18
#define TC_VERSION_PATCH ".1"
#define TC_VERSION_STRING "gperftools 2.18.1"

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

#ifndef PERFTOOLS_NOTHROW
#if defined(__cplusplus) && __cplusplus >= 201103L
#define PERFTOOLS_NOTHROW noexcept
#elif defined(__cplusplus)
#define PERFTOOLS_NOTHROW throw()
#else
#define PERFTOOLS_NOTHROW __attribute__((__nothrow__))
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, which may differ from the macros above. Each pointer may
 * be null. The strings are constants. */
PERFTOOLS_DLL_DECL const char* tc_version(int* major, int* minor,
                                          const char** patch) PERFTOOLS_NOTHROW;

PERFTOOLS_DLL_DECL void* tc_malloc(size_t size) PERFTOOLS_NOTHROW;
/* Works as tc_malloc, without the new handler that tc_set_new_mode may have enabled. */
PERFTOOLS_DLL_DECL void* tc_malloc_skip_new_handler(size_t size) PERFTOOLS_NOTHROW;
/* Keeps errno, as all functions that free. */
PERFTOOLS_DLL_DECL void tc_free(void* ptr) PERFTOOLS_NOTHROW;
/* `size` and `align` are those of the block's request. */
PERFTOOLS_DLL_DECL void tc_free_sized(void* ptr, size_t size) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_free_aligned_sized(void* ptr, size_t align,
                                              size_t size) PERFTOOLS_NOTHROW;
/* Returns null for a size of 0, which frees the block. A block that cannot grow stays as it is. */
PERFTOOLS_DLL_DECL void* tc_realloc(void* ptr, size_t size) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void* tc_calloc(size_t nmemb, size_t size) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_cfree(void* ptr) PERFTOOLS_NOTHROW;

/* errno is EINVAL for an alignment that is no power of two. */
PERFTOOLS_DLL_DECL void* tc_memalign(size_t align, size_t size) PERFTOOLS_NOTHROW;
/* Returns 0, EINVAL or ENOMEM, and keeps *ptr on failure. errno becomes ENOMEM too, as libc's does,
 * and is kept otherwise. */
PERFTOOLS_DLL_DECL int tc_posix_memalign(void** ptr, size_t align, size_t size) PERFTOOLS_NOTHROW;
/* Aligned to the kernel's page; tc_pvalloc rounds the size up to it as well. */
PERFTOOLS_DLL_DECL void* tc_valloc(size_t size) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void* tc_pvalloc(size_t size) PERFTOOLS_NOTHROW;

/* Prints statistics to stderr. */
PERFTOOLS_DLL_DECL void tc_malloc_stats(void) PERFTOOLS_NOTHROW;
/* Changes nothing and returns 1: the parameters are those of another allocator. */
PERFTOOLS_DLL_DECL int tc_mallopt(int cmd, int value) PERFTOOLS_NOTHROW;
/* Fields of 32 bits, in which large numbers wrap. */
PERFTOOLS_DLL_DECL struct mallinfo tc_mallinfo(void) PERFTOOLS_NOTHROW;
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 33))
PERFTOOLS_DLL_DECL struct mallinfo2 tc_mallinfo2(void) PERFTOOLS_NOTHROW;
#endif
/* Returns the bytes that the owner of the block may use; 0 for null. Aborts on any other pointer
 * that is not a block of this allocator. */
PERFTOOLS_DLL_DECL size_t tc_malloc_size(void* ptr) PERFTOOLS_NOTHROW;

#ifdef __cplusplus

/* Lets malloc and its kin call the new handler too (1) or not (0, the default). Returns the
 * previous mode. */
PERFTOOLS_DLL_DECL int tc_set_new_mode(int flag) PERFTOOLS_NOTHROW;

PERFTOOLS_DLL_DECL void* tc_new(size_t size);
PERFTOOLS_DLL_DECL void* tc_new_nothrow(size_t size, const std::nothrow_t&) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_delete(void* p) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_delete_sized(void* p, size_t size) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_delete_nothrow(void* p, const std::nothrow_t&) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void* tc_newarray(size_t size);
PERFTOOLS_DLL_DECL void* tc_newarray_nothrow(size_t size, const std::nothrow_t&) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_deletearray(void* p) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_deletearray_sized(void* p, size_t size) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_deletearray_nothrow(void* p, const std::nothrow_t&) PERFTOOLS_NOTHROW;

#if __cplusplus >= 201703L
PERFTOOLS_DLL_DECL void* tc_new_aligned(size_t size, std::align_val_t al);
PERFTOOLS_DLL_DECL void* tc_new_aligned_nothrow(size_t size, std::align_val_t al,
                                                const std::nothrow_t&) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_delete_aligned(void* p, std::align_val_t al) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_delete_sized_aligned(void* p, size_t size,
                                                std::align_val_t al) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_delete_aligned_nothrow(void* p, std::align_val_t al,
                                                  const std::nothrow_t&) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void* tc_newarray_aligned(size_t size, std::align_val_t al);
PERFTOOLS_DLL_DECL void* tc_newarray_aligned_nothrow(size_t size, std::align_val_t al,
                                                     const std::nothrow_t&) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_deletearray_aligned(void* p, std::align_val_t al) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_deletearray_sized_aligned(void* p, size_t size,
                                                     std::align_val_t al) PERFTOOLS_NOTHROW;
PERFTOOLS_DLL_DECL void tc_deletearray_aligned_nothrow(void* p, std::align_val_t al,
                                                       const std::nothrow_t&) PERFTOOLS_NOTHROW;
#endif

} /* extern "C" */

#endif /* __cplusplus */

/* Undefined again, because programs have macros of this name with other contents. */
#undef PERFTOOLS_NOTHROW

#endif /* TCMALLOC_INCLUDE_GPERFTOOLS_TCMALLOC_H_ */
