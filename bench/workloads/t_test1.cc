// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random malloc, calloc, realloc, aligned allocation and free in threads that share nothing but
// the allocator, in the manner of the t-test1 program that came with ptmalloc.
#include <algorithm>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

constexpr uint64_t kAlignedPercent = 1;
constexpr uint64_t kCallocPercent = 4;
constexpr uint64_t kReallocPercent = 10;
// Alignments of 16 to 128. mimalloc 2.0.9 misaligns some blocks above that and could not be
// compared.
constexpr uint64_t kAlignments = 4;
constexpr uint64_t kMinBins = 20;
constexpr uint64_t kMaxBins = 10000;

Block AllocateAligned(size_t size, Random* random) {
  const size_t alignment = size_t{16} << random->Below(kAlignments);
  void* address = nullptr;
  if (posix_memalign(&address, alignment, size) != 0) Fail("no memory for %zu bytes", size);
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0) {
    Fail("%p is not aligned to %zu", address, alignment);
  }
  return Adopt(address, size);
}

Block AllocateZeroed(size_t size) {
  const char* bytes = static_cast<const char*>(std::calloc(1, size));
  if (bytes != nullptr && (bytes[0] != 0 || bytes[size / 2] != 0 || bytes[size - 1] != 0)) {
    Fail("calloc of %zu bytes returned memory that is not zero", size);
  }
  return Adopt(const_cast<char*>(bytes), size);
}

void FillBin(Block* bin, size_t size, Random* random) {
  const uint64_t kind = random->Below(100);
  if (kind < kReallocPercent && bin->address != nullptr) {
    *bin = Reallocate(*bin, size);
    return;
  }
  Release(bin);
  if (kind >= 100 - kAlignedPercent) {
    *bin = AllocateAligned(size, random);
  } else if (kind >= 100 - kAlignedPercent - kCallocPercent) {
    *bin = AllocateZeroed(size);
  } else {
    *bin = Allocate(size);
  }
}

void Run(uint64_t ops, size_t max_size, std::vector<Block>* bins, Random random) {
  for (uint64_t op = 0; op < ops; ++op) {
    FillBin(&(*bins)[random.Below(bins->size())], random.Between(1, max_size), &random);
    Release(&(*bins)[random.Below(bins->size())]);
  }
  for (Block& bin : *bins) Release(&bin);
}

int Main(int argc, char** argv) {
  uint64_t threads = 1;
  uint64_t max_size = 1024;
  uint64_t ops = 3000000;
  uint64_t bins = 0;
  uint64_t memory = uint64_t{64} << 20;
  Options options("t_test1",
                  "Threads fill and empty bins at random: malloc, calloc, realloc, aligned.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("max-size", &max_size, 1, 1 << 30, "sizes are uniform from 1 to this, bytes");
  options.Number("ops", &ops, 1, UINT64_MAX, "allocations in each thread");
  options.Number("bins", &bins, 0, 1 << 24, "bins in each thread; 0: as many as --memory allows");
  options.Number("memory", &memory, 1, UINT64_MAX, "bytes live in all threads, to choose --bins");
  options.Parse(argc, argv);

  // Half of the bins are full at a time, and a full one holds half of the maximum on average.
  if (bins == 0) bins = std::clamp(memory * 4 / (max_size * threads), kMinBins, kMaxBins);
  std::vector<std::vector<Block>> thread_bins(threads, std::vector<Block>(bins));
  const Elapsed elapsed = RunThreads(
      threads, [&](size_t index) { Run(ops, max_size, &thread_bins[index], Random(index)); });
  Report(ops * threads, elapsed).Add("bins", bins).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
