// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Builds a large map, drops it, and gives the memory back to the system at once, as a server might
// after a rare large request. Left alone, the allocator gives it back as time passes.

#include <gperftools/malloc_extension.h>

#include <cstddef>
#include <cstdio>
#include <map>
#include <string>

namespace {

std::size_t Property(const char* name) {
  std::size_t value = 0;
  if (!MallocExtension::instance()->GetNumericProperty(name, &value)) {
    std::fprintf(stderr, "no property %s\n", name);
  }
  return value;
}

void Print(const char* when) {
  std::printf("%s: %zu KiB in use, %zu KiB in physical memory\n", when,
              Property("generic.current_allocated_bytes") / 1024,
              Property("generic.total_physical_bytes") / 1024);
}

}  // namespace

int main() {
  {
    std::map<int, std::string> map;
    for (int i = 0; i < 100'000; ++i) map.emplace(i, std::string(100, 'x'));
    Print("with the map");
  }
  Print("without it");
  MallocExtension::instance()->ReleaseFreeMemory();
  Print("given back");
}
