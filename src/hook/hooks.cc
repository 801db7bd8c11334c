// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hook/hooks.h"

#include <cerrno>

namespace tcmalloc {
namespace {

constinit thread_local bool inside_hook TCMALLOC_INITIALIZED_TLS
    __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

constinit Hooks hooks;

HookScope::HookScope() : saved_errno_(errno), entered_(!inside_hook) { inside_hook = true; }

HookScope::~HookScope() {
  if (entered_) inside_hook = false;
  errno = saved_errno_;
}

void* ReportNew(void* block, size_t size) {
  if (block != nullptr) Invoke(hooks.new_block, block, size);
  return block;
}

void ReportDelete(const void* block) { Invoke(hooks.delete_block, block); }

}  // namespace tcmalloc
