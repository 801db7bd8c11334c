/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Captures call stacks. For C++. The functions are in the libraries with profiling.
 *
 * Every function is thread safe, may be called in signal handlers, allocates nothing, takes no lock
 * and keeps errno. Each stores at most `max_depth` addresses of code, the innermost first, leaves
 * out the first `skip_count` of them, and returns their number. With a skip_count of 0 the first
 * address is in the function that called it; with 1, in the caller of that function.
 */

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_STACKTRACE_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_STACKTRACE_H_

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

/* Stores in `sizes` the bytes of each frame on the stack, too; 0 where they are not known. */
PERFTOOLS_DLL_DECL int GetStackFrames(void** result, int* sizes, int max_depth, int skip_count);

/* Captures the stack that a signal handler interrupted: `uc` is the handler's third argument. Skip
 * counts begin at the handler, which has two frames: with up to 2, the first address is that of the
 * interrupted instruction; with 3, it is that of its caller. If `uc` is null, the stack of the
 * calling function is captured. */
PERFTOOLS_DLL_DECL int GetStackFramesWithContext(void** result, int* sizes, int max_depth,
                                                 int skip_count, const void* uc);

PERFTOOLS_DLL_DECL int GetStackTrace(void** result, int max_depth, int skip_count);

PERFTOOLS_DLL_DECL int GetStackTraceWithContext(void** result, int max_depth, int skip_count,
                                                const void* uc);

#endif /* TCMALLOC_INCLUDE_GPERFTOOLS_STACKTRACE_H_ */
