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

void* CallNewNoThrow(NewOperator operator_new, size_t size) {
  try {
    return operator_new(size);
  } catch (...) {
    return nullptr;
  }
}

void* CallNewNoThrow(AlignedNewOperator operator_new, size_t size, std::align_val_t alignment) {
  try {
    return operator_new(size, alignment);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace tcmalloc
