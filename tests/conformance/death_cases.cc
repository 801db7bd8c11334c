// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Misuse of the malloc API, one child process each: what must abort does so with its message, and
// what cannot be noticed does no silent harm.

#include "conformance/deaths.h"

namespace {
constexpr std::size_t kLeastCases = 300;
}

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  Suite suite;
  AddInvalidFreeDeaths(suite);
  AddDoubleFreeDeaths(suite);
  AddOverwriteDeaths(suite);
  AddWrongSizeDeaths(suite);
  return suite.Main(argc, argv, kLeastCases);
}
