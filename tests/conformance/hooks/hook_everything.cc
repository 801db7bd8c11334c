// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Preloaded together with the allocator: hooks of new and delete in a program that knows nothing of
// them. Every so many blocks they are set or removed, by whichever thread comes by.

#include <gperftools/malloc_hook_c.h>

#include <atomic>
#include <cstdlib>

namespace {

constexpr unsigned kBlocksBetweenChanges = 997;

std::atomic<unsigned> events{0};
std::atomic<bool> delete_hook_set{false};

void HearDelete(const void* block) {
  if (block == nullptr) std::abort();
}

// Keeps the hook of new for good, or nobody would call it again, and changes that of delete.
void HearNew(const void* block, size_t) {
  if (block == nullptr) std::abort();
  if (events.fetch_add(1, std::memory_order_relaxed) % kBlocksBetweenChanges != 0) return;
  if (!delete_hook_set.exchange(true)) {
    if (MallocHook_AddDeleteHook(HearDelete) == 0) std::abort();
  } else {
    MallocHook_RemoveDeleteHook(HearDelete);
    delete_hook_set = false;
  }
}

__attribute__((constructor)) void SetHooks() {
  if (MallocHook_AddNewHook(HearNew) == 0) std::abort();
}

}  // namespace
