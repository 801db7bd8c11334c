// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of LeakSanitizer, for programs that were written for it. They are weak, so that the
// sanitizer's own come first.

#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "heap/heap.h"
#include "leak_check/block_recorder.h"
#include "leak_check/leak_checker.h"

#define TCMALLOC_WEAK_EXPORT TCMALLOC_EXPORT __attribute__((weak))

using tcmalloc::block_recorder;
using tcmalloc::leak_checker;

namespace {

tcmalloc::Range RangeOf(const void* start, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(start);
  return {begin, begin + bytes};
}

}  // namespace

extern "C" {

TCMALLOC_WEAK_EXPORT void __lsan_disable() {
  if (leak_checker.active()) block_recorder.BeginIgnoring();
}
TCMALLOC_WEAK_EXPORT void __lsan_enable() {
  if (leak_checker.active()) block_recorder.EndIgnoring();
}

TCMALLOC_WEAK_EXPORT void __lsan_ignore_object(const void* object) {
  if (leak_checker.active() && object != nullptr) {
    static_cast<void>(leak_checker.AddLiveWord(reinterpret_cast<uintptr_t>(object)));
  }
}

TCMALLOC_WEAK_EXPORT void __lsan_register_root_region(const void* start, size_t bytes) {
  if (leak_checker.active()) leak_checker.AddRootRegion(RangeOf(start, bytes));
}
TCMALLOC_WEAK_EXPORT void __lsan_unregister_root_region(const void* start, size_t bytes) {
  if (leak_checker.active()) leak_checker.RemoveRootRegion(RangeOf(start, bytes));
}

// Returns 1 if there are leaks.
TCMALLOC_WEAK_EXPORT int __lsan_do_recoverable_leak_check() {
  return leak_checker.CheckProgram(false).objects > 0 ? 1 : 0;
}

// Makes the check of the exit now, and ends the program if there are leaks.
TCMALLOC_WEAK_EXPORT void __lsan_do_leak_check() {
  if (!leak_checker.checks_program()) return;
  leak_checker.CancelCheckAtExit();
  const bool leaks = leak_checker.CheckProgram(false).objects > 0;
  const uint64_t status = tcmalloc::heap.options().heap_check_exit_code;
  if (leaks && status != 0) ::_exit(static_cast<int>(status));
}

}  // extern "C"
