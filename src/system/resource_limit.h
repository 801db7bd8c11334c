// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Limits of the process on what it takes of the system.

#ifndef TCMALLOC_SYSTEM_RESOURCE_LIMIT_H_
#define TCMALLOC_SYSTEM_RESOURCE_LIMIT_H_

#include <cstddef>

namespace tcmalloc {

// Returns the limit on a resource such as RLIMIT_AS; SIZE_MAX if there is none. May change errno.
size_t ResourceLimit(int resource);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RESOURCE_LIMIT_H_
