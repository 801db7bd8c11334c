// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Everything that is recorded for profiles.

#ifndef TCMALLOC_HEAP_PROFILE_PROFILES_H_
#define TCMALLOC_HEAP_PROFILE_PROFILES_H_

#include "heap_profile/sample_table.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// constinit, all zero and trivially destructible: usable before the first constructor and after the
// last destructor. Thread safe, without a lock; async-signal-safe.
struct Profiles {
  StackTable stacks;
  SampleTable samples;  // live now
};

extern constinit Profiles profiles;

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_PROFILES_H_
