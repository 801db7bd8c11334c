// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/expression.h"

#include <cstddef>
#include <utility>

#include "unwind/table_cursor.h"

namespace tcmalloc {
namespace {

// Operations by their codes. Ranges of codes have an operand in their lower bits.
enum Operation : uint8_t {
  kAddress = 0x03,
  kDereference = 0x06,
  kConstant1 = 0x08,
  kConstant1Signed = 0x09,
  kConstant2 = 0x0a,
  kConstant2Signed = 0x0b,
  kConstant4 = 0x0c,
  kConstant4Signed = 0x0d,
  kConstant8 = 0x0e,
  kConstant8Signed = 0x0f,
  kConstantUleb = 0x10,
  kConstantSleb = 0x11,
  kDuplicate = 0x12,
  kDrop = 0x13,
  kOver = 0x14,
  kPick = 0x15,
  kSwap = 0x16,
  kRotate = 0x17,
  kAbsolute = 0x19,
  kAnd = 0x1a,
  kMinus = 0x1c,
  kMultiply = 0x1e,
  kNegate = 0x1f,
  kNot = 0x20,
  kOr = 0x21,
  kPlus = 0x22,
  kPlusUleb = 0x23,
  kShiftLeft = 0x24,
  kShiftRight = 0x25,
  kShiftRightArithmetic = 0x26,
  kXor = 0x27,
  kBranch = 0x28,
  kEqual = 0x29,
  kGreaterOrEqual = 0x2a,
  kGreater = 0x2b,
  kLessOrEqual = 0x2c,
  kLess = 0x2d,
  kNotEqual = 0x2e,
  kSkip = 0x2f,
  kLiteral0 = 0x30,
  kLiteral31 = 0x4f,
  kBaseRegister0 = 0x70,
  kBaseRegister31 = 0x8f,
  kBaseRegister = 0x92,
  kDereferenceSized = 0x94,
  kNothing = 0x96,
};

class Evaluation {
 public:
  Evaluation(const Registers& registers, StackMemory* memory)
      : registers_(registers), memory_(*memory) {}

  void Push(uint64_t value) {
    if (size_ == kCapacity) return Stop(ExpressionResult::kBad);
    stack_[size_++] = value;
  }

  uint64_t Pop() {
    if (size_ == 0) {
      Stop(ExpressionResult::kBad);
      return 0;
    }
    return stack_[--size_];
  }

  // Executes one operation.
  void Execute(uint8_t operation, TableCursor* cursor, uintptr_t start, uintptr_t end);

  ExpressionResult result() const { return result_; }

 private:
  void Stop(ExpressionResult result) { result_ = result; }

  void ExecuteBinary(uint8_t operation);
  bool PushConstant(uint8_t operation, TableCursor* cursor);
  bool Rearrange(uint8_t operation, TableCursor* cursor);
  void Dereference(size_t bytes);
  void PushRegister(uint64_t dwarf, int64_t offset);
  void Branch(TableCursor* cursor, bool taken, uintptr_t start, uintptr_t end);

  // Pushes again what lies `depth` values below the top.
  void PushCopy(uint64_t depth) {
    if (depth >= size_) return Stop(ExpressionResult::kBad);
    Push(stack_[size_ - 1 - depth]);
  }

  static constexpr size_t kCapacity = 16;

  const Registers& registers_;
  StackMemory& memory_;
  uint64_t stack_[kCapacity];
  size_t size_ = 0;
  ExpressionResult result_ = ExpressionResult::kGood;
};

bool Evaluation::PushConstant(uint8_t operation, TableCursor* cursor) {
  if (operation >= kLiteral0 && operation <= kLiteral31) {
    Push(operation - uint64_t{kLiteral0});
    return true;
  }
  switch (operation) {
    case kConstant1:
      Push(cursor->Fixed<uint8_t>());
      return true;
    case kConstant1Signed:
      Push(static_cast<uint64_t>(int64_t{cursor->Fixed<int8_t>()}));
      return true;
    case kConstant2:
      Push(cursor->Number(PointerEncoding::kUnsigned2));
      return true;
    case kConstant2Signed:
      Push(cursor->Number(PointerEncoding::kSigned2));
      return true;
    case kConstant4:
      Push(cursor->Number(PointerEncoding::kUnsigned4));
      return true;
    case kConstant4Signed:
      Push(cursor->Number(PointerEncoding::kSigned4));
      return true;
    case kAddress:
    case kConstant8:
    case kConstant8Signed:
      Push(cursor->Number(PointerEncoding::kUnsigned8));
      return true;
    case kConstantUleb:
      Push(cursor->Uleb());
      return true;
    case kConstantSleb:
      Push(static_cast<uint64_t>(cursor->Sleb()));
      return true;
    default:
      return false;
  }
}

bool Evaluation::Rearrange(uint8_t operation, TableCursor* cursor) {
  switch (operation) {
    case kNothing:
      return true;
    case kDuplicate:
      PushCopy(0);
      return true;
    case kDrop:
      Pop();
      return true;
    case kOver:
      PushCopy(1);
      return true;
    case kPick:
      PushCopy(cursor->Fixed<uint8_t>());
      return true;
    case kSwap: {
      const uint64_t top = Pop();
      const uint64_t second = Pop();
      Push(top);
      Push(second);
      return true;
    }
    case kRotate: {
      const uint64_t top = Pop();
      const uint64_t second = Pop();
      const uint64_t third = Pop();
      Push(top);
      Push(third);
      Push(second);
      return true;
    }
    default:
      return false;
  }
}

void Evaluation::ExecuteBinary(uint8_t operation) {
  const uint64_t b = Pop();
  const uint64_t a = Pop();
  const auto signed_a = static_cast<int64_t>(a);
  const auto signed_b = static_cast<int64_t>(b);
  switch (operation) {
    case kAnd:
      return Push(a & b);
    case kMinus:
      return Push(a - b);
    case kMultiply:
      return Push(a * b);
    case kOr:
      return Push(a | b);
    case kPlus:
      return Push(a + b);
    case kShiftLeft:
      return Push(b < 64 ? a << b : 0);
    case kShiftRight:
      return Push(b < 64 ? a >> b : 0);
    case kShiftRightArithmetic:
      return Push(static_cast<uint64_t>(signed_a >> (b < 64 ? b : 63)));
    case kXor:
      return Push(a ^ b);
    case kEqual:
      return Push(a == b);
    case kGreaterOrEqual:
      return Push(signed_a >= signed_b);
    case kGreater:
      return Push(signed_a > signed_b);
    case kLessOrEqual:
      return Push(signed_a <= signed_b);
    case kLess:
      return Push(signed_a < signed_b);
    case kNotEqual:
      return Push(a != b);
    default:
      Stop(ExpressionResult::kBad);
  }
}

void Evaluation::Dereference(size_t bytes) {
  const uint64_t address = Pop();
  const uintptr_t word_address = address - address % sizeof(uintptr_t);
  uintptr_t word = 0;
  const size_t offset = address - word_address;
  if (bytes == 0 || offset + bytes > sizeof(word) || !memory_.Read(word_address, &word)) {
    return Stop(ExpressionResult::kBad);
  }
  const uint64_t shifted = word >> (8 * offset);
  Push(bytes == sizeof(word) ? shifted : shifted & ((uint64_t{1} << (8 * bytes)) - 1));
}

void Evaluation::PushRegister(uint64_t dwarf, int64_t offset) {
  const int index = machine::RegisterIndex(dwarf);
  if (index < 0) return Stop(ExpressionResult::kBad);
  if (!registers_.Knows(static_cast<size_t>(index))) {
    return Stop(ExpressionResult::kUnknownRegister);
  }
  Push(registers_.values[index] + static_cast<uint64_t>(offset));
}

void Evaluation::Branch(TableCursor* cursor, bool taken, uintptr_t start, uintptr_t end) {
  const int64_t distance = cursor->Fixed<int16_t>();
  if (!taken) return;
  const uintptr_t target = cursor->position() + static_cast<uint64_t>(distance);
  if (target < start || target > end) return Stop(ExpressionResult::kBad);
  *cursor = {cursor->object(), target, end};
}

void Evaluation::Execute(uint8_t operation, TableCursor* cursor, uintptr_t start, uintptr_t end) {
  if (PushConstant(operation, cursor) || Rearrange(operation, cursor)) return;
  if (operation >= kBaseRegister0 && operation <= kBaseRegister31) {
    return PushRegister(operation - uint64_t{kBaseRegister0}, cursor->Sleb());
  }
  switch (operation) {
    case kBaseRegister: {
      const uint64_t dwarf = cursor->Uleb();
      return PushRegister(dwarf, cursor->Sleb());
    }
    case kDereference:
      return Dereference(sizeof(uintptr_t));
    case kDereferenceSized:
      return Dereference(cursor->Fixed<uint8_t>());
    case kPlusUleb:
      return Push(Pop() + cursor->Uleb());
    case kNegate:
      return Push(-Pop());
    case kNot:
      return Push(~Pop());
    case kAbsolute: {
      const uint64_t value = Pop();
      return Push(static_cast<int64_t>(value) < 0 ? -value : value);
    }
    case kSkip:
      return Branch(cursor, true, start, end);
    case kBranch: {
      const bool taken = Pop() != 0;
      return Branch(cursor, taken, start, end);
    }
    default:
      ExecuteBinary(operation);
  }
}

}  // namespace

ExpressionResult Evaluate(const LoadedObject& object, uintptr_t block, uintptr_t first,
                          const Registers& registers, StackMemory* memory, uintptr_t* result) {
  constexpr int kMostOperations = 256;
  TableCursor cursor(object, block, object.tables_end);
  const uint64_t bytes = cursor.Uleb();
  const uintptr_t start = cursor.position();
  cursor.Skip(bytes);
  if (cursor.failed()) return ExpressionResult::kBad;
  const uintptr_t end = cursor.position();
  cursor = {object, start, end};

  Evaluation evaluation(registers, memory);
  evaluation.Push(first);
  for (int i = 0; !cursor.done() && i < kMostOperations; ++i) {
    evaluation.Execute(cursor.Fixed<uint8_t>(), &cursor, start, end);
    if (evaluation.result() != ExpressionResult::kGood) return evaluation.result();
  }
  if (cursor.failed() || !cursor.done()) return ExpressionResult::kBad;
  *result = evaluation.Pop();
  return evaluation.result();
}

}  // namespace tcmalloc
