// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How many resident bytes an object of a given size costs when there are many of them.
#include <sys/mman.h>

#include "common/block.h"
#include "common/options.h"
#include "common/process_memory.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

// Where the addresses of the objects are kept: memory from the kernel, resident before the
// measurement begins and so not part of it.
void** MapResidentArray(uint64_t count) {
  void* array = mmap(nullptr, count * sizeof(void*), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (array == MAP_FAILED) Fail("no memory for the array of addresses");
  return static_cast<void**>(array);
}

int Main(int argc, char** argv) {
  uint64_t size = 16;
  uint64_t count = 2000000;
  Options options("space", "Resident bytes for each of many objects of one size.");
  options.Number("size", &size, 1, 1 << 30, "bytes in an object");
  options.Number("count", &count, 1, UINT64_MAX >> 8, "objects");
  options.Parse(argc, argv);

  void** objects = MapResidentArray(count);
  const uint64_t resident_before = ResidentBytes();
  const Stopwatch stopwatch;
  for (uint64_t i = 0; i < count; ++i) objects[i] = Allocate(size).address;
  Elapsed elapsed = stopwatch.Read();
  const uint64_t resident_after = ResidentBytes();
  const Stopwatch free_stopwatch;
  for (uint64_t i = 0; i < count; ++i) {
    Block block{objects[i], size};
    Release(&block);
  }
  elapsed += free_stopwatch.Read();
  Report(count, elapsed)
      .Add("bytes_per_object",
           static_cast<double>(resident_after - resident_before) / static_cast<double>(count))
      .Add("resident_after_free_bytes", ResidentBytes())
      .Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
