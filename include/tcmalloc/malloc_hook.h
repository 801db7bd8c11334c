// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions of the program that are called for the blocks that profiles sample: the interface of
// google/tcmalloc, with types of the standard library. For C++ from C++17 on. For functions that
// are called for every block see gperftools/malloc_hook.h.
//
// Only libraries with profiles have such hooks, libtcmalloc but not libtcmalloc_minimal.

#ifndef TCMALLOC_INCLUDE_TCMALLOC_MALLOC_HOOK_H_
#define TCMALLOC_INCLUDE_TCMALLOC_MALLOC_HOOK_H_

#include "tcmalloc/internal_malloc_extension.h"
#include "tcmalloc/sampled_allocation.h"

namespace tcmalloc {

class MallocHook final {
 public:
  MallocHook() = delete;

  using AllocHandle = SampledAllocation::Handle;
  using SampledAlloc = SampledAllocation;

  // Called in the thread that allocates or frees, after the allocator is done with it: holds no
  // lock of the allocator, and may allocate, free, add and remove hooks. Allocations of a hook are
  // reported to none. Must return in the ordinary way. errno is as before afterwards. Of a block
  // that moves by realloc both hooks are called; one that grows in place is not reported.
  //
  // The blocks that a hook of frees hears of are those that are sampled when they are freed,
  // whether a hook heard of their allocation or not. Another thread may have got the memory by
  // then.
  using SampledNewHook = void (*)(const SampledAlloc& sampled_alloc);
  using SampledDeleteHook = void (*)(const SampledAlloc& sampled_alloc);

  // Add a hook. Return false if it is null, if the list has seven already, or without the library.
  [[nodiscard]] static bool AddSampledNewHook(SampledNewHook hook) {
    return tcmalloc_add_sampled_hook != nullptr && tcmalloc_add_sampled_hook(false, hook);
  }
  [[nodiscard]] static bool AddSampledDeleteHook(SampledDeleteHook hook) {
    return tcmalloc_add_sampled_hook != nullptr && tcmalloc_add_sampled_hook(true, hook);
  }
  // Remove a hook. Return false if it is not in the list. Another thread may still be in it, or
  // about to call it.
  [[nodiscard]] static bool RemoveSampledNewHook(SampledNewHook hook) {
    return tcmalloc_remove_sampled_hook != nullptr && tcmalloc_remove_sampled_hook(false, hook);
  }
  [[nodiscard]] static bool RemoveSampledDeleteHook(SampledDeleteHook hook) {
    return tcmalloc_remove_sampled_hook != nullptr && tcmalloc_remove_sampled_hook(true, hook);
  }
  // Call all hooks of a list.
  static void InvokeSampledNewHook(const SampledAlloc& sampled_alloc) {
    if (tcmalloc_invoke_sampled_hooks != nullptr) {
      tcmalloc_invoke_sampled_hooks(false, &sampled_alloc);
    }
  }
  static void InvokeSampledDeleteHook(const SampledAlloc& sampled_alloc) {
    if (tcmalloc_invoke_sampled_hooks != nullptr) {
      tcmalloc_invoke_sampled_hooks(true, &sampled_alloc);
    }
  }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_INCLUDE_TCMALLOC_MALLOC_HOOK_H_
