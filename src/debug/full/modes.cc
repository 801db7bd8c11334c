// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/debug_mode.h"
#include "hardened/hardened_mode.h"
#include "heap/mode.h"

namespace tcmalloc {

Modes ModesOfLibrary() {
  return {.start_hardened = StartHardenedMode, .start_debug = StartDebugMode};
}

}  // namespace tcmalloc
