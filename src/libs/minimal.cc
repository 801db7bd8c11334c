// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// libtcmalloc_minimal: the allocator without profiling.

#include "extension/report.h"
#include "heap/fork.h"

namespace {

// fork may be called before anything was allocated.
__attribute__((constructor)) void OnLoad() { tcmalloc::RegisterForkHandlers(); }

__attribute__((destructor)) void OnExit() { tcmalloc::WriteExitReports(); }

}  // namespace
