// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/program_mappings.h"

#include <sys/mman.h>

#include "hook/hooks.h"

namespace tcmalloc {
namespace {

Range RangeAt(const void* start, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(start);
  return {begin, begin + (bytes + 4095) / 4096 * 4096};
}

void OnMmap(const void* result, const void* /*start*/, size_t size, int protection, int /*flags*/,
            int /*fd*/, off_t /*offset*/) {
  if (result == MAP_FAILED) return;
  const Range range = RangeAt(result, size);
  program_mappings.Remove(range);
  // Memory that is reserved first is often made writable later. Compilers at run time keep pointers
  // beside their code.
  const bool code_alone = (protection & (PROT_EXEC | PROT_WRITE)) == PROT_EXEC;
  if (!code_alone) program_mappings.Add(range);
}

void OnMunmap(const void* start, size_t size) { program_mappings.Remove(RangeAt(start, size)); }

void OnMremap(const void* result, const void* old_start, size_t old_size, size_t new_size,
              int /*flags*/, const void* /*new_start*/) {
  if (result == MAP_FAILED) return;
  program_mappings.Remove(RangeAt(old_start, old_size));
  program_mappings.Remove(RangeAt(result, new_size));
  program_mappings.Add(RangeAt(result, new_size));
}

}  // namespace

constinit MappingSet program_mappings;

void StartProgramMappings() {
  // A full list of hooks leaves the checker without mappings.
  static_cast<void>(hooks.mmap.Add(OnMmap) && hooks.munmap.Add(OnMunmap) &&
                    hooks.mremap.Add(OnMremap));
}

}  // namespace tcmalloc
