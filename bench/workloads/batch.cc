// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Allocates a batch of blocks of one size or of random ones, then frees them last in first out,
// first in first out or in random order, or each batch in another of these orders.
#include <numeric>
#include <utility>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

// The order in which the blocks of a batch are freed, as indices.
std::vector<uint32_t> FreeOrder(const std::string& order, size_t count) {
  std::vector<uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0u);
  if (order == "lifo") {
    for (size_t i = 0; i < count / 2; ++i) std::swap(indices[i], indices[count - 1 - i]);
  } else if (order == "random") {
    Random random(0);
    for (size_t i = count; i > 1; --i) std::swap(indices[i - 1], indices[random.Below(i)]);
  }
  return indices;
}

// One order for all batches, or the three in turn.
std::vector<std::vector<uint32_t>> FreeOrders(const std::string& order, size_t count) {
  if (order != "mixed") return {FreeOrder(order, count)};
  return {FreeOrder("lifo", count), FreeOrder("fifo", count), FreeOrder("random", count)};
}

int Main(int argc, char** argv) {
  uint64_t threads = 1;
  uint64_t size = 64;
  uint64_t max_size = 0;
  uint64_t batch = 100;
  uint64_t ops = 20000000;
  std::string order = "lifo";
  Options options("batch", "Each thread allocates a batch of blocks and then frees all of it.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("size", &size, 1, 1 << 30, "bytes in a block");
  options.Number("max-size", &max_size, 0, 1 << 30,
                 "bytes in the largest block, --size being those in the smallest; 0 for one size");
  options.Number("batch", &batch, 1, 1 << 24, "blocks in a batch");
  options.Number("ops", &ops, 1, UINT64_MAX, "pairs in all threads together");
  options.Choice("order", &order, {"lifo", "fifo", "random", "mixed"}, "order of the frees");
  options.Parse(argc, argv);
  if (max_size == 0) max_size = size;
  if (size > max_size) options.Reject("--size is above --max-size");

  const std::vector<std::vector<uint32_t>> free_orders = FreeOrders(order, batch);
  std::vector<std::vector<Block>> thread_blocks(threads, std::vector<Block>(batch));
  const uint64_t rounds = (ops + threads * batch - 1) / (threads * batch);
  const Elapsed elapsed = RunThreads(threads, [&](size_t index) {
    std::vector<Block>& blocks = thread_blocks[index];
    Random random(index);
    for (uint64_t round = 0; round < rounds; ++round) {
      for (Block& block : blocks) {
        block = Allocate(size == max_size ? size : random.Between(size, max_size));
      }
      for (const uint32_t i : free_orders[round % free_orders.size()]) Release(&blocks[i]);
    }
  });
  Report(rounds * batch * threads, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
