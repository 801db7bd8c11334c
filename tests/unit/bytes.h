// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_UNIT_BYTES_H_
#define TCMALLOC_TESTS_UNIT_BYTES_H_

#include <cstdint>

namespace tcmalloc::testing {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_BYTES_H_
