// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/address_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

namespace tcmalloc {
namespace {

TEST(AddressTableTest, NumbersAddressesInTheOrderOfFirstUse) {
  std::mt19937_64 random(1);
  AddressTable table;
  std::map<uintptr_t, uint64_t> expected;
  for (int i = 0; i < 100'000; ++i) {
    const uintptr_t address = 0x400000 + random() % 50'000 * 16;
    const uint64_t number = expected.try_emplace(address, expected.size() + 1).first->second;
    ASSERT_EQ(table.NumberOf(address), number);
  }
  std::map<uintptr_t, uint64_t> all;
  table.ForEach([&](uintptr_t address, uint64_t number) { all[address] = number; });
  EXPECT_EQ(all, expected);
}

}  // namespace
}  // namespace tcmalloc
