// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/own_operators.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <new>

#include "heap_profile/caller_stack.h"

namespace tcmalloc {
namespace {

template <typename Function>
const void* Address(Function* function) {
  return reinterpret_cast<const void*>(function);
}

}  // namespace

// The dynamic linker gives the addresses of the operators that come first in the process.
bool OperatorsAreReplaced() {
  using New = void* (*)(size_t);
  using AlignedNew = void* (*)(size_t, std::align_val_t);
  using Delete = void (*)(void*) noexcept;
  using SizedDelete = void (*)(void*, size_t) noexcept;
  using AlignedDelete = void (*)(void*, std::align_val_t) noexcept;
  const void* const operators[] = {
      Address(static_cast<New>(&operator new)),
      Address(static_cast<New>(&operator new[])),
      Address(static_cast<AlignedNew>(&operator new)),
      Address(static_cast<AlignedNew>(&operator new[])),
      Address(static_cast<Delete>(&operator delete)),
      Address(static_cast<Delete>(&operator delete[])),
      Address(static_cast<SizedDelete>(&operator delete)),
      Address(static_cast<SizedDelete>(&operator delete[])),
      Address(static_cast<AlignedDelete>(&operator delete)),
      Address(static_cast<AlignedDelete>(&operator delete[])),
  };
  return IsOwnCode(Address(&OperatorsAreReplaced)) &&
         !std::all_of(std::begin(operators), std::end(operators), IsOwnCode);
}

}  // namespace tcmalloc
