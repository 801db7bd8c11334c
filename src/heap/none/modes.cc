// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/mode.h"

namespace tcmalloc {

Modes ModesOfLibrary() { return {}; }

}  // namespace tcmalloc
