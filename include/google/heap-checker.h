// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The name that programs older than gperftools 2.0 include.

#ifndef TCMALLOC_INCLUDE_GOOGLE_HEAP_CHECKER_H_
#define TCMALLOC_INCLUDE_GOOGLE_HEAP_CHECKER_H_

#include <gperftools/heap-checker.h>

#endif  // TCMALLOC_INCLUDE_GOOGLE_HEAP_CHECKER_H_
