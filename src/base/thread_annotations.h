// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Names for clang's thread-safety analysis; they vanish under other compilers.

#ifndef TCMALLOC_BASE_THREAD_ANNOTATIONS_H_
#define TCMALLOC_BASE_THREAD_ANNOTATIONS_H_

#if defined(__clang__)
#define TCMALLOC_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define TCMALLOC_THREAD_ATTRIBUTE(x)
#endif

#define TCMALLOC_CAPABILITY(name) TCMALLOC_THREAD_ATTRIBUTE(capability(name))
#define TCMALLOC_SCOPED_CAPABILITY TCMALLOC_THREAD_ATTRIBUTE(scoped_lockable)
#define TCMALLOC_GUARDED_BY(x) TCMALLOC_THREAD_ATTRIBUTE(guarded_by(x))
#define TCMALLOC_PT_GUARDED_BY(x) TCMALLOC_THREAD_ATTRIBUTE(pt_guarded_by(x))
#define TCMALLOC_REQUIRES(...) TCMALLOC_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TCMALLOC_EXCLUDES(...) TCMALLOC_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define TCMALLOC_ACQUIRE(...) TCMALLOC_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TCMALLOC_RELEASE(...) TCMALLOC_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TCMALLOC_TRY_ACQUIRE(...) TCMALLOC_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define TCMALLOC_RETURN_CAPABILITY(x) TCMALLOC_THREAD_ATTRIBUTE(lock_returned(x))
#define TCMALLOC_NO_THREAD_SAFETY_ANALYSIS TCMALLOC_THREAD_ATTRIBUTE(no_thread_safety_analysis)

#endif  // TCMALLOC_BASE_THREAD_ANNOTATIONS_H_
