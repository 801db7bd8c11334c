// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/heap_extension.h"
#include "extension/never_destroyed.h"

namespace tcmalloc {
namespace {

// Constant, because the object has no state.
constexpr NeverDestroyed<HeapExtension> kExtension;

}  // namespace

MallocExtension* ExtensionOfHeap() { return const_cast<HeapExtension*>(&kExtension.value); }

}  // namespace tcmalloc
