// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// For programs with profiles of samples alone, as unit tests are.

#include "heap/observer.h"

namespace tcmalloc {

void StartLeakCheck(const Options&) {}

}  // namespace tcmalloc
