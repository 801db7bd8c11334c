/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the program that are called when memory is allocated, freed, mapped or unmapped.
 * Names and types are those of gperftools 2.10 to 2.18. For C from C89 on and for C++ from C++98
 * on; gperftools/malloc_hook.h has the same as a class.
 *
 * Hooks. Each kind has a list of up to seven. Add returns 1, or 0 if the list is full or the hook
 * is null; a hook that is added twice is called twice. Remove takes out one and returns 1, or 0 if
 * the hook is not in the list. The order of the calls is not defined. Writes that a thread made
 * before it added a hook are visible to the hook. A hook is called for every later event of the
 * thread that added it. Other threads follow within the same call if the kernel has membarrier,
 * which it has since Linux 4.14, and otherwise once they miss their caches. A call that is on its
 * way when a hook is removed may still reach it.
 *
 * Threads. Hooks are called by the thread that allocates or maps, many of them at a time, without
 * any lock of the allocator. The functions here are thread safe. They may be called anywhere,
 * except that a signal handler may not add hooks of new and delete.
 *
 * Permissions. A hook may allocate, free, map and unmap, and add and remove hooks; hooks that it
 * adds are not called for the present event. Events of its thread are not reported while a hook
 * runs. errno is restored when it returns. It must return: no exception, no longjmp.
 *
 * While no hook is set, malloc and free do not look for any. While one of new or delete is set,
 * every malloc and free of every thread takes a slower path.
 */

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_HOOK_C_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_HOOK_C_H_

#include <stddef.h>
#include <sys/types.h>

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Captures the stack of the allocator's caller, for a hook: up to `max_depth` return addresses, the
 * innermost first, without the first `skip_count`. Returns their number. The minimal library cannot
 * walk stacks and returns 0. */
PERFTOOLS_DLL_DECL int MallocHook_GetCallerStackTrace(void** result, int max_depth, int skip_count);

/* After an allocation by any entry point: the block, never null, and the size that was asked for.
 * realloc is reported as one deletion and one allocation, whether the block moves or not. */
typedef void (*MallocHook_NewHook)(const void* ptr, size_t size);
PERFTOOLS_DLL_DECL int MallocHook_AddNewHook(MallocHook_NewHook hook);
PERFTOOLS_DLL_DECL int MallocHook_RemoveNewHook(MallocHook_NewHook hook);

/* Before a block is freed: its contents are still there. Never for null. */
typedef void (*MallocHook_DeleteHook)(const void* ptr);
PERFTOOLS_DLL_DECL int MallocHook_AddDeleteHook(MallocHook_DeleteHook hook);
PERFTOOLS_DLL_DECL int MallocHook_RemoveDeleteHook(MallocHook_DeleteHook hook);

/* The hooks below are called for the names mmap, mmap64, munmap, mremap and sbrk of this library:
 * for calls of the program and of its libraries, but not for those that libc makes for itself, nor
 * for those of the heap. */

/* Before mmap or mmap64, with its arguments. */
typedef void (*MallocHook_PreMmapHook)(const void* start, size_t size, int protection, int flags,
                                       int fd, off_t offset);
PERFTOOLS_DLL_DECL int MallocHook_AddPreMmapHook(MallocHook_PreMmapHook hook);
PERFTOOLS_DLL_DECL int MallocHook_RemovePreMmapHook(MallocHook_PreMmapHook hook);

/* After mmap or mmap64; `result` is MAP_FAILED if it failed. */
typedef void (*MallocHook_MmapHook)(const void* result, const void* start, size_t size,
                                    int protection, int flags, int fd, off_t offset);
PERFTOOLS_DLL_DECL int MallocHook_AddMmapHook(MallocHook_MmapHook hook);
PERFTOOLS_DLL_DECL int MallocHook_RemoveMmapHook(MallocHook_MmapHook hook);

/* In place of mmap: returns nonzero if it has done the call and set *result, and errno if that is
 * MAP_FAILED; returns 0 to have the system called. There is at most one: Set returns 0 while
 * another one is there, Remove unless `hook` is the one. */
typedef int (*MallocHook_MmapReplacement)(const void* start, size_t size, int protection, int flags,
                                          int fd, off_t offset, void** result);
PERFTOOLS_DLL_DECL int MallocHook_SetMmapReplacement(MallocHook_MmapReplacement hook);
PERFTOOLS_DLL_DECL int MallocHook_RemoveMmapReplacement(MallocHook_MmapReplacement hook);

/* Before munmap, with its arguments. */
typedef void (*MallocHook_MunmapHook)(const void* ptr, size_t size);
PERFTOOLS_DLL_DECL int MallocHook_AddMunmapHook(MallocHook_MunmapHook hook);
PERFTOOLS_DLL_DECL int MallocHook_RemoveMunmapHook(MallocHook_MunmapHook hook);

/* In place of munmap, with the same rules. */
typedef int (*MallocHook_MunmapReplacement)(const void* ptr, size_t size, int* result);
PERFTOOLS_DLL_DECL int MallocHook_SetMunmapReplacement(MallocHook_MunmapReplacement hook);
PERFTOOLS_DLL_DECL int MallocHook_RemoveMunmapReplacement(MallocHook_MunmapReplacement hook);

/* After mremap; `result` is MAP_FAILED if it failed. */
typedef void (*MallocHook_MremapHook)(const void* result, const void* old_addr, size_t old_size,
                                      size_t new_size, int flags, const void* new_addr);
PERFTOOLS_DLL_DECL int MallocHook_AddMremapHook(MallocHook_MremapHook hook);
PERFTOOLS_DLL_DECL int MallocHook_RemoveMremapHook(MallocHook_MremapHook hook);

/* Before sbrk, and after it with the previous end of the data segment or (void*)-1. Never for an
 * increment of 0, which only queries the end. */
typedef void (*MallocHook_PreSbrkHook)(ptrdiff_t increment);
PERFTOOLS_DLL_DECL int MallocHook_AddPreSbrkHook(MallocHook_PreSbrkHook hook);
PERFTOOLS_DLL_DECL int MallocHook_RemovePreSbrkHook(MallocHook_PreSbrkHook hook);

typedef void (*MallocHook_SbrkHook)(const void* result, ptrdiff_t increment);
PERFTOOLS_DLL_DECL int MallocHook_AddSbrkHook(MallocHook_SbrkHook hook);
PERFTOOLS_DLL_DECL int MallocHook_RemoveSbrkHook(MallocHook_SbrkHook hook);

/* Deprecated. Each list has an eighth place, which these functions set, or empty if `hook` is null.
 * They return its previous content. */
PERFTOOLS_DLL_DECL MallocHook_NewHook MallocHook_SetNewHook(MallocHook_NewHook hook);
PERFTOOLS_DLL_DECL MallocHook_DeleteHook MallocHook_SetDeleteHook(MallocHook_DeleteHook hook);
PERFTOOLS_DLL_DECL MallocHook_PreMmapHook MallocHook_SetPreMmapHook(MallocHook_PreMmapHook hook);
PERFTOOLS_DLL_DECL MallocHook_MmapHook MallocHook_SetMmapHook(MallocHook_MmapHook hook);
PERFTOOLS_DLL_DECL MallocHook_MunmapHook MallocHook_SetMunmapHook(MallocHook_MunmapHook hook);
PERFTOOLS_DLL_DECL MallocHook_MremapHook MallocHook_SetMremapHook(MallocHook_MremapHook hook);
PERFTOOLS_DLL_DECL MallocHook_PreSbrkHook MallocHook_SetPreSbrkHook(MallocHook_PreSbrkHook hook);
PERFTOOLS_DLL_DECL MallocHook_SbrkHook MallocHook_SetSbrkHook(MallocHook_SbrkHook hook);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_HOOK_C_H_ */
