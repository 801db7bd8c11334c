/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * The heap profiler, which records every block between its start and its end. Compatible with the
 * header of gperftools. libtcmalloc has these functions, libtcmalloc_minimal does not. */

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_HEAP_PROFILER_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_HEAP_PROFILER_H_

#include <stddef.h>

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Each may be called by any thread. HeapProfilerDump may be called by signal handlers as well. */

/* Starts to record blocks, and writes profiles to the files prefix.0001.heap, prefix.0002.heap and
 * so on, at the intervals that the environment variables HEAP_PROFILE_..._INTERVAL set, and when
 * the program exits. Does nothing while the profiler is running. Copies `prefix`. */
PERFTOOLS_DLL_DECL void HeapProfilerStart(const char* prefix);

/* Returns 1 while the profiler is running, started by a call or by the variable HEAPPROFILE, and 0
 * otherwise. */
PERFTOOLS_DLL_DECL int IsHeapProfilerRunning(void);

/* Ends it, without a last profile. */
PERFTOOLS_DLL_DECL void HeapProfilerStop(void);

/* Writes a profile now. `reason`, which may be null, is printed on stderr. Does nothing unless the
 * profiler is running. */
PERFTOOLS_DLL_DECL void HeapProfilerDump(const char* reason);

/* Returns the text of a profile, which the caller frees. It is empty unless the profiler is
 * running. Returns NULL if there is no memory for it. */
PERFTOOLS_DLL_DECL char* GetHeapProfile(void);

#ifdef __cplusplus
}
#endif

#endif /* TCMALLOC_INCLUDE_GPERFTOOLS_HEAP_PROFILER_H_ */
