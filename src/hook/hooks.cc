// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hook/hooks.h"

#include <cerrno>
#include <cstdint>

namespace tcmalloc {
namespace {

enum class HookState : uint8_t { kOutside, kInside, kResizing };

constinit thread_local HookState hook_state TCMALLOC_INITIALIZED_TLS
    __attribute__((tls_model("initial-exec"))) = HookState::kOutside;

template <typename Hook, typename... Arguments>
void InvokeNested(const Replacement<Hook>& nested, Arguments... arguments) {
  const Hook hook = nested.get();
  if (hook == nullptr) return;
  const HookState interrupted = hook_state;
  hook_state = HookState::kInside;
  hook(arguments...);
  hook_state = interrupted;
}

template <typename Hook, typename... Arguments>
void InvokeForBlock(const HookList<Hook>& list, const Replacement<Hook>& nested,
                    Arguments... arguments) {
  const HookScope scope;
  if (!scope.entered()) return InvokeNested(nested, arguments...);
  list.ForEach([=](Hook hook) { hook(arguments...); });
}

}  // namespace

constinit Hooks hooks;

HookScope::HookScope() : saved_errno_(errno), entered_(hook_state == HookState::kOutside) {
  if (entered_) hook_state = HookState::kInside;
}

HookScope::~HookScope() {
  if (entered_) hook_state = HookState::kOutside;
  errno = saved_errno_;
}

void* ReportNew(void* block, size_t size) {
  if (block != nullptr) InvokeForBlock(hooks.new_block, hooks.nested_new, block, size);
  return block;
}

void ReportDelete(const void* block) {
  InvokeForBlock(hooks.delete_block, hooks.nested_delete, block);
}

void ReportResized(void* block, size_t size) {
  const HookScope scope;
  if (!scope.entered()) return InvokeNested(hooks.nested_new, block, size);
  hook_state = HookState::kResizing;
  hooks.delete_block.ForEach([=](MallocHook_DeleteHook hook) { hook(block); });
  hook_state = HookState::kInside;
  hooks.new_block.ForEach([=](MallocHook_NewHook hook) { hook(block, size); });
}

bool BlockStays() { return hook_state == HookState::kResizing; }

}  // namespace tcmalloc
