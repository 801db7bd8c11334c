// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Profiles that options ask for.

#ifndef TCMALLOC_HEAP_PROFILE_EXIT_PROFILES_H_
#define TCMALLOC_HEAP_PROFILE_EXIT_PROFILES_H_

#include "options/options.h"

namespace tcmalloc {

// Begins the profiles of the whole run that are wanted at exit. Called once, while the heap is
// being made. observer.h has WriteExitProfiles.
void BeginExitProfiles(const Options& options);

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_EXIT_PROFILES_H_
