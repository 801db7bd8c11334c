// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_LIMITS_REQUIRE_H_
#define TCMALLOC_TESTS_INTEGRATION_LIMITS_REQUIRE_H_

#include <cstddef>

namespace tcmalloc::testing {

// Prints and exits with 1 unless `ok`.
void Require(bool ok, const char* what, std::size_t figure = 0, std::size_t wanted = 0);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_LIMITS_REQUIRE_H_
