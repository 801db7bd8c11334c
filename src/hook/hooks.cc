// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hook/hooks.h"

#include <cerrno>
#include <cstdint>

namespace tcmalloc {
namespace {

enum class HookState : uint8_t { kOutside, kInside, kResizing };

constinit thread_local HookState hook_state TCMALLOC_INITIALIZED_TLS
    __attribute__((tls_model("initial-exec"))) = HookState::kOutside;

// The state in which nested hooks are called, where another hook was interrupted.
class NestedScope {
 public:
  NestedScope() : interrupted_(hook_state) { hook_state = HookState::kInside; }
  ~NestedScope() { hook_state = interrupted_; }
  NestedScope(const NestedScope&) = delete;
  NestedScope& operator=(const NestedScope&) = delete;

 private:
  const HookState interrupted_;
};

TCMALLOC_COLD void ReportNestedNew(const void* block, size_t size) {
  const NestedScope scope;
  if (const auto hook = hooks.nested_new.get()) hook(block, size);
}

TCMALLOC_COLD void ReportNestedDelete(const void* block) {
  const NestedScope scope;
  if (const auto hook = hooks.nested_delete.get()) hook(block);
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
  if (block == nullptr) return block;
  const HookScope scope;
  if (scope.entered()) {
    hooks.new_block.ForEach([=](MallocHook_NewHook hook) { hook(block, size); });
  } else {
    ReportNestedNew(block, size);
  }
  return block;
}

void ReportDelete(const void* block) {
  const HookScope scope;
  if (!scope.entered()) return ReportNestedDelete(block);
  hooks.delete_block.ForEach([=](MallocHook_DeleteHook hook) { hook(block); });
}

void ReportResized(void* block, size_t size) {
  const HookScope scope;
  if (!scope.entered()) return ReportNestedNew(block, size);
  hook_state = HookState::kResizing;
  hooks.delete_block.ForEach([=](MallocHook_DeleteHook hook) { hook(block); });
  hook_state = HookState::kInside;
  hooks.new_block.ForEach([=](MallocHook_NewHook hook) { hook(block, size); });
}

bool BlockStays() { return hook_state == HookState::kResizing; }

}  // namespace tcmalloc
