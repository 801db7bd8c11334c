// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks are allocated and freed in some order, several times; then those that were allocated in a
// row last are walked in that order, as a program walks its own objects. What is measured is the
// walk: it takes the longer, the farther neighbours in time lie apart in memory.
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

constexpr size_t kNeighbours = 64;
constexpr uintptr_t kPageBytes = 4096;

struct Settings {
  uint64_t threads = 1;
  uint64_t size = 64;
  uint64_t count = 1000000;
  uint64_t rounds = 3;
  uint64_t walks = 100;
  std::string order = "random";
};

// Pages in all groups of neighbours together.
struct Pages {
  uint64_t groups = 0;
  uint64_t pages = 0;
};

using Blocks = std::vector<Block>;

// The blocks to free, as indices in the order of the frees.
std::vector<uint32_t> Victims(const std::string& order, size_t count, Random* random) {
  std::vector<uint32_t> victims(count);
  std::iota(victims.begin(), victims.end(), 0u);
  if (order == "reversed") {
    for (size_t i = 0; i < count / 2; ++i) std::swap(victims[i], victims[count - 1 - i]);
  } else if (order != "in-order") {
    for (size_t i = count; i > 1; --i) std::swap(victims[i - 1], victims[random->Below(i)]);
  }
  if (order == "half") victims.resize(count / 2);
  return victims;
}

void Allocate(size_t size, Blocks* blocks) {
  while (blocks->size() < blocks->capacity()) blocks->push_back(bench::Allocate(size));
}

// Moves the blocks that are left to the front.
void Compact(Blocks* blocks) {
  std::erase_if(*blocks, [](const Block& block) { return block.address == nullptr; });
}

// Returns the number of blocks that survived the last round; those after them are new and lie in
// the order in which they were allocated.
size_t Churn(const Settings& settings, Blocks* blocks, Random random) {
  Allocate(settings.size, blocks);
  for (uint64_t round = 0; round < settings.rounds; ++round) {
    for (const uint32_t i : Victims(settings.order, blocks->size(), &random)) {
      Release(&(*blocks)[i]);
    }
    Compact(blocks);
    if (round + 1 < settings.rounds) Allocate(settings.size, blocks);
  }
  const size_t survivors = blocks->size();
  Allocate(settings.size, blocks);
  return survivors;
}

Pages CountPages(const Block* begin, const Block* end) {
  Pages found;
  for (; static_cast<size_t>(end - begin) >= kNeighbours; begin += kNeighbours) {
    std::set<uintptr_t> seen;
    for (size_t i = 0; i < kNeighbours; ++i) {
      seen.insert(reinterpret_cast<uintptr_t>(begin[i].address) / kPageBytes);
    }
    ++found.groups;
    found.pages += seen.size();
  }
  return found;
}

void Walk(const Block* begin, const Block* end) {
  for (const Block* block = begin; block != end; ++block) CheckStamp(*block);
}

Elapsed WalkAll(const Settings& settings, const std::vector<Blocks>& all,
                const std::vector<size_t>& survivors) {
  return RunThreads(settings.threads, [&](size_t index) {
    const Blocks& blocks = all[index];
    for (uint64_t walk = 0; walk < settings.walks; ++walk) {
      Walk(blocks.data() + survivors[index], blocks.data() + blocks.size());
    }
  });
}

void ReportAll(const Settings& settings, const std::vector<Blocks>& all,
               const std::vector<size_t>& survivors, const Elapsed& churn, const Elapsed& walk) {
  Pages total;
  uint64_t walked = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const Block* end = all[i].data() + all[i].size();
    const Pages found = CountPages(all[i].data() + survivors[i], end);
    total.groups += found.groups;
    total.pages += found.pages;
    walked += all[i].size() - survivors[i];
  }
  const auto groups = static_cast<double>(total.groups > 0 ? total.groups : 1);
  Report(walked * settings.walks, walk)
      .Add("churn_seconds", churn.seconds)
      .Add("pages_per_64", static_cast<double>(total.pages) / groups)
      .Print();
}

int Main(int argc, char** argv) {
  Settings settings;
  Options options("locality", "Walks blocks that were allocated after others had been freed.");
  options.Number("threads", &settings.threads, 1, kMaxThreads, "threads, each with its own blocks");
  options.Number("size", &settings.size, 8, 1 << 20, "bytes in a block");
  options.Number("count", &settings.count, 1, UINT32_MAX, "blocks in all threads together");
  options.Number("rounds", &settings.rounds, 1, 1 << 20, "how often blocks are freed");
  options.Number("walks", &settings.walks, 1, 1 << 20, "how often the blocks are walked");
  options.Choice("order", &settings.order, {"in-order", "reversed", "random", "half"},
                 "order of the frees; half frees every second block, at random");
  options.Parse(argc, argv);

  const size_t count = (settings.count + settings.threads - 1) / settings.threads;
  std::vector<Blocks> all(settings.threads);
  for (Blocks& blocks : all) blocks.reserve(count);
  std::vector<size_t> survivors(settings.threads);
  const Elapsed churn = RunThreads(settings.threads, [&](size_t index) {
    survivors[index] = Churn(settings, &all[index], Random(index));
  });
  const Elapsed walk = WalkAll(settings, all, survivors);
  ReportAll(settings, all, survivors, churn, walk);
  for (Blocks& blocks : all) {
    for (Block& block : blocks) Release(&block);
  }
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
