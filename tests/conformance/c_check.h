/* Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

   For programs in C: ends the process where a condition does not hold, and says which. */

#ifndef TCMALLOC_TESTS_CONFORMANCE_C_CHECK_H_
#define TCMALLOC_TESTS_CONFORMANCE_C_CHECK_H_

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      abort();                                                        \
    }                                                                 \
  } while (0)

#endif /* TCMALLOC_TESTS_CONFORMANCE_C_CHECK_H_ */
