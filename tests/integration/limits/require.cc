// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "integration/limits/require.h"

#include <unistd.h>

#include <cstdio>

namespace tcmalloc::testing {

void Require(bool ok, const char* what, std::size_t figure, std::size_t wanted) {
  if (ok) return;
  dprintf(STDERR_FILENO, "failed: %s (%zu, wanted %zu)\n", what, figure, wanted);
  _exit(1);
}

}  // namespace tcmalloc::testing
