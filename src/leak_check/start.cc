// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where the leak checker is entered from outside.

#define TCMALLOC_OPTIONAL
#include <tcmalloc/internal_malloc_extension.h>

#include <cerrno>

#include "heap/heap.h"
#include "heap/observer.h"
#include "leak_check/leak_checker.h"
#include "leak_check/report_stream.h"
#include "system/system_calls.h"

extern "C" {
// Part of the shared library alone: libs/main_wrapper.cc.
__attribute__((weak, visibility("hidden"))) extern const bool tcmalloc_wraps_main;
}

namespace tcmalloc {

void StartLeakCheck(const Options& options) { leak_checker.Start(options); }

namespace {

// Makes the function to which a header refers weakly a part of static programs, because weak
// references extract nothing from an archive.
TCMALLOC_RETAINED size_t (*const suspects_reference)(tcmalloc_leak_suspect*,
                                                     size_t) = tcmalloc_find_leak_suspects;

void KeepReportStream() {
  report_stream.Keep();
  system_calls.pthread_atfork(nullptr, nullptr, [] {
    const int saved_errno = errno;
    report_stream.Drop();
    errno = saved_errno;
  });
}

// Makes the heap, if nothing was allocated yet, because the block for which the heap is made is not
// recorded. Without the wrapper of main, this is also the last moment before it that is known.
__attribute__((constructor(101))) void OnLoad() {
  if (LeakChecker::IsWanted()) MakeHeap();
  if (leak_checker.active()) KeepReportStream();
  if (&tcmalloc_wraps_main == nullptr) leak_checker.OnMainBegins(0);
}

// Processes without a check end without touching a page of the code that makes it.

// Behind the destructors of the program and of most libraries.
__attribute__((destructor)) void OnExit() {
  if (leak_checker.active()) leak_checker.OnLastDestructors();
}
// Behind the destructors without a priority.
__attribute__((destructor(101))) void OnEnd() {
  if (leak_checker.active()) leak_checker.EndWithStatus();
}

}  // namespace
}  // namespace tcmalloc
