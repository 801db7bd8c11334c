// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/thread_state.h"

namespace tcmalloc {

constinit thread_local ThreadState thread_state TCMALLOC_INITIALIZED_TLS = {};

}  // namespace tcmalloc
