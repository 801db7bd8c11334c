// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <new>

#include "override/cxx_runtime.h"

namespace tcmalloc {

void ThrowBadAlloc() { throw std::bad_alloc(); }

std::new_handler CurrentNewHandler() { return std::get_new_handler(); }

bool CallNewHandlerNoThrow(std::new_handler handler) {
  try {
    handler();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace tcmalloc
