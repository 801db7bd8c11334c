// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/resource_limit.h"

#include <sys/resource.h>

#include <cstdint>

#include "system/system_calls.h"

namespace tcmalloc {

size_t ResourceLimit(int resource) {
  rlimit limit = {};
  const bool known = system_calls.getrlimit(resource, &limit) == 0;
  return known && limit.rlim_cur != RLIM_INFINITY ? static_cast<size_t>(limit.rlim_cur) : SIZE_MAX;
}

}  // namespace tcmalloc
