// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/free_mark.h"

#include <cstddef>
#include <new>

#include "system/own_memory.h"

namespace tcmalloc {

bool FreeMark::Initialize(const SectionDescriptor& section, uint64_t random) {
  constexpr size_t kPlaces = 4096 / sizeof(SectionDescriptor);
  void* places = MapZeroed(kPlaces * sizeof(SectionDescriptor));
  if (places == nullptr) return false;
  section_ =
      new (static_cast<SectionDescriptor*>(places) + random % kPlaces) SectionDescriptor(section);
  value_ = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(section_));
  return true;
}

}  // namespace tcmalloc
