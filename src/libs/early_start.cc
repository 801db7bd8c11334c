// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Makes malloc work in the resolver of an indirect function (IFUNC) of the program. Resolvers run
// while the dynamic linker relocates, when thread-local variables still read as zero, but
// current_thread must always name a header. So this library has a resolver of its own, which runs
// before those of all objects that depend on the library. Only the shared library needs it: in a
// static program, resolvers run before there is any thread-local storage.

#include "base/attributes.h"
#include "thread/current_thread.h"

namespace tcmalloc {
namespace {

using Nothing = void (*)();

void DoNothing() {}

}  // namespace

extern "C" {

// Called by the dynamic linker, which initializes the variable again afterwards.
__attribute__((visibility("hidden"))) Nothing tcmalloc_resolve_early_start() {
  InitializeCurrentThread();
  return DoNothing;
}

__attribute__((visibility("hidden"), ifunc("tcmalloc_resolve_early_start"))) void
tcmalloc_early_start();

// The reference that makes the linker emit the relocation.
TCMALLOC_RETAINED __attribute__((visibility("hidden"))) Nothing tcmalloc_early_start_reference =
    tcmalloc_early_start;

}  // extern "C"

}  // namespace tcmalloc
