// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// For each power of two: allocates some blocks of that size, touches their ends and frees them.
// The first round of a size finds the allocator unprepared; the later ones show what it kept.
#include <algorithm>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

Elapsed RunRound(size_t size, std::vector<Block>* blocks) {
  const Stopwatch stopwatch;
  for (Block& block : *blocks) block = Allocate(size);
  for (Block& block : *blocks) Release(&block);
  return stopwatch.Read();
}

// Nanoseconds for each block, for each size from the smallest to the largest.
struct Costs {
  std::vector<double> first;
  std::vector<double> second;
};

Elapsed RunSizes(uint64_t min_bits, uint64_t max_bits, uint64_t count, uint64_t rounds,
                 Costs* costs) {
  std::vector<Block> blocks(count);
  costs->first.reserve(max_bits - min_bits + 1);
  costs->second.reserve(max_bits - min_bits + 1);
  const double nanoseconds = 1e9 / static_cast<double>(count);
  Elapsed total;
  for (uint64_t bits = min_bits; bits <= max_bits; ++bits) {
    const size_t size = size_t{1} << bits;
    const Elapsed first = RunRound(size, &blocks);
    const Elapsed second = RunRound(size, &blocks);
    costs->first.push_back(first.seconds * nanoseconds);
    costs->second.push_back(second.seconds * nanoseconds);
    total += first;
    total += second;
    for (uint64_t round = 2; round < rounds; ++round) total += RunRound(size, &blocks);
  }
  return total;
}

int Main(int argc, char** argv) {
  uint64_t min_bits = 2;
  uint64_t max_bits = 22;
  uint64_t few = 100;
  uint64_t many = 1000;
  uint64_t rounds = 20;
  Options options("rounds", "Rounds of a few and of many blocks of 2^n bytes.");
  options.Number("min-bits", &min_bits, 0, 30, "the smallest block has 2 to this power bytes");
  options.Number("max-bits", &max_bits, 0, 30, "the largest block has 2 to this power bytes");
  options.Number("few", &few, 1, 1 << 24, "blocks in the rounds of a few");
  options.Number("many", &many, 1, 1 << 24, "blocks in the rounds of many");
  options.Number("rounds", &rounds, 2, UINT64_MAX >> 32, "rounds for each size");
  options.Parse(argc, argv);
  if (min_bits > max_bits) options.Reject("--min-bits is above --max-bits");

  Costs few_costs;
  Costs many_costs;
  Elapsed elapsed = RunSizes(min_bits, max_bits, few, rounds, &few_costs);
  elapsed += RunSizes(min_bits, max_bits, many, rounds, &many_costs);
  Report((few + many) * rounds * (max_bits - min_bits + 1), elapsed)
      .Add("few_first_ns", few_costs.first)
      .Add("few_second_ns", few_costs.second)
      .Add("many_first_ns", many_costs.first)
      .Add("many_second_ns", many_costs.second)
      .Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
