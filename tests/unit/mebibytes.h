// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Sizes in MiB, as bytes and as pages.

#ifndef TCMALLOC_TESTS_UNIT_MEBIBYTES_H_
#define TCMALLOC_TESTS_UNIT_MEBIBYTES_H_

#include <cstdint>

#include "pages/page_types.h"
#include "unit/bytes.h"

namespace tcmalloc::testing {

constexpr Length MiB(uint64_t n) { return Length::FromBytesCeil(n * kMiB); }

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_MEBIBYTES_H_
