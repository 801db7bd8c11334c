// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Compares what the allocator leaves of an address space with what libc's malloc leaves of one.
// Each figure is measured in two processes, one with the library and one without:
// address_space --measure NAME LIMIT.

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "conformance/child.h"
#include "conformance/suite.h"
#include "integration/limits/address_limit.h"
#include "integration/limits/address_space_in_use.h"
#include "integration/limits/kept_blocks.h"
#include "integration/limits/require.h"

namespace tcmalloc::testing {
namespace {

constexpr Size kLeastCases = 5;

// Returns the bytes that a process maps which allocates little.
Size MappedBytes(Size) {
  KeptBlocks blocks;
  for (Size i = 0; i < 100; ++i) Require(blocks.Grow(16 + i), "small block");
  const Size bytes = AddressSpaceInUse();
  blocks.FreeAll();
  return bytes;
}

// How many blocks of 100 kB a process has when it limits itself.
Size BlocksUnderLimit(Size limit) {
  KeptBlocks blocks;
  Require(blocks.Grow(100), "first block");
  LimitAddressSpace(limit);
  while (blocks.Grow(100'000)) continue;
  const Size count = blocks.count();
  blocks.FreeAll();
  KeptBlocks large;
  Require(large.Grow(8 * kMiB), "a block of 8 MiB after everything was freed");
  large.FreeAll();
  return count;
}

// How many bytes a process that starts under the limit has in blocks a little larger than 1 MiB.
Size BytesInLargeBlocks(Size) {
  constexpr Size kBlock = kMiB + 57;
  KeptBlocks blocks;
  while (blocks.Grow(kBlock)) continue;
  const Size count = blocks.count();
  blocks.FreeAll();
  return count * kBlock;
}

// Tells that a thread has allocated, and keeps it.
pthread_barrier_t allocated;

void* AllocateAndStay(void*) {
  void* const block = std::malloc(100);
  Require(block != nullptr, "block of a thread");
  pthread_barrier_wait(&allocated);
  for (;;) pause();
}

// How many threads with stacks of 8 MiB can be started, each of which allocates.
Size Threads(Size limit) {
  constexpr Size kMost = 1000;
  KeptBlocks blocks;
  Require(blocks.Grow(100), "first block");
  pthread_barrier_init(&allocated, nullptr, 2);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 8 * kMiB);
  LimitAddressSpace(limit);
  Size count = 0;
  pthread_t thread;
  while (count < kMost && pthread_create(&thread, &attributes, AllocateAndStay, nullptr) == 0) {
    pthread_barrier_wait(&allocated);
    ++count;
  }
  return count;
}

struct Measurement {
  const char* name;
  Size (*measure)(Size limit);
  bool limited_from_start;
};

constexpr Measurement kMeasurements[] = {
    {"mapped-bytes", MappedBytes, false},
    {"blocks", BlocksUnderLimit, false},
    {"large-blocks", BytesInLargeBlocks, true},
    {"threads", Threads, false},
};

int Measure(const char* name, const char* limit) {
  for (const Measurement& measurement : kMeasurements) {
    if (std::strcmp(measurement.name, name) != 0) continue;
    const Size figure = measurement.measure(std::strtoull(limit, nullptr, 10));
    dprintf(STDERR_FILENO, "%zu\n", figure);
    _exit(0);
  }
  return 2;
}

enum class Malloc : bool { kLibc, kLibrary };

Size FigureOf(Case& result, const Measurement& measurement, Malloc which, Size limit) {
  const ChildResult child = RunInChild([&] {
    if (measurement.limited_from_start) LimitAddressSpace(limit);
    if (which == Malloc::kLibc) unsetenv("LD_PRELOAD");
    execl("/proc/self/exe", "address_space", "--measure", measurement.name,
          std::to_string(limit).c_str(), nullptr);
    _exit(2);
  });
  if (!result.Check(child.Exited(0), measurement.name, "exit status 0", child)) return 0;
  return std::strtoull(child.errors.c_str(), nullptr, 10);
}

// The caches of CPUs take addresses for each CPU that the machine can have; what many take beyond
// those of a usual machine is granted.
Size GrantedForCpus() {
  constexpr Size kUsualCpus = 8;
  constexpr Size kBytesPerCpu = 512 * kKiB;
  const char* const front_end = std::getenv("TCMALLOC_FRONT_END");
  if (front_end == nullptr || std::strcmp(front_end, "per_cpu") != 0) return 0;
  const auto cpus = static_cast<Size>(std::max(sysconf(_SC_NPROCESSORS_CONF), 1L));
  return (cpus - std::min(cpus, kUsualCpus)) * kBytesPerCpu;
}

void ExpectFewMapped(Case& result) {
  constexpr Size kMostMore = 24 * kMiB;
  const Measurement& measurement = kMeasurements[0];
  const Size libc = FigureOf(result, measurement, Malloc::kLibc, 0);
  const Size library = FigureOf(result, measurement, Malloc::kLibrary, 0);
  const Size most = libc + kMostMore + GrantedForCpus();
  result.Check(library <= most, "bytes mapped", "at most " + std::to_string(most), library);
}

void ExpectNineTenths(Case& result, const Measurement& measurement, Size limit) {
  const Size libc = FigureOf(result, measurement, Malloc::kLibc, limit);
  const Size granted = GrantedForCpus();
  const Size library = FigureOf(result, measurement, Malloc::kLibrary, limit + granted);
  const Size least = (libc * 9 + 9) / 10;
  result.Check(libc > 0 && library >= least, measurement.name, "at least " + std::to_string(least),
               library);
}

void AddNineTenths(Suite& suite, const Measurement& measurement, Size mebibytes) {
  suite.Add(std::string(measurement.name) + "/" + std::to_string(mebibytes) + " MiB",
            [&measurement, mebibytes](Case& result) {
              ExpectNineTenths(result, measurement, mebibytes * kMiB);
            });
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  if (argc == 4 && std::strcmp(argv[1], "--measure") == 0) return Measure(argv[2], argv[3]);
  Suite suite;
  suite.Add("mapped-bytes", ExpectFewMapped);
  AddNineTenths(suite, kMeasurements[1], 256);
  AddNineTenths(suite, kMeasurements[2], 300);
  AddNineTenths(suite, kMeasurements[2], 1024);
  AddNineTenths(suite, kMeasurements[3], 300);
  return suite.Main(argc, argv, kLeastCases);
}
