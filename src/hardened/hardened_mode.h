// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The mode in which blocks are checked wherever they are freed: TCMALLOC_MODE=hardened.

#ifndef TCMALLOC_HARDENED_HARDENED_MODE_H_
#define TCMALLOC_HARDENED_HARDENED_MODE_H_

#include "options/options.h"

namespace tcmalloc {

// Sends all entry points to the hardened heap. Called once, before the program gets its first
// block. Returns false if there is no memory for it.
bool StartHardenedMode(const Options& options);

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_HARDENED_MODE_H_
