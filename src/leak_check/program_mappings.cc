// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/program_mappings.h"

#include <sys/mman.h>

#include "hook/hooks.h"
#include "system/own_memory.h"

namespace tcmalloc {
namespace {

Range RangeAt(const void* start, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(start);
  return {begin, begin + (bytes + 4095) / 4096 * 4096};
}

constinit UsedPages<sizeof(MappingSet)> used_pages;

// There while the hooks are.
MappingSet& Known() { return *program_mappings.get(); }

void Add(const Range& range) {
  Known().Add(range);
  const size_t end = Known().used_bytes();
  own_bytes.Add(used_pages.Use(end - 1, end));
}

void OnMmap(const void* result, const void* /*start*/, size_t size, int protection, int /*flags*/,
            int /*fd*/, off_t /*offset*/) {
  if (result == MAP_FAILED) return;
  const Range range = RangeAt(result, size);
  Known().Remove(range);
  // Memory that is reserved first is often made writable later. Compilers at run time keep pointers
  // beside their code.
  const bool code_alone = (protection & (PROT_EXEC | PROT_WRITE)) == PROT_EXEC;
  if (!code_alone) Add(range);
}

void OnMunmap(const void* start, size_t size) { Known().Remove(RangeAt(start, size)); }

void OnMremap(const void* result, const void* old_start, size_t old_size, size_t new_size,
              int /*flags*/, const void* /*new_start*/) {
  if (result == MAP_FAILED) return;
  Known().Remove(RangeAt(old_start, old_size));
  Known().Remove(RangeAt(result, new_size));
  Add(RangeAt(result, new_size));
}

// The allocator's own calls do not come here.
void OnSbrk(const void* result, ptrdiff_t increment) {
  const auto before = reinterpret_cast<uintptr_t>(result);
  if (before == UINTPTR_MAX) return;
  const uintptr_t now = before + static_cast<uintptr_t>(increment);
  if (increment > 0) {
    Add({before, now});
  } else {
    Known().Remove({now, before});
  }
}

}  // namespace

constinit MappedObject<MappingSet, MappedUse::kSparse> program_mappings;

void StartProgramMappings() {
  // A full list of hooks, or no memory, leaves the checker without mappings.
  static_cast<void>(program_mappings.GetOrMap() != nullptr && hooks.mmap.Add(OnMmap) &&
                    hooks.munmap.Add(OnMunmap) && hooks.mremap.Add(OnMremap) &&
                    hooks.sbrk.Add(OnSbrk));
}

}  // namespace tcmalloc
