// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/rule_cache.h"

#include <gtest/gtest.h>

#include <memory>

namespace tcmalloc {
namespace {

CompactRule RuleOf(uintptr_t address) { return CompactRule((address << 3) | 1); }

size_t CountFound(const RuleCache& cache, uintptr_t first, uintptr_t last, uint64_t identity) {
  size_t found = 0;
  for (uintptr_t address = first; address < last; ++address) {
    const CompactRule rule = cache.Find(address, identity);
    if (rule.kind() == CompactRule::Kind::kNone) continue;
    EXPECT_EQ(rule.word(), RuleOf(address).word());
    ++found;
  }
  return found;
}

TEST(RuleCacheTest, FewRulesUseFewLines) {
  const auto cache = std::make_unique<RuleCache>();
  EXPECT_EQ(cache->lines_used(), 64u);
  for (uintptr_t address = 0; address < 50; ++address) cache->Add(address, 7, RuleOf(address));
  EXPECT_EQ(cache->lines_used(), 64u);
  EXPECT_GE(CountFound(*cache, 0, 50, 7), 48u);
  EXPECT_EQ(CountFound(*cache, 0, 50, 8), 0u);
}

TEST(RuleCacheTest, ManyRulesFindRoom) {
  const auto cache = std::make_unique<RuleCache>();
  constexpr uintptr_t kRules = 8000;
  // As walks do: each asks first.
  for (int round = 0; round < 8; ++round) {
    for (uintptr_t address = 0; address < kRules; ++address) {
      if (cache->Find(address, 7).kind() != CompactRule::Kind::kNone) continue;
      cache->Add(address, 7, RuleOf(address));
    }
  }
  EXPECT_EQ(cache->lines_used(), 4096u);
  EXPECT_GT(CountFound(*cache, 0, kRules, 7), kRules * 90 / 100);
}

TEST(RuleCacheTest, NeverTakesMoreLinesThanThereAre) {
  const auto cache = std::make_unique<RuleCache>();
  for (uintptr_t address = 0; address < 200'000; ++address) cache->Add(address, 7, RuleOf(address));
  EXPECT_EQ(cache->lines_used(), 4096u);
  EXPECT_GT(CountFound(*cache, 0, 200'000, 7), 10'000u);
}

}  // namespace
}  // namespace tcmalloc
