/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * MallocExtension for C: each function calls the method of the same name of the registered
 * extension, MallocExtension::instance(). gperftools/malloc_extension.h describes them. Results
 * of type int are 1 for true and 0 for false. All of it is thread safe.
 *
 * For C from C89 on and for C++ from C++98 on. Heap profiles, which are strings of C++, have no
 * function here.
 */

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_EXTENSION_C_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_EXTENSION_C_H_

#include <stddef.h>
#include <sys/types.h>

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define kMallocExtensionHistogramSize 64

PERFTOOLS_DLL_DECL int MallocExtension_VerifyAllMemory(void);
PERFTOOLS_DLL_DECL int MallocExtension_VerifyNewMemory(const void* p);
PERFTOOLS_DLL_DECL int MallocExtension_VerifyArrayNewMemory(const void* p);
PERFTOOLS_DLL_DECL int MallocExtension_VerifyMallocMemory(const void* p);
PERFTOOLS_DLL_DECL int MallocExtension_MallocMemoryStats(
    int* blocks, size_t* total, int histogram[kMallocExtensionHistogramSize]);

PERFTOOLS_DLL_DECL void MallocExtension_GetStats(char* buffer, int buffer_length);
/* Not in gperftools. Writes the statistics of the heap as an object of JSON on one line, cut to the
 * buffer and always ended by a zero byte. Returns the length of the whole line; a buffer of 128 KiB
 * always suffices. Allocates nothing. The object is empty in a signal handler that interrupted the
 * allocator. */
PERFTOOLS_DLL_DECL size_t MallocExtension_GetStatsJson(char* buffer, size_t buffer_length);
PERFTOOLS_DLL_DECL int MallocExtension_GetNumericProperty(const char* property, size_t* value);
PERFTOOLS_DLL_DECL int MallocExtension_SetNumericProperty(const char* property, size_t value);

PERFTOOLS_DLL_DECL void MallocExtension_MarkThreadIdle(void);
PERFTOOLS_DLL_DECL void MallocExtension_MarkThreadBusy(void);
PERFTOOLS_DLL_DECL void MallocExtension_MarkThreadTemporarilyIdle(void);
PERFTOOLS_DLL_DECL void MallocExtension_ReleaseToSystem(size_t num_bytes);
PERFTOOLS_DLL_DECL void MallocExtension_ReleaseFreeMemory(void);
PERFTOOLS_DLL_DECL void MallocExtension_SetMemoryReleaseRate(double rate);
PERFTOOLS_DLL_DECL double MallocExtension_GetMemoryReleaseRate(void);

PERFTOOLS_DLL_DECL size_t MallocExtension_GetEstimatedAllocatedSize(size_t size);
PERFTOOLS_DLL_DECL size_t MallocExtension_GetAllocatedSize(const void* p);
PERFTOOLS_DLL_DECL size_t MallocExtension_GetThreadCacheSize(void);

/* The numbers of MallocExtension::Ownership. */
typedef enum {
  MallocExtension_kUnknownOwnership = 0,
  MallocExtension_kOwned,
  MallocExtension_kNotOwned
} MallocExtension_Ownership;

PERFTOOLS_DLL_DECL MallocExtension_Ownership MallocExtension_GetOwnership(const void* p);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TCMALLOC_INCLUDE_GPERFTOOLS_MALLOC_EXTENSION_C_H_ */
