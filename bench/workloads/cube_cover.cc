// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Two-level logic minimization: merges cubes of a random function into prime implicants, level by
// level, then picks a cover. Every cube is an object of its own and lists are rebuilt at each
// level, so that the program lives on small blocks.
#include <bit>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

// The set of inputs that agree with `value` in every bit that `free_bits` leaves out.
struct Cube {
  uint32_t value;
  uint32_t free_bits;
  bool merged = false;

  bool Covers(uint32_t input) const { return (input & ~free_bits) == value; }
};

using CubeList = std::vector<std::unique_ptr<Cube>>;

std::set<uint32_t> RandomFunction(uint32_t inputs, uint64_t density, Random* random) {
  std::set<uint32_t> ones;
  for (uint32_t input = 0; input < (uint32_t{1} << inputs); ++input) {
    if (random->Percent(density)) ones.insert(input);
  }
  return ones;
}

// Two cubes merge if they leave the same bits free and differ in one other bit.
CubeList MergeLevel(const CubeList& cubes) {
  std::set<std::pair<uint32_t, uint32_t>> seen;
  CubeList merged;
  for (size_t i = 0; i < cubes.size(); ++i) {
    for (size_t j = i + 1; j < cubes.size(); ++j) {
      Cube& a = *cubes[i];
      Cube& b = *cubes[j];
      const uint32_t difference = a.value ^ b.value;
      if (a.free_bits != b.free_bits || !std::has_single_bit(difference)) continue;
      a.merged = true;
      b.merged = true;
      auto cube = std::make_unique<Cube>(Cube{a.value & ~difference, a.free_bits | difference});
      if (seen.emplace(cube->value, cube->free_bits).second) merged.push_back(std::move(cube));
    }
  }
  return merged;
}

CubeList PrimeImplicants(const std::set<uint32_t>& ones) {
  CubeList primes;
  CubeList level;
  for (const uint32_t input : ones) level.push_back(std::make_unique<Cube>(Cube{input, 0}));
  while (!level.empty()) {
    CubeList next = MergeLevel(level);
    for (auto& cube : level) {
      if (!cube->merged) primes.push_back(std::move(cube));
    }
    level = std::move(next);
  }
  return primes;
}

// Greedy cover from the largest cubes down. Returns the inputs that remain, which must be none.
std::set<uint32_t> Uncovered(const CubeList& primes, std::set<uint32_t> ones) {
  for (int free_count = 31; free_count >= 0; --free_count) {
    for (const auto& prime : primes) {
      if (std::popcount(prime->free_bits) != free_count) continue;
      std::erase_if(ones, [&](uint32_t input) { return prime->Covers(input); });
    }
  }
  return ones;
}

int Main(int argc, char** argv) {
  uint64_t inputs = 5;
  uint64_t density = 60;
  uint64_t functions = 30000;
  Options options("cube_cover", "Minimizes random logic functions.");
  options.Number("inputs", &inputs, 1, 16, "inputs of each function");
  options.Number("density", &density, 0, 100, "percent of inputs for which a function is true");
  options.Number("functions", &functions, 1, UINT64_MAX, "functions");
  options.Parse(argc, argv);

  Random random(0);
  const Stopwatch stopwatch;
  for (uint64_t i = 0; i < functions; ++i) {
    const std::set<uint32_t> ones = RandomFunction(static_cast<uint32_t>(inputs), density, &random);
    const CubeList primes = PrimeImplicants(ones);
    if (!Uncovered(primes, ones).empty()) Fail("the prime implicants do not cover the function");
  }
  const Elapsed elapsed = stopwatch.Read();
  Report(functions, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
