// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library that needs no other one, and keeps blocks of its caller.

namespace {

[[gnu::used]] void* volatile kept[3000] = {};
// In memory that libc has beside the variables of the objects that the program began with.
[[gnu::used, gnu::tls_model("initial-exec")]] thread_local void* volatile kept_by_thread = nullptr;

}  // namespace

extern "C" {

void LonePluginKeep(void* block) { kept[2999] = block; }
void LonePluginKeepInThread(void* block) { kept_by_thread = block; }

}  // extern "C"
