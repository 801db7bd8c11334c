// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random calls of the page heap, compared with a map of page runs. See replay.h.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "model/page_heap_machine.h"
#include "model/replay.h"

namespace tcmalloc::testing {
namespace {

using ClassicMachine = PageHeapMachine<TestHeap>;
using HugeMachine = PageHeapMachine<HugeTestHeap>;

// `longest`: of the long spans.
Actions RandomPageActions(uint64_t seed, size_t count, bool failures, uint64_t longest = 400) {
  std::mt19937_64 random(seed);
  Actions actions;
  // Phases in which the heap mostly grows, and others in which it mostly shrinks.
  for (size_t i = 0; i < count; ++i) {
    const uint64_t grow = i / 500 % 2 == 0 ? 45 : 25;
    const uint64_t choice = random() % 100;
    const uint64_t pages = 1 + random() % (random() % 10 == 0 ? longest : 12);
    const uint64_t pick = random();
    if (choice < grow / 3) {
      actions.push_back({ClassicMachine::kNewNear, pages, pick});
    } else if (choice < grow) {
      actions.push_back({ClassicMachine::kNew, pages, 0});
    } else if (choice < grow + 5) {
      actions.push_back({ClassicMachine::kNewAligned, pages, pick % 8});
    } else if (choice < 80) {
      actions.push_back({ClassicMachine::kDelete, 0, pick});
    } else if (choice < 82) {
      actions.push_back({ClassicMachine::kNewRoomy, pages, 0});
    } else if (choice < 88) {
      actions.push_back({ClassicMachine::kExtend, pages, pick});
    } else if (choice < 94) {
      actions.push_back({ClassicMachine::kTruncate, pages, pick});
    } else if (choice < 96) {
      actions.push_back({ClassicMachine::kPassTime, pick % 1000, random() % 100});
    } else if (choice < 98 || !failures) {
      actions.push_back({ClassicMachine::kRelease, pages, 0});
    } else if (choice == 98) {
      actions.push_back({ClassicMachine::kFailGrowth, 1 + pick % 30, 0});
    } else {
      actions.push_back({ClassicMachine::kFailRelease, 1 + pick % 5, 0});
    }
  }
  return actions;
}

class PageHeapModelTest : public ::testing::TestWithParam<PageHeapConfig> {};

TEST_P(PageHeapModelTest, RandomActions) {
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    ClassicMachine machine(GetParam());
    if (!Replay(machine, RandomPageActions(seed, 4000, GetParam().failures))) break;
  }
}

TEST_P(PageHeapModelTest, RandomActionsOnHugePages) {
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    HugeMachine machine(GetParam());
    if (!Replay(machine, RandomPageActions(seed, 4000, GetParam().failures))) break;
  }
}

// Long enough for regions, and for hugepages inside of spans.
TEST_P(PageHeapModelTest, LongSpansOnHugePages) {
  const uint64_t longest = 4 * kPagesPerHugePage.pages();
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    HugeMachine machine(GetParam());
    if (!Replay(machine, RandomPageActions(seed, 2000, GetParam().failures, longest))) break;
  }
}

// Growth is refused and the heap is near its limit: a run of free and returned spans may be joined
// only as far as the limit allows.
TEST(PageHeapLimitTest, HoldsWhenARunIsMerged) {
  using Machine = ClassicMachine;
  ClassicMachine machine({.name = "limit",
                          .reserved_bytes = kPageSize << 9,
                          .gap = kPageSize,
                          .growth = Length(100),
                          .limit = Length(200),
                          .failures = true});
  Replay(machine, {{Machine::kNew, 18, 0},
                   {Machine::kDelete, 20, 5},
                   {Machine::kNew, 1, 26371},
                   {Machine::kNewAligned, 8, 5},
                   {Machine::kNew, 24, 57610},
                   {Machine::kDelete, 13, 6469},
                   {Machine::kNewAligned, 10, 5},
                   {Machine::kNewAligned, 21, 7},
                   {Machine::kNew, 22, 60311},
                   {Machine::kFailGrowth, 17, 0},
                   {Machine::kNew, 49, 0},
                   {Machine::kNew, 225, 12569},
                   {Machine::kNewAligned, 24, 5},
                   {Machine::kFailRelease, 1, 0},
                   {Machine::kNewAligned, 8, 4},
                   {Machine::kNew, 8, 0},
                   {Machine::kDelete, 21, 57610},
                   {Machine::kNewAligned, 18, 5}});
}

INSTANTIATE_TEST_SUITE_P(
    Configs, PageHeapModelTest,
    ::testing::Values(
        PageHeapConfig{.name = "plain"}, PageHeapConfig{.name = "growth", .growth = Length(500)},
        PageHeapConfig{.name = "gaps", .gap = kPageSize, .growth = Length(100)},
        PageHeapConfig{.name = "failures", .failures = true},
        PageHeapConfig{.name = "exhausted", .reserved_bytes = size_t{4} << 20, .failures = true},
        PageHeapConfig{.name = "few_addresses", .growth = Length(700), .limited = true},
        PageHeapConfig{.name = "few_addresses_at_the_limit",
                       .limit = Length(3000),
                       .failures = true,
                       .limited = true,
                       .half_life_ns = 200,
                       .hugepages = HugepageMode::kAlways},
        PageHeapConfig{.name = "limit", .growth = Length(100), .limit = Length(1000)},
        PageHeapConfig{.name = "release", .release_rate = 100, .failures = true},
        PageHeapConfig{.name = "half_life", .failures = true, .half_life_ns = 200},
        PageHeapConfig{.name = "hugepages_asked_for",
                       .growth = Length(500),
                       .failures = true,
                       .half_life_ns = 1000,
                       .hugepages = HugepageMode::kMadvise},
        PageHeapConfig{
            .name = "hugepages", .half_life_ns = 1000, .hugepages = HugepageMode::kAlways},
        PageHeapConfig{.name = "hugepages_at_the_limit",
                       .limit = Length(3000),
                       .failures = true,
                       .half_life_ns = 200,
                       .hugepages = HugepageMode::kAlways},
        PageHeapConfig{.name = "aggressive", .aggressive_decommit = true},
        PageHeapConfig{
            .name = "aggressive_failures", .aggressive_decommit = true, .failures = true}),
    [](const ::testing::TestParamInfo<PageHeapConfig>& config) {
      return std::string(config.param.name);
    });

}  // namespace
}  // namespace tcmalloc::testing
