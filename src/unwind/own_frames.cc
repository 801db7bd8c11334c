// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/own_frames.h"

#include <sys/auxv.h>

#include <atomic>

#include "system/system_calls.h"
#include "unwind/loaded_objects.h"

namespace tcmalloc {
namespace {

// Where the library is mapped, once somebody has asked; of no bytes if it is a part of the program.
struct OwnLibrary {
  std::atomic<uintptr_t> start{0};
  std::atomic<uintptr_t> end{0};
};
constinit OwnLibrary own_library;

// Two threads that find it at a time store the same.
void FindOwnLibrary() {
  LoadedObject object;
  const auto self = reinterpret_cast<uintptr_t>(&IsOfOwnLibrary);
  const bool is_library = FindLoadedObject(self, /*runs=*/true, &object) &&
                          !object.Contains(system_calls.getauxval(AT_ENTRY));
  SetOwnLibrary(is_library ? object.start : UINTPTR_MAX, is_library ? object.end : UINTPTR_MAX);
}

}  // namespace

bool IsOfOwnLibrary(uintptr_t pc) {
  // Acquire pairs with the release in SetOwnLibrary and makes the end visible.
  if (own_library.start.load(std::memory_order_acquire) == 0) FindOwnLibrary();
  const uintptr_t start = own_library.start.load(std::memory_order_relaxed);
  return pc - start < own_library.end.load(std::memory_order_relaxed) - start;
}

void SetOwnLibrary(uintptr_t start, uintptr_t end) {
  own_library.end.store(end, std::memory_order_relaxed);
  // Release pairs with the acquire in IsOfOwnLibrary and publishes the end.
  own_library.start.store(start, std::memory_order_release);
}

}  // namespace tcmalloc
