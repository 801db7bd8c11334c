// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The running thread's cache, for tests of threads that are known to have one.

#ifndef TCMALLOC_TESTS_FAKES_CURRENT_CACHE_H_
#define TCMALLOC_TESTS_FAKES_CURRENT_CACHE_H_

#include "heap/heap.h"

namespace tcmalloc::testing {

inline Cache* CurrentCache() { return Cache::Of(current_thread.header()); }

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_CURRENT_CACHE_H_
