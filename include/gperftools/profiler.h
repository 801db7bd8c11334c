/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
 *
 * Takes CPU profiles. For C and C++. The functions are in libprofiler and
 * libtcmalloc_and_profiler. All are thread safe and keep errno.
 *
 * A program that has one of the libraries is also profiled as a whole if the environment variable
 * CPUPROFILE names a file.
 */

#ifndef TCMALLOC_INCLUDE_GPERFTOOLS_PROFILER_H_
#define TCMALLOC_INCLUDE_GPERFTOOLS_PROFILER_H_

#include <time.h>

#ifndef PERFTOOLS_DLL_DECL
#define PERFTOOLS_DLL_DECL __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Set all bytes to zero before you set a field. */
struct ProfilerOptions {
  /* If it is not null, a sample counts only if this function returns nonzero in the thread that was
   * interrupted. It is called in a signal handler. */
  int (*filter_in_thread)(void* arg);
  void* filter_in_thread_arg;
};

/* Begins a profile, which replaces the file `fname` when it is flushed or stopped: profile.proto,
 * compressed, if the name ends in .pb.gz, and else the binary format of gperftools. A relative name
 * is one in the directory that is the working directory now. Returns 0 if a profile is being taken
 * already, or if the file cannot be written or timers cannot be had, of which a line on stderr
 * tells. */
PERFTOOLS_DLL_DECL int ProfilerStart(const char* fname);

/* Works as ProfilerStart; `options` may be null. */
PERFTOOLS_DLL_DECL int ProfilerStartWithOptions(const char* fname,
                                                const struct ProfilerOptions* options);

/* Ends the profile and writes it. */
PERFTOOLS_DLL_DECL void ProfilerStop(void);

/* Writes what there is up to now, as a whole profile. Does nothing if none is being taken. */
PERFTOOLS_DLL_DECL void ProfilerFlush(void);

/* Do nothing. */
PERFTOOLS_DLL_DECL void ProfilerEnable(void);
PERFTOOLS_DLL_DECL void ProfilerDisable(void);

/* Returns nonzero if a profile is being taken. */
PERFTOOLS_DLL_DECL int ProfilingIsEnabledForAllThreads(void);

/* Gives the calling thread its timer at once. Not needed: all threads are found. */
PERFTOOLS_DLL_DECL void ProfilerRegisterThread(void);

struct ProfilerState {
  int enabled;             /* nonzero if a profile is being taken; else all is 0 */
  time_t start_time;       /* of this profile */
  char profile_name[1024]; /* the file, cut if its name is longer */
  int samples_gathered;
};
PERFTOOLS_DLL_DECL void ProfilerGetCurrentState(struct ProfilerState* state);

/* Stores the addresses of a stack, the innermost first and without the first `skip_count`, and
 * returns their number. `uc` is null for the stack of the caller, or else the third argument of a
 * signal handler, for the stack that it interrupted; skip counts are those of
 * GetStackTraceWithContext in gperftools/stacktrace.h. */
PERFTOOLS_DLL_DECL int ProfilerGetStackTrace(void** result, int max_depth, int skip_count,
                                             const void* uc);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TCMALLOC_INCLUDE_GPERFTOOLS_PROFILER_H_ */
