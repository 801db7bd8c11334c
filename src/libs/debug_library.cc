// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What makes a library a debug library.

#include "heap/mode.h"

namespace tcmalloc {

bool IsDebugLibrary() { return true; }

}  // namespace tcmalloc
