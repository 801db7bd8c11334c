// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A block that the program gives back, as it says.

#ifndef TCMALLOC_DEBUG_RELEASE_CLAIM_H_
#define TCMALLOC_DEBUG_RELEASE_CLAIM_H_

#include <cstddef>
#include <cstdint>

#include "debug/block_record.h"
#include "debug/program_stack.h"

namespace tcmalloc {

struct ReleaseClaim {
  static constexpr size_t kUnknown = SIZE_MAX;

  BlockFamily family = BlockFamily::kMalloc;
  size_t size = kUnknown;
  size_t alignment = kUnknown;
  const char* call = "free";
  CallSite site = {};  // where this library gives it back
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_RELEASE_CLAIM_H_
