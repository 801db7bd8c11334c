// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Unwind tables of any bytes, and tables whose frame is sound and whose instructions are any bytes.
// They end at a page that cannot be read.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "unit/unwind/guarded_copy.h"
#include "unit/unwind/made_tables.h"
#include "unwind/cfi.h"
#include "unwind/expression.h"
#include "unwind/rule_cache.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

// Bytes of the function that a sound table is about, which begins where the table does.
constexpr uint32_t kFunctionBytes = 256;

// Returns tables with one common entry and one function, with the instructions of the input.
std::string SoundTables(FuzzInput& input) {
  std::string common;
  Append(&common, 0, 4);
  Append(&common, 1, 1);  // version
  const bool has_personality = input.Pick({false, true});
  common += has_personality ? "zPLR" : input.Pick({"zR", "zRS", "zRB"});
  Append(&common, 0, 1);
  Append(&common, 1 + input.Take<uint8_t>() % 8, 1);  // alignment of code
  Append(&common, input.Pick({0x78, 0x7c, 0x01, 0x00}), 1);
  Append(&common, input.Pick({16, 30, 3, 99}), 1);  // column of return addresses
  // The lengths and the encodings of pointers; a personality is a pointer of four bytes.
  constexpr char kPersonality[] = {7, 0x03, 0, 0, 0, 0, 0x1b, 0x1b};
  constexpr char kPlain[] = {1, 0x1b};
  common += has_personality ? std::string_view(kPersonality, sizeof(kPersonality))
                            : std::string_view(kPlain, sizeof(kPlain));
  common += input.TakeUntil('\xff');

  return TablesOfFunction(common, kFunctionBytes, input.TakeRest());
}

void EvaluateIfExpression(const LoadedObject& object, RuleKind kind, int32_t value) {
  if (kind != RuleKind::kAtExpression && kind != RuleKind::kExpression) return;
  const uintptr_t stack[32] = {};
  Registers registers;
  registers.known = machine::kAllKnown;
  for (uintptr_t& word : registers.values) word = reinterpret_cast<uintptr_t>(&stack[8]);
  StackMemory memory;
  memory.MoveTo(reinterpret_cast<uintptr_t>(stack), false);
  uintptr_t result = 0;
  Evaluate(object, object.tables_start + static_cast<uint32_t>(value), 0, registers, &memory,
           &result);
}

// What was found on the way to other addresses makes no difference.
void LookUp(const LoadedObject& object, uintptr_t address, TableMemory& memory) {
  FrameRules rules;
  FrameRules rules_on_the_way;
  const bool found = ReadFrameRules(object, address, nullptr, &rules);
  TCMALLOC_CHECK_EQ(ReadFrameRules(object, address, &memory, &rules_on_the_way), found);
  if (!found) return;
  TCMALLOC_CHECK_EQ(CompactRule::From(rules).word(), CompactRule::From(rules_on_the_way).word());
  TCMALLOC_CHECK_EQ(rules.frame_value, rules_on_the_way.frame_value);
  TCMALLOC_CHECK(rules.return_register >= 0);
  TCMALLOC_CHECK(CompactRule::From(rules).kind() != CompactRule::Kind::kNone);
  EvaluateIfExpression(object, rules.frame_kind, rules.frame_value);
  for (const RegisterRule& rule : rules.registers) {
    EvaluateIfExpression(object, rule.kind, rule.value);
  }
}

}  // namespace

TCM_FUZZ_TARGET(unwind_tables_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const bool sound = input.Pick({false, true});
  const auto offset = input.Take<uint8_t>();
  const std::string tables = sound ? SoundTables(input) : std::string(input.TakeRest());
  const GuardedCopy copy(tables.data(), tables.size());
  // No page may be taken for one of an earlier input, which lay at the same address.
  static uint64_t inputs = 0;
  const LoadedObject object = {.tables_start = copy.start(),
                               .tables_end = copy.start() + copy.size(),
                               .table = copy.start(),
                               .identity = ++inputs,
                               .stays = true};
  TableMemory memory;
  LookUp(object, copy.start() + offset, memory);
  LookUp(object, copy.start() + offset * size_t{64}, memory);
  LookUp(object, copy.start() + offset * size_t{65}, memory);
  return 0;
}
