// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_UNIT_LEAK_CHECK_OWN_MEMORY_MAP_H_
#define TCMALLOC_TESTS_UNIT_LEAK_CHECK_OWN_MEMORY_MAP_H_

#include "leak_check/memory_map.h"
#include "profile_format/maps_text.h"

namespace tcmalloc {

// Reads the mappings of this process as they are now.
[[nodiscard]] inline bool ReadOwn(MemoryMap* map) {
  MapsText text;
  return text.Read() && map->Read(text);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_TESTS_UNIT_LEAK_CHECK_OWN_MEMORY_MAP_H_
