// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The program's hooks, and the functions that call them.

#ifndef TCMALLOC_HOOK_HOOKS_H_
#define TCMALLOC_HOOK_HOOKS_H_

#include <gperftools/malloc_hook_c.h>

#include <atomic>
#include <cstddef>

#include "base/attributes.h"
#include "hook/hook_list.h"

namespace tcmalloc {

// A function in place of something else, or null.
template <typename Function>
class Replacement {
 public:
  constexpr Replacement() = default;

  // Acquire pairs with the release in Exchange.
  Function get() const { return function_.load(std::memory_order_acquire); }
  // Returns false if `function` is null or there is one already.
  [[nodiscard]] bool Set(Function function) {
    return function != nullptr && Exchange(nullptr, function);
  }
  // Returns false unless `function` is the present one.
  [[nodiscard]] bool Remove(Function function) {
    return function != nullptr && Exchange(function, nullptr);
  }

 private:
  bool Exchange(Function from, Function to) {
    // Release pairs with the acquire in get and publishes the caller's earlier writes.
    return function_.compare_exchange_strong(from, to, std::memory_order_release,
                                             std::memory_order_relaxed);
  }

  std::atomic<Function> function_{nullptr};
};

// All hooks of the program. gperftools/malloc_hook_c.h says when each is called.
struct Hooks {
  HookList<MallocHook_NewHook> new_block;
  HookList<MallocHook_DeleteHook> delete_block;
  // Called instead of these for blocks of a hook, or of a signal handler that has interrupted one.
  Replacement<MallocHook_NewHook> nested_new;
  Replacement<MallocHook_DeleteHook> nested_delete;
  HookList<MallocHook_PreMmapHook> pre_mmap;
  HookList<MallocHook_MmapHook> mmap;
  HookList<MallocHook_MunmapHook> munmap;
  HookList<MallocHook_MremapHook> mremap;
  HookList<MallocHook_PreSbrkHook> pre_sbrk;
  HookList<MallocHook_SbrkHook> sbrk;
  Replacement<MallocHook_MmapReplacement> mmap_replacement;
  Replacement<MallocHook_MunmapReplacement> munmap_replacement;
};

extern constinit Hooks hooks;

// Returns true if there is a hook for blocks. No thread may then use a fast path.
inline bool BlocksAreWatched() { return !hooks.new_block.empty() || !hooks.delete_block.empty(); }

// The scope in which a thread calls hooks. Its allocations and mappings are not reported meanwhile,
// but for blocks to the nested ones.
// Keeps errno. Not to be entered with a lock held.
class HookScope {
 public:
  HookScope();
  ~HookScope();
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  // Returns false if a hook is running already.
  bool entered() const { return entered_; }

 private:
  int saved_errno_;
  bool entered_;
};

template <typename Hook, typename... Arguments>
void Invoke(const HookList<Hook>& list, Arguments... arguments) {
  if (TCMALLOC_LIKELY(list.empty())) return;
  const HookScope scope;
  if (!scope.entered()) return;
  list.ForEach([=](Hook hook) { hook(arguments...); });
}

// Reports an allocated block, unless it is null, and returns it.
TCMALLOC_COLD void* ReportNew(void* block, size_t size);
// Reports a block that will be freed.
TCMALLOC_COLD void ReportDelete(const void* block);
// Reports a block that has another size now, as the end of one block and the start of another.
TCMALLOC_COLD void ReportResized(void* block, size_t size);
// For hooks of deletions: returns true if the block stays where it is and the hooks of allocations
// are called for it next.
bool BlockStays();

}  // namespace tcmalloc

#endif  // TCMALLOC_HOOK_HOOKS_H_
