// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <new>

#include "base/message.h"
#include "override/cxx_runtime.h"
#include "system/cxx_library.h"

// All symbols of the C++ library that this file uses, weak, so that they stay null without one.
#pragma weak _ZSt17__throw_bad_allocv
#pragma weak _ZSt15get_new_handlerv
asm(".weak __gxx_personality_v0");
asm(".weak __cxa_begin_catch");
asm(".weak __cxa_end_catch");
asm(".weak _Unwind_Resume");

extern "C" {
void _ZSt17__throw_bad_allocv();
std::new_handler _ZSt15get_new_handlerv() noexcept;
}

namespace tcmalloc {

void ThrowBadAlloc() {
  auto* throw_bad_alloc = ResolveWeak(&_ZSt17__throw_bad_allocv, "_ZSt17__throw_bad_allocv");
  if (throw_bad_alloc != nullptr) throw_bad_alloc();
  Crash(Message() << "operator new: out of memory, and no C++ library to throw std::bad_alloc");
}

std::new_handler CurrentNewHandler() {
  auto* get_new_handler = ResolveWeak(&_ZSt15get_new_handlerv, "_ZSt15get_new_handlerv");
  return get_new_handler != nullptr ? get_new_handler() : nullptr;
}

// Only called with a handler, which only a process with a C++ library can have set.
bool CallNewHandlerNoThrow(std::new_handler handler) {
  try {
    handler();
    return true;
  } catch (...) {
    return false;
  }
}

// Only a process with a C++ library has operators of its own.
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
