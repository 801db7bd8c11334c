// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hook/hooks.h"

#include <cerrno>
#include <cstdint>

namespace tcmalloc {
namespace {

enum class HookState : uint8_t { kOutside, kInside, kResizing };

constinit thread_local HookState hook_state TCMALLOC_INITIALIZED_TLS
    __attribute__((tls_model("initial-exec"))) = HookState::kOutside;

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
  if (block != nullptr) Invoke(hooks.new_block, block, size);
  return block;
}

void ReportDelete(const void* block) { Invoke(hooks.delete_block, block); }

void ReportResized(void* block, size_t size) {
  const HookScope scope;
  if (!scope.entered()) return;
  hook_state = HookState::kResizing;
  hooks.delete_block.ForEach([=](MallocHook_DeleteHook hook) { hook(block); });
  hook_state = HookState::kInside;
  hooks.new_block.ForEach([=](MallocHook_NewHook hook) { hook(block, size); });
}

bool BlockStays() { return hook_state == HookState::kResizing; }

}  // namespace tcmalloc
