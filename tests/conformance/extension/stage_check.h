// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// For programs that do the same at several stages of a process: ends the process where a condition
// does not hold, and says which and when.

#ifndef TCMALLOC_TESTS_CONFORMANCE_EXTENSION_STAGE_CHECK_H_
#define TCMALLOC_TESTS_CONFORMANCE_EXTENSION_STAGE_CHECK_H_

#include <cstdio>
#include <cstdlib>

inline const char* stage = "";

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, stage, #condition); \
      std::abort();                                                                   \
    }                                                                                 \
  } while (false)

#endif  // TCMALLOC_TESTS_CONFORMANCE_EXTENSION_STAGE_CHECK_H_
