// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells if the thread sanitizer watches. It does not see the assembly of cache/per_cpu, nor that
// threads which take turns on a CPU are ordered, and would call every object that moves between
// threads by a slab a data race.

#ifndef TCMALLOC_TESTS_FAKES_THREAD_SANITIZER_H_
#define TCMALLOC_TESTS_FAKES_THREAD_SANITIZER_H_

namespace tcmalloc::testing {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_THREAD_SANITIZER_H_
