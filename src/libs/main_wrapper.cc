// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells the leak checker when the program's main function begins, after the constructors of all
// global objects, and when the program ends, before any destructor. A shared library has no other
// way to know.

#include <dlfcn.h>

#include <cstdint>

#include "base/attributes.h"
#include "leak_check/leak_checker.h"

namespace tcmalloc {
namespace {

using Main = int (*)(int, char**, char**);
using StartMain = int (*)(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                          void (*rtld_fini)(), void* stack_end);

Main program_main = nullptr;

int WrappedMain(int argc, char** argv, char** environment) {
  leak_checker.OnMainBegins(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
  return leak_checker.OnMainEnds(program_main(argc, argv, environment));
}

}  // namespace
}  // namespace tcmalloc

extern "C" {

__attribute__((visibility("hidden"))) extern const bool tcmalloc_wraps_main;
TCMALLOC_RETAINED const bool tcmalloc_wraps_main = true;

// libc's function, by which the first code of a program calls main. Programs that are not checked
// get their own main.
TCMALLOC_EXPORT int __libc_start_main(tcmalloc::Main main, int argc, char** argv, void (*init)(),
                                      void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  const auto start = reinterpret_cast<tcmalloc::StartMain>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  tcmalloc::program_main = main;
  const bool wrap = tcmalloc::leak_checker.IsWanted();
  return start(wrap ? tcmalloc::WrappedMain : main, argc, argv, init, fini, rtld_fini, stack_end);
}

// Calls libc's function, which runs the destructors.
TCMALLOC_EXPORT void exit(int status) {
  using Exit = void (*)(int status);
  // Processes without a check end without touching a page of the code that makes it.
  if (tcmalloc::program_main != nullptr && tcmalloc::leak_checker.active()) {
    tcmalloc::LeakChecker::ClearStack();
    status = tcmalloc::leak_checker.OnExitBegins(status);
  }
  reinterpret_cast<Exit>(::dlsym(RTLD_NEXT, "exit"))(status);
  __builtin_unreachable();
}

}  // extern "C"
