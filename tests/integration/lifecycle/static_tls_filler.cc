// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library that takes as much static thread-local storage as the allocator may. Copies of it are
// loaded until there is none left.

#include <array>

#include "integration/lifecycle/static_tls.h"

namespace {

alignas(32) thread_local std::array<char, tcmalloc::testing::kFillerBytes> filler
    __attribute__((tls_model("initial-exec"))) = {};

}  // namespace

// A reference, or the compiler would leave the variable out.
extern "C" char* FillerAddress() { return filler.data(); }
