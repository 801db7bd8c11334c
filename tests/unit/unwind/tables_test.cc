// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tables that are made byte by byte, and tables of this program with bytes that were changed.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "unit/unwind/guarded_copy.h"
#include "unit/unwind/made_tables.h"
#include "unwind/cfi.h"
#include "unwind/expression.h"
#include "unwind/loaded_objects.h"
#include "unwind/readable_memory.h"

namespace tcmalloc::testing {
namespace {

TEST(TablesTest, EveryFunctionOfThisProgramIsUnderstood) {
  LoadedObject object;
  ASSERT_TRUE(FindLoadedObject(reinterpret_cast<uintptr_t>(&FindLoadedObject), true, &object));
  uint32_t count = 0;
  std::memcpy(&count, reinterpret_cast<const void*>(object.table + 8), sizeof(count));
  ASSERT_GT(count, 100u);
  for (uint32_t i = 0; i < count; ++i) {
    int32_t begin = 0;
    std::memcpy(&begin, reinterpret_cast<const void*>(object.table + 12 + 8 * uintptr_t{i}), 4);
    const uintptr_t address = object.table + static_cast<uintptr_t>(intptr_t{begin});
    FrameRules rules;
    ASSERT_TRUE(ReadFrameRules(object, address, nullptr, &rules)) << address;
  }
}

// Copies a part of this program that ends with its tables, changes a few bytes, and looks up.
TEST(TablesTest, ChangedBytesAreHarmless) {
  LoadedObject object;
  ASSERT_TRUE(FindLoadedObject(reinterpret_cast<uintptr_t>(&FindLoadedObject), true, &object));
  constexpr size_t kBytes = size_t{256} << 10;
  const size_t bytes = std::min<size_t>(kBytes, object.tables_end - object.table) & ~size_t{4095};
  const auto* tables = reinterpret_cast<const char*>(object.table);
  if (!IsReadable(object.table, bytes)) GTEST_SKIP() << "the tables are not followed by data";

  std::mt19937_64 random(7);
  uint32_t count = 0;
  std::memcpy(&count, tables + 8, sizeof(count));
  for (int round = 0; round < 300; ++round) {
    GuardedCopy copy(tables, random() % 2 != 0 ? bytes : random() % bytes);
    for (int i = 0; i < 200 && copy.size() != 0; ++i) {
      copy.data()[random() % copy.size()] = static_cast<char>(random());
    }
    const LoadedObject changed = {.tables_start = copy.start(),
                                  .tables_end = copy.start() + copy.size(),
                                  .table = copy.start(),
                                  .identity = random(),
                                  .stays = round % 8 != 0};
    for (int i = 0; i < 200; ++i) {
      int32_t begin = 0;
      std::memcpy(&begin, tables + 12 + 8 * (random() % count), sizeof(begin));
      const uintptr_t address = copy.start() + static_cast<uintptr_t>(intptr_t{begin});
      FrameRules rules;
      ReadFrameRules(changed, address + random() % 64, nullptr, &rules);
    }
  }
}

// Returns the tables of one function, which begins where they do, and for each of whose `bytes`
// bytes the frame address is another.
std::string TablesOfLongFunction(uint32_t bytes) {
#if defined(__x86_64__)
  constexpr char kReturnColumn = 16;
  constexpr char kStackColumn = 7;
#else
  constexpr char kReturnColumn = 30;
  constexpr char kStackColumn = 31;
#endif
  std::string common(5, '\0');  // no pointer to a common entry; the version
  common[4] = 1;
  common += std::string_view("zR\0\x01\x78", 5);  // alignments of code and data
  common += kReturnColumn;
  common += "\x01\x1b";  // pointers are of four bytes, and from where they are
  common += std::string_view("\x0c", 1);
  common += kStackColumn;
  common += '\0';

  std::string instructions;
  for (uint32_t i = 1; i < bytes; ++i) {
    Append(&instructions, 0x41, 1);  // one byte further
    Append(&instructions, 0x0e, 1);  // the frame address is the stack pointer plus
    Append(&instructions, 0x80 | (i & 0x7f), 1);
    Append(&instructions, i >> 7, 1);
  }
  return TablesOfFunction(common, bytes, instructions);
}

class LongFunctionTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kBytes = 2000;

  int32_t OffsetAt(uint32_t byte, TableMemory* memory) {
    FrameRules rules;
    EXPECT_TRUE(ReadFrameRules(object_, copy_.start() + byte, memory, &rules)) << byte;
    return rules.frame_value;
  }

  const std::string tables_ = TablesOfLongFunction(kBytes);
  GuardedCopy copy_{tables_.data(), tables_.size()};
  LoadedObject object_ = {.tables_start = copy_.start(),
                          .tables_end = copy_.start() + copy_.size(),
                          .table = copy_.start(),
                          .identity = 1,
                          .stays = true};
};

TEST_F(LongFunctionTest, GoesOnFromWhereItWas) {
  TableMemory memory;
  for (uint32_t byte = 0; byte < kBytes; byte += 3) {
    EXPECT_EQ(OffsetAt(byte, &memory), static_cast<int32_t>(byte));
  }
  EXPECT_EQ(memory.progress.address, copy_.start() + kBytes - 2);
}

TEST_F(LongFunctionTest, BeginsAnewForWhatLiesBefore) {
  TableMemory memory;
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    const uint32_t byte = static_cast<uint32_t>(random()) % kBytes;
    ASSERT_EQ(OffsetAt(byte, &memory), OffsetAt(byte, nullptr));
  }
}

TEST_F(LongFunctionTest, BeginsAnewInAnotherObject) {
  TableMemory memory;
  OffsetAt(kBytes / 2, &memory);
  memory.progress.state = {};  // what nobody shall use
  object_.identity = 2;
  EXPECT_EQ(OffsetAt(kBytes - 1, &memory), static_cast<int32_t>(kBytes - 1));
}

ExpressionResult EvaluateBytes(std::vector<uint8_t> operations, const Registers& registers,
                               uintptr_t* result) {
  operations.insert(operations.begin(), static_cast<uint8_t>(operations.size()));
  GuardedCopy copy(reinterpret_cast<const char*>(operations.data()), operations.size());
  const LoadedObject object = {.tables_start = copy.start(),
                               .tables_end = copy.start() + copy.size(),
                               .table = 0,
                               .identity = 1,
                               .stays = true};
  StackMemory memory;
  memory.MoveTo(registers.values[machine::kStackPointer], false);
  return Evaluate(object, copy.start(), 0, registers, &memory, result);
}

class ExpressionTest : public ::testing::Test {
 protected:
  ExpressionTest() {
    registers_.known = 0;
    registers_.Set(machine::kStackPointer, reinterpret_cast<uintptr_t>(stack_));
  }

  void Expect(std::vector<uint8_t> operations, uintptr_t expected) {
    uintptr_t result = 0;
    EXPECT_EQ(EvaluateBytes(operations, registers_, &result), ExpressionResult::kGood);
    EXPECT_EQ(result, expected);
  }
  void ExpectFailure(std::vector<uint8_t> operations,
                     ExpressionResult failure = ExpressionResult::kBad) {
    uintptr_t result = 0;
    EXPECT_EQ(EvaluateBytes(operations, registers_, &result), failure);
  }

  uintptr_t stack_[64] = {0x1122334455667788, 22};
  Registers registers_;
};

// Codes of operations, as in expression.cc.
constexpr uint8_t kLit = 0x30;
#if defined(__x86_64__)
constexpr uint8_t kStackBase = 0x77;
constexpr uint8_t kOtherBase = 0x73;
#else
constexpr uint8_t kStackBase = 0x8f;
constexpr uint8_t kOtherBase = 0x83;
#endif

TEST_F(ExpressionTest, Arithmetic) {
  Expect({kLit + 3, kLit + 4, 0x22}, 7);
  Expect({kLit + 3, kLit + 4, 0x1c}, static_cast<uintptr_t>(-1));
  Expect({kLit + 3, kLit + 4, 0x1e}, 12);
  Expect({kLit + 3, kLit + 4, 0x24}, 48);
  Expect({kLit + 31, kLit + 2, 0x25}, 7);
  Expect({0x09, 0x80, kLit + 2, 0x26}, static_cast<uintptr_t>(-32));
  Expect({kLit + 12, kLit + 10, 0x1a}, 8);
  Expect({kLit + 12, kLit + 10, 0x21}, 14);
  Expect({kLit + 12, kLit + 10, 0x27}, 6);
  Expect({0x09, 0x80, 0x19}, 128);
  Expect({kLit + 1, 0x1f}, static_cast<uintptr_t>(-1));
  Expect({kLit + 0, 0x20}, static_cast<uintptr_t>(-1));
  Expect({kLit + 5, 0x23, 0x85, 0x01}, 138);
  Expect({0x11, 0x7f}, static_cast<uintptr_t>(-1));
}

TEST_F(ExpressionTest, Comparisons) {
  Expect({kLit + 3, kLit + 4, 0x2d}, 1);
  Expect({kLit + 3, kLit + 4, 0x2c}, 1);
  Expect({kLit + 3, kLit + 4, 0x2a}, 0);
  Expect({kLit + 3, kLit + 4, 0x2b}, 0);
  Expect({kLit + 3, kLit + 3, 0x29}, 1);
  Expect({kLit + 3, kLit + 3, 0x2e}, 0);
  Expect({0x09, 0xff, kLit + 0, 0x2d}, 1);
}

TEST_F(ExpressionTest, TheStack) {
  Expect({kLit + 1, kLit + 2, 0x16, 0x1c}, 1);
  Expect({kLit + 1, kLit + 2, 0x14}, 1);
  Expect({kLit + 1, kLit + 2, 0x13}, 1);
  Expect({kLit + 1, kLit + 2, kLit + 3, 0x15, 2}, 1);
  Expect({kLit + 1, kLit + 2, kLit + 3, 0x17}, 2);
  Expect({kLit + 1, kLit + 2, kLit + 3, 0x17, 0x13, 0x13}, 3);
  ExpectFailure({0x13, 0x13});
  ExpectFailure({0x15, 9});
  ExpectFailure(std::vector<uint8_t>(20, kLit));
}

TEST_F(ExpressionTest, RegistersAndMemory) {
  Expect({kStackBase, 8, 0x06}, 22);
  Expect({kStackBase, 0, 0x94, 1}, 0x88);
  Expect({kStackBase, 4, 0x94, 4}, 0x11223344);
  ExpectFailure({kStackBase, 4, 0x06});
  ExpectFailure({kLit + 8, 0x06});
  ExpectFailure({kOtherBase, 0}, ExpressionResult::kUnknownRegister);
}

TEST_F(ExpressionTest, Branches) {
  Expect({kLit + 1, 0x2f, 1, 0, kLit + 2, 0x96}, 1);
  Expect({kLit + 5, kLit + 1, 0x28, 1, 0, kLit + 2}, 5);
  Expect({kLit + 5, kLit + 0, 0x28, 1, 0, kLit + 2}, 2);
  ExpectFailure({0x2f, 0xfd, 0xff});  // for ever
  ExpectFailure({0x2f, 0x10, 0});
  ExpectFailure({0x2f, 0, 0x80});
}

TEST_F(ExpressionTest, DamagedOnes) {
  ExpectFailure({0xff});
  ExpectFailure({0x0e, 1, 2});
  ExpectFailure({0x23, 0x80});
}

}  // namespace
}  // namespace tcmalloc::testing
