// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The modes of TCMALLOC_MODE other than the default one, which are layers above.

#ifndef TCMALLOC_HEAP_MODE_H_
#define TCMALLOC_HEAP_MODE_H_

#include "options/options.h"

namespace tcmalloc {

// Sends all entry points to the hardened mode. Called once, before the program gets its first
// block. Returns false if there is no memory for it. Missing in a library without the mode.
__attribute__((weak)) bool StartHardenedMode(const Options& options);
// Likewise sends them to the debug heap.
__attribute__((weak)) void StartDebugMode();
// Defined by the debug libraries, which run in that mode whatever the options say.
__attribute__((weak)) bool IsDebugLibrary();

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_MODE_H_
