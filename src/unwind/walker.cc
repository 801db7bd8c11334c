// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/walker.h"

#include <cstring>

#include "base/attributes.h"
#include "unwind/expression.h"

namespace tcmalloc {

constinit RuleCache rule_cache;

namespace {

// A frame pointer that leads further is not believed: it may be that of another stack, from which a
// coroutine was made.
constexpr uintptr_t kMostFrameBytes = uintptr_t{1} << 20;

}  // namespace

bool CompactRule::PackSlot(const RegisterRule& rule, unsigned shift, uint64_t* word) {
  if (rule.kind == RuleKind::kSame) return true;
  if (rule.kind != RuleKind::kAtOffset || rule.value >= 0 || rule.value % 8 != 0) return false;
  const auto slot = static_cast<uint64_t>(-(rule.value / 8));
  if (slot >> kSlotBits != 0) return false;
  *word |= slot << shift;
  return true;
}

CompactRule CompactRule::From(const FrameRules& rules) {
  const CompactRule full(Kind::kFull);
  const auto return_register = static_cast<size_t>(rules.return_register);
  const RegisterRule& return_rule = rules.registers[return_register];
  if (return_rule.kind == RuleKind::kUndefined) return CompactRule(Kind::kOutermost);
  if (rules.is_signal_frame || rules.frame_kind != RuleKind::kOffset) return full;

  uint64_t word = 0;
  switch (rules.frame_register) {
    case machine::kStackPointer:
      word = static_cast<uint64_t>(Kind::kFromStackPointer);
      break;
    case machine::kFramePointer:
      word = static_cast<uint64_t>(Kind::kFromFramePointer);
      break;
    case machine::kExtra:
      word = static_cast<uint64_t>(Kind::kFromExtra);
      break;
    default:
      return full;
  }
  if (rules.frame_value < 0 || rules.frame_value % 8 != 0) return full;
  const auto offset = static_cast<uint64_t>(rules.frame_value / 8);
  if (offset >> kFrameBits != 0) return full;
  word |= offset << kFrameShift;
  if (!PackSlot(rules.registers[machine::kFramePointer], kPointerShift, &word)) return full;
  if (!PackSlot(rules.registers[machine::kExtra], kExtraShift, &word)) return full;

  const bool return_fits = machine::kExtraIsReturnAddress
                               ? return_register == machine::kExtra
                               : return_rule.kind == RuleKind::kAtOffset && return_rule.value == -8;
  return return_fits ? CompactRule(word) : full;
}

Walker::Walker(const Registers& registers, bool at_call, Precision precision, KnownObjects& objects)
    : registers_(registers),
      objects_(objects),
      at_call_(at_call),
      keeps_all_(precision == Precision::kAllRegisters) {
  memory_.MoveTo(sp(), guessed_);
}

Walker::Walker(const Registers& registers, Precision precision, KnownObjects& objects,
               const CopiedWords& copy)
    : registers_(registers),
      objects_(objects),
      at_call_(true),
      keeps_all_(precision == Precision::kAllRegisters),
      guessed_(true) {
  memory_.UseCopy(sp(), copy);
}

TCMALLOC_ALWAYS_INLINE CompactRule Walker::RuleOf(const LoadedObject& object, uintptr_t address) {
  const CompactRule rule = rule_cache.Find(address, object.identity);
  if (TCMALLOC_LIKELY(rule.kind() != CompactRule::Kind::kNone)) return rule;
  return FindRule(object, address);
}

StepResult Walker::Step() {
  // A return address may lie behind the last instruction of its function.
  const uintptr_t address = pc() - (at_call_ ? 1 : 0);
  last_rule_ = CompactRule();
  const LoadedObject* object = objects_.Find(address, !guessed_);
  if (TCMALLOC_UNLIKELY(object == nullptr)) {
    return IsSignalReturn() ? StepOutOfHandler() : StepByFramePointer();
  }
  const CompactRule rule = RuleOf(*object, address);
  if (TCMALLOC_LIKELY(!guessed_ && at_call_)) last_rule_ = rule;
  switch (rule.kind()) {
    case CompactRule::Kind::kOutermost:
      return StepResult::kEnd;
    case CompactRule::Kind::kFull:
      return StepByTables(*object, address);
    case CompactRule::Kind::kNone:
    case CompactRule::Kind::kNoTable:
      return IsSignalReturn() ? StepOutOfHandler() : StepByFramePointer();
    default:
      break;
  }
  return keeps_all_ ? StepByTables(*object, address) : StepByRule(rule);
}

bool Walker::HasFrameRecord() {
  const uintptr_t address = pc() - (at_call_ ? 1 : 0);
  const LoadedObject* object = objects_.Find(address, !guessed_);
  if (object == nullptr) return !IsSignalReturn();
  const CompactRule rule = RuleOf(*object, address);
  switch (rule.kind()) {
    case CompactRule::Kind::kFromStackPointer:
      return IsAtRecord(rule, registers_.values[machine::kStackPointer]);
    case CompactRule::Kind::kFromFramePointer:
      return IsAtRecord(rule, registers_.values[machine::kFramePointer]);
    case CompactRule::Kind::kNoTable:
      return !IsSignalReturn();
    default:
      return false;
  }
}

// Returns true if the frame pointer points to where the rule says that the caller's is saved, and
// the return address follows it.
bool Walker::IsAtRecord(CompactRule rule, uintptr_t base) const {
  const uintptr_t slot = rule.frame_pointer_slot();
  const uintptr_t return_slot =
      machine::kExtraIsReturnAddress ? rule.extra_slot() : sizeof(uintptr_t);
  return slot == return_slot + sizeof(uintptr_t) && registers_.Knows(machine::kFramePointer) &&
         registers_.values[machine::kFramePointer] == base + rule.frame_offset() - slot;
}

bool Walker::MayBeCode() {
  const uintptr_t address = pc() - 1;
  char code = 0;
  return objects_.Find(address, /*runs=*/false) != nullptr || CopyIfReadable(address, &code, 1);
}

CompactRule Walker::FindRule(const LoadedObject& object, uintptr_t address) {
  FrameRules rules;
  const CompactRule rule = ReadFrameRules(object, address, tables_, &rules)
                               ? CompactRule::From(rules)
                               : CompactRule(CompactRule::Kind::kNoTable);
  rule_cache.Add(address, object.identity, rule);
  return rule;
}

TCMALLOC_ALWAYS_INLINE StepResult Walker::StepByRule(CompactRule rule) {
  int base = machine::kStackPointer;
  if (rule.kind() != CompactRule::Kind::kFromStackPointer) {
    base = rule.kind() == CompactRule::Kind::kFromFramePointer ? machine::kFramePointer
                                                               : machine::kExtra;
    if (!registers_.Knows(static_cast<size_t>(base))) return StepResult::kNeedsRegister;
  }
  const uintptr_t frame = registers_.values[base] + rule.frame_offset();
  uintptr_t* const values = registers_.values;
  if (rule.frame_pointer_slot() != 0) {
    if (!memory_.Read(frame - rule.frame_pointer_slot(), &values[machine::kFramePointer])) {
      return StepResult::kEnd;
    }
    registers_.known |= uint32_t{1} << machine::kFramePointer;
  }
  if (rule.extra_slot() != 0) {
    if (!memory_.Read(frame - rule.extra_slot(), &values[machine::kExtra])) return StepResult::kEnd;
    registers_.known |= uint32_t{1} << machine::kExtra;
  }
  uintptr_t pc = 0;
  if constexpr (machine::kExtraIsReturnAddress) {
    if (!registers_.Knows(machine::kExtra)) return StepResult::kEnd;
    pc = values[machine::kExtra];
  } else if (!memory_.Read(frame - sizeof(uintptr_t), &pc)) {
    return StepResult::kEnd;
  }
  KeepFew();
  return MoveTo(frame, pc);
}

// Ends the walk where the stack does not go on upwards: wrong rules shall not lead around in
// circles. A function that was interrupted may not have used the stack yet.
TCMALLOC_ALWAYS_INLINE StepResult Walker::MoveTo(uintptr_t frame, uintptr_t pc) {
  pc = machine::StripAuthentication(pc);
  if (pc == 0 || frame < sp() || (frame == sp() && at_call_)) return StepResult::kEnd;
  registers_.values[machine::kStackPointer] = frame;
  registers_.values[machine::kPc] = pc;
  at_call_ = true;
  return StepResult::kCaller;
}

bool Walker::MoveUp(uintptr_t sp, uintptr_t pc, uintptr_t frame_pointer_at, uintptr_t extra_at) {
  uintptr_t value = 0;
  if (frame_pointer_at != 0) {
    if (!memory_.Read(frame_pointer_at, &value)) return false;
    registers_.Set(machine::kFramePointer, value);
  }
  if (extra_at != 0) {
    if (!memory_.Read(extra_at, &value)) return false;
    registers_.Set(machine::kExtra, value);
  }
  registers_.Set(machine::kStackPointer, sp);
  registers_.Set(machine::kPc, pc);
  KeepFew();
  at_call_ = true;
  return true;
}

bool Walker::FindFrame(const LoadedObject& object, const FrameRules& rules, uintptr_t* frame,
                       StepResult* failure) {
  *failure = StepResult::kEnd;
  if (rules.frame_kind == RuleKind::kExpression) {
    const uintptr_t block = object.tables_start + static_cast<uint32_t>(rules.frame_value);
    const ExpressionResult result = Evaluate(object, block, 0, registers_, &memory_, frame);
    if (result == ExpressionResult::kUnknownRegister) *failure = StepResult::kNeedsRegister;
    return result == ExpressionResult::kGood;
  }
  if (rules.frame_register < 0) return false;
  const auto base = static_cast<size_t>(rules.frame_register);
  if (!registers_.Knows(base)) {
    *failure = StepResult::kNeedsRegister;
    return false;
  }
  *frame = registers_.values[base] + static_cast<uintptr_t>(intptr_t{rules.frame_value});
  return true;
}

// Sets a register of `caller` where its value can be found.
bool Walker::FindRegister(const LoadedObject& object, const RegisterRule& rule, uintptr_t frame,
                          size_t index, Registers* caller) {
  const uintptr_t offset = static_cast<uintptr_t>(intptr_t{rule.value});
  uintptr_t value = 0;
  switch (rule.kind) {
    case RuleKind::kSame:
      if (!registers_.Knows(index)) return false;
      value = registers_.values[index];
      break;
    case RuleKind::kUndefined:
      return false;
    case RuleKind::kRegister:
      if (!registers_.Knows(static_cast<size_t>(rule.value))) return false;
      value = registers_.values[rule.value];
      break;
    case RuleKind::kOffset:
      value = frame + offset;
      break;
    case RuleKind::kAtOffset:
      if (!memory_.Read(frame + offset, &value)) return false;
      break;
    case RuleKind::kAtExpression:
    case RuleKind::kExpression: {
      const uintptr_t block = object.tables_start + static_cast<uint32_t>(rule.value);
      if (Evaluate(object, block, frame, registers_, &memory_, &value) != ExpressionResult::kGood) {
        return false;
      }
      if (rule.kind == RuleKind::kAtExpression && !memory_.Read(value, &value)) return false;
      break;
    }
  }
  caller->Set(index, value);
  return true;
}

TCMALLOC_NOINLINE StepResult Walker::StepByTables(const LoadedObject& object, uintptr_t address) {
  FrameRules rules;
  if (!ReadFrameRules(object, address, tables_, &rules)) return StepResult::kEnd;
  if (rules.is_signal_frame && IsSignalReturn()) {
    last_rule_ = CompactRule();
    return StepOutOfHandler();
  }

  uintptr_t frame = 0;
  StepResult failure;
  if (!FindFrame(object, rules, &frame, &failure)) return failure;
  Registers caller;
  caller.known = 0;
  for (size_t i = 0; i < Registers::kCount; ++i) {
    if (i == machine::kStackPointer) continue;
    FindRegister(object, rules.registers[i], frame, i, &caller);
  }
  const auto return_register = static_cast<size_t>(rules.return_register);
  const RuleKind return_kind = rules.registers[return_register].kind;
  if (return_kind == RuleKind::kUndefined || !caller.Knows(return_register)) {
    return keeps_all_ || return_kind == RuleKind::kUndefined ? StepResult::kEnd
                                                             : StepResult::kNeedsRegister;
  }
  const uintptr_t return_address = caller.values[return_register];
  caller.Set(machine::kStackPointer, sp());
  caller.Set(machine::kPc, return_address);
  registers_ = caller;
  return MoveTo(frame, return_address);
}

bool Walker::IsSignalReturn() const {
  unsigned char code[sizeof(machine::kSignalReturn)];
  return CopyIfReadable(pc(), code, sizeof(code)) &&
         std::memcmp(code, machine::kSignalReturn, sizeof(code)) == 0;
}

// Goes on where a signal handler interrupted the thread, maybe on another stack.
TCMALLOC_NOINLINE StepResult Walker::StepOutOfHandler() {
  uintptr_t words[machine::kContextWords];
  if (!memory_.Copy(sp() + machine::kContextWordsOffset, words, sizeof(words))) {
    return StepResult::kEnd;
  }
  machine::ReadContext(words, &registers_);
  if (pc() == 0) return StepResult::kEnd;
  memory_.MoveTo(sp(), guessed_);
  at_call_ = false;
  return StepResult::kCaller;
}

StepResult Walker::StepByFramePointer() {
  if (!registers_.Knows(machine::kFramePointer)) return StepResult::kEnd;
  const uintptr_t record = registers_.values[machine::kFramePointer];
  if (record - sp() > kMostFrameBytes || record % machine::kFrameAlignment != 0) {
    return StepResult::kEnd;
  }
  guessed_ = true;
  memory_.set_guessed();
  uintptr_t caller_record = 0;
  uintptr_t pc = 0;
  if (!memory_.Read(record, &caller_record) || !memory_.Read(record + sizeof(uintptr_t), &pc)) {
    return StepResult::kEnd;
  }
  registers_.known = uint32_t{1} << machine::kFramePointer | uint32_t{1} << machine::kStackPointer |
                     uint32_t{1} << machine::kPc;
  registers_.values[machine::kFramePointer] = caller_record;
  return MoveTo(record + machine::kFrameRecordBytes, pc);
}

}  // namespace tcmalloc
