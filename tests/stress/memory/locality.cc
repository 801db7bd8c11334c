// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// locality: blocks that are allocated one after the other lie near each other, in whatever order
// those before them were freed. Counts the pages of 4 KiB that 64 neighbours lie in.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace {

enum class Order { kSame, kReverse, kRandom, kHalf };
constexpr const char* kNames[] = {"in order", "reversed", "at random", "half of them at random"};

constexpr size_t kBytes = size_t{2} << 20;  // in blocks of one size
constexpr size_t kGroup = 64;
constexpr int kRounds = 3;

using Blocks = std::vector<void*>;

void FreeIn(Order order, Blocks* blocks, std::mt19937_64& random) {
  Blocks victims = *blocks;
  if (order == Order::kReverse) std::reverse(victims.begin(), victims.end());
  if (order == Order::kRandom || order == Order::kHalf) {
    std::shuffle(victims.begin(), victims.end(), random);
  }
  if (order == Order::kHalf) victims.resize(victims.size() / 2);
  for (void* block : victims) std::free(block);
  std::sort(victims.begin(), victims.end());
  std::erase_if(*blocks, [&](void* block) {
    return std::binary_search(victims.begin(), victims.end(), block);
  });
}

double PagesOfAGroup(const Blocks& blocks) {
  size_t pages = 0;
  size_t groups = 0;
  for (size_t i = 0; i + kGroup <= blocks.size(); i += kGroup, ++groups) {
    std::set<uintptr_t> seen;
    for (size_t j = i; j < i + kGroup; ++j)
      seen.insert(reinterpret_cast<uintptr_t>(blocks[j]) >> 12);
    pages += seen.size();
  }
  return static_cast<double>(pages) / static_cast<double>(groups);
}

// Blocks that survive take room in each page, and a part of the neighbours comes from lists that
// the thread still has, or that it shares with others. Without care it is all of them.
double MostPages(size_t size) {
  const double ideal = std::max(1.0, static_cast<double>(kGroup * size) / 4096);
  return ideal + 40;
}

bool Check(size_t size, Order order, unsigned seed) {
  std::mt19937_64 random(seed);
  const size_t count = kBytes / size;
  Blocks blocks;
  for (int round = 0; round < kRounds; ++round) {
    while (blocks.size() < count) blocks.push_back(std::malloc(size));
    FreeIn(order, &blocks, random);
  }
  const size_t survivors = blocks.size();
  while (blocks.size() < count) blocks.push_back(std::malloc(size));
  const Blocks fresh(blocks.begin() + static_cast<std::ptrdiff_t>(survivors), blocks.end());
  const double pages = PagesOfAGroup(fresh);
  for (void* block : blocks) std::free(block);
  if (pages <= MostPages(size)) return true;
  std::fprintf(stderr, "%zu bytes, freed %s: %.1f pages for %zu neighbours, more than %.1f\n", size,
               kNames[static_cast<int>(order)], pages, kGroup, MostPages(size));
  return false;
}

// Threads that allocate at the same time take from the same spans, of which each may then have one
// object left. So many cases of one thread may exceed the bound for that.
constexpr int kUnlucky = 4;

// Returns how many cases exceed the bound.
int CountExcesses(unsigned seed) {
  int excesses = 0;
  for (size_t size : {16, 32, 64, 128, 256, 512, 1024}) {
    for (Order order : {Order::kSame, Order::kReverse, Order::kRandom, Order::kHalf}) {
      if (!Check(size, order, seed)) ++excesses;
    }
  }
  return excesses;
}

}  // namespace

int main() {
  bool ok = CountExcesses(1) == 0;
  int excesses[4] = {};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&excesses, i] { excesses[i] = CountExcesses(i + 2); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int count : excesses) ok = ok && count <= kUnlucky;
  return ok ? 0 : 1;
}
