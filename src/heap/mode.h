// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The modes of TCMALLOC_MODE other than the default one, which are layers above.

#ifndef TCMALLOC_HEAP_MODE_H_
#define TCMALLOC_HEAP_MODE_H_

#include "options/options.h"

namespace tcmalloc {

// Functions that send all entry points to a mode; null where the library does not have it. Called
// once, before the program gets its first block.
struct Modes {
  // Returns false if there is no memory for it.
  bool (*start_hardened)(const Options& options) = nullptr;
  void (*start_debug)() = nullptr;
  // True of the debug libraries, which run in that mode whatever the options say.
  bool always_debug = false;
};

// Returns those of this library. Chosen by link: heap/none has none, debug/library those of the
// debug libraries, and debug/full all.
Modes ModesOfLibrary();

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_MODE_H_
