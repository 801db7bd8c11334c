// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The process's one heap, which releases nothing by itself.

#ifndef TCMALLOC_TESTS_UNIT_HEAP_WHOLE_HEAP_TEST_H_
#define TCMALLOC_TESTS_UNIT_HEAP_WHOLE_HEAP_TEST_H_

#include <gtest/gtest.h>

#include "heap/heap.h"

namespace tcmalloc::testing {

class WholeHeapTest : public ::testing::Test {
 protected:
  WholeHeapTest() {
    heap.EnsureInitialized();
    heap.page_heap().set_release_rate(0);
  }
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_HEAP_WHOLE_HEAP_TEST_H_
