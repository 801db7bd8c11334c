// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The edges of the malloc API: what each function must answer where programs rarely look.

#include "conformance/cases.h"

namespace {
constexpr std::size_t kLeastCases = 400;
}

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  Suite suite;
  AddSymbolCases(suite);
  AddSizeCases(suite);
  AddAlignmentCases(suite);
  AddReallocCases(suite);
  AddDeallocationCases(suite);
  AddNewHandlerCases(suite);
  AddUsableSizeCases(suite);
  AddStatisticsCases(suite);
  return suite.Main(argc, argv, kLeastCases);
}
