// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads write to small objects of their own. Active: an allocator that hands neighbours in one
// cache line to different threads makes them share it. Passive: one thread allocated an object for
// each of the others; an allocator that gives the freed memory straight to the freeing threads
// carries the sharing of the first objects on to those that replace them.
#include <cstdint>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

// Each write must reach the cache, so the compiler may not gather them in a register.
void WriteTo(void* address, uint64_t writes) {
  auto* bytes = static_cast<volatile uint8_t*>(address);
  const uint8_t before = bytes[0];
  for (uint64_t i = 0; i < writes; ++i) bytes[0] = static_cast<uint8_t>(bytes[0] + 1);
  if (bytes[0] != static_cast<uint8_t>(before + writes)) Fail("another thread wrote to an object");
}

void ReplaceAndWrite(size_t size, uint64_t rounds, uint64_t writes) {
  for (uint64_t round = 0; round < rounds; ++round) {
    void* object = Allocate(size).address;
    WriteTo(object, writes);
    std::free(object);
  }
}

int Main(int argc, char** argv) {
  uint64_t threads = 2;
  uint64_t size = 8;
  uint64_t rounds = 300000;
  uint64_t writes = 1000;
  std::string mode = "active";
  Options options("false_sharing", "Threads write to small objects of their own.");
  options.Choice("mode", &mode, {"active", "passive"}, "who allocated the first objects");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("size", &size, 1, 1 << 20, "bytes in an object");
  options.Number("rounds", &rounds, 1, UINT64_MAX, "objects in all threads together");
  options.Number("writes", &writes, 1, UINT64_MAX, "writes to each object");
  options.Parse(argc, argv);

  std::vector<Block> handed(threads);
  if (mode == "passive") {
    for (Block& block : handed) block = Allocate(size);
  }
  const uint64_t thread_rounds = (rounds + threads - 1) / threads;
  const Elapsed elapsed = RunThreads(threads, [&](size_t index) {
    Release(&handed[index]);
    ReplaceAndWrite(size, thread_rounds, writes);
  });
  Report(thread_rounds * threads, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
