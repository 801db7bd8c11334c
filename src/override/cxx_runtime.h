// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions of the C++ library that operator new needs.

#ifndef TCMALLOC_OVERRIDE_CXX_RUNTIME_H_
#define TCMALLOC_OVERRIDE_CXX_RUNTIME_H_

#include <cstddef>
#include <new>

#include "system/own_operators.h"

namespace tcmalloc {

// There are two implementations; each library takes one. cxx_runtime_weak.cc uses the C++ library
// only if the process has one, so that a C program which runs on the shared library need not load
// it. cxx_runtime_strong.cc links it, for the static library.

[[noreturn]] void ThrowBadAlloc();

// Returns null if there is none.
std::new_handler CurrentNewHandler();

// Calls the handler. Returns false if it threw.
bool CallNewHandlerNoThrow(std::new_handler handler);

// Call an operator new of the program's. Return null if it threw.
void* CallNewNoThrow(NewOperator operator_new, size_t size);
void* CallNewNoThrow(AlignedNewOperator operator_new, size_t size, std::align_val_t alignment);

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_CXX_RUNTIME_H_
