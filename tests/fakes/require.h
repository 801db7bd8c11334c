// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_FAKES_REQUIRE_H_
#define TCMALLOC_TESTS_FAKES_REQUIRE_H_

#include <cstdio>
#include <cstdlib>

namespace tcmalloc::testing {

// Unless `holds`, says what does not and ends the program with 1, without its handlers of exit.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_REQUIRE_H_
