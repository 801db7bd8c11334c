// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/cfi.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/attributes.h"
#include "system/own_memory.h"
#include "unwind/readable_memory.h"
#include "unwind/table_cursor.h"

namespace tcmalloc {
namespace {

using E = PointerEncoding;

// A function, or a part of one.
struct FunctionInformation {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uintptr_t instructions = 0;
  uintptr_t instructions_end = 0;
  CommonInformation common;
  uintptr_t common_position = 0;  // of the entry that it is from

  bool Contains(uintptr_t address) const { return address >= begin && address < end; }
};

// Reads the length of an entry and returns a cursor for the rest of it.
TableCursor EnterEntry(TableCursor* cursor) {
  constexpr uint32_t kLongLength = 0xffffffff;
  uint64_t length = cursor->Fixed<uint32_t>();
  if (length == kLongLength) length = cursor->Fixed<uint64_t>();
  const uintptr_t start = cursor->position();
  cursor->Skip(length);
  TableCursor entry(cursor->object(), start, cursor->position());
  if (cursor->failed() || length == 0) entry.Fail();
  return entry;
}

// Reads what the letters of an augmentation stand for. Returns false for a letter that is not
// known, after which the entry's end cannot be told from its instructions.
bool ReadAugmentation(TableCursor letters, TableCursor* data, CommonInformation* common) {
  for (;;) {
    switch (letters.Fixed<char>()) {
      case '\0':
        return !letters.failed();
      case 'R':
        common->pointer_encoding = data->Fixed<uint8_t>();
        break;
      case 'P': {
        const auto encoding = data->Fixed<uint8_t>();
        data->Number(encoding);
        break;
      }
      case 'L':
        data->Skip(1);
        break;
      case 'S':
        common->is_signal_frame = true;
        break;
      // Return addresses are signed with another key, or memory is tagged. Stripping is the same.
      case 'B':
      case 'G':
        break;
      default:
        return true;  // the length of the data says where the instructions begin
    }
  }
}

bool ReadCommon(const LoadedObject& object, uintptr_t position, CommonInformation* common) {
  TableCursor table(object, position, object.tables_end);
  TableCursor entry = EnterEntry(&table);
  if (entry.Fixed<uint32_t>() != 0) return false;  // not a common entry
  const auto version = entry.Fixed<uint8_t>();
  if (version != 1 && version != 3 && version != 4) return false;
  *common = {};
  common->pointer_encoding = E::kAbsolute;
  TableCursor letters = entry;
  while (entry.Fixed<char>() != '\0') {
  }
  if (version == 4) entry.Skip(2);  // sizes of an address and of a segment's selector
  common->code_alignment = entry.Uleb();
  common->data_alignment = entry.Sleb();
  const uint64_t column = version == 1 ? entry.Fixed<uint8_t>() : entry.Uleb();
  common->return_register = machine::RegisterIndex(column);
  if (entry.failed()) return false;

  const char first = letters.Fixed<char>();
  if (first == 'z') {
    common->has_augmentation = true;
    const uint64_t bytes = entry.Uleb();
    TableCursor data = entry;
    entry.Skip(bytes);
    if (entry.failed() || !ReadAugmentation(letters, &data, common) || data.failed()) return false;
  } else if (first != '\0') {
    return false;
  }
  common->instructions = entry.position();
  common->instructions_end = entry.end();
  return !entry.failed();
}

bool IsEntry(const CommonEntries::Entry& entry, uint64_t object, uintptr_t position) {
  return entry.object == object && entry.position == position && object != 0;
}

// Reads the shared entry at `position`, or finds that it was read before.
bool FindCommon(const LoadedObject& object, uintptr_t position, TableMemory* memory,
                CommonInformation* common) {
  if (memory != nullptr) {
    const CommonEntries::Entry& known = memory->common.At(object.identity, position);
    if (IsEntry(known, object.identity, position)) {
      *common = known.information;
      return true;
    }
  }
  return ReadCommon(object, position, common);
}

// Reads the function's entry at the cursor and moves the cursor behind it. Returns false for an
// entry of another kind, and at the end of the table, where the cursor has failed.
bool ReadFunction(TableCursor* table, TableMemory* memory, FunctionInformation* function) {
  TableCursor entry = EnterEntry(table);
  const uintptr_t place = entry.position();
  const auto distance = entry.Fixed<uint32_t>();
  if (entry.failed() || distance == 0) return false;
  function->common_position = place - distance;
  if (!FindCommon(table->object(), function->common_position, memory, &function->common)) {
    return false;
  }
  const uint8_t encoding = function->common.pointer_encoding;
  if ((encoding & E::kIndirect) != 0) return false;
  function->begin = entry.Pointer(encoding);
  function->end = function->begin + entry.Number(encoding);
  if (function->common.has_augmentation) entry.Skip(entry.Uleb());
  function->instructions = entry.position();
  function->instructions_end = entry.end();
  return !entry.failed();
}

// The beginning of .eh_frame_hdr.
struct SearchTable {
  uintptr_t entries = 0;  // pairs of 32-bit distances, sorted by the first; 0 if there are none
  uint64_t count = 0;
  uintptr_t frames = 0;  // .eh_frame
};

constexpr uint64_t kSearchEntryBytes = 8;

bool ReadSearchTable(const LoadedObject& object, SearchTable* table) {
  TableCursor header(object, object.table, object.tables_end);
  if (header.Fixed<uint8_t>() != 1) return false;
  const auto frames_encoding = header.Fixed<uint8_t>();
  const auto count_encoding = header.Fixed<uint8_t>();
  const auto entry_encoding = header.Fixed<uint8_t>();
  if (frames_encoding == E::kOmitted) return false;
  table->frames = header.Pointer(frames_encoding, object.table);
  if (header.failed()) return false;
  if (count_encoding == E::kOmitted || entry_encoding != (E::kToHeader | E::kSigned4)) return true;
  table->count = header.Pointer(count_encoding, object.table);
  table->entries = header.position();
  return !header.failed() &&
         table->count <= (object.tables_end - table->entries) / kSearchEntryBytes;
}

// Reads the sorted entries, in any order.
class SearchEntries {
 public:
  SearchEntries(const LoadedObject& object, const SearchTable& table)
      : object_(object), first_(table.entries) {}

  // Return where a function begins, and where its entry in .eh_frame is.
  uintptr_t Begin(uint64_t index) { return Target(first_ + index * kSearchEntryBytes); }
  uintptr_t Function(uint64_t index) {
    return Target(first_ + index * kSearchEntryBytes + sizeof(int32_t));
  }
  bool failed() const { return failed_; }

 private:
  // The last steps of a search stay in one page.
  uintptr_t Target(uintptr_t place) {
    int32_t distance = 0;
    if (place - page_ <= kProbedPageBytes - sizeof(distance) && page_ != 0) {
      std::memcpy(&distance, reinterpret_cast<const void*>(place), sizeof(distance));
    } else if (ReadTable(object_, place, &distance, sizeof(distance))) {
      const uintptr_t end = EndInPlace(object_, place);
      page_ = end == 0 ? 0 : end - kProbedPageBytes;
    } else {
      failed_ = true;
    }
    return object_.table + static_cast<uint64_t>(int64_t{distance});
  }

  const LoadedObject& object_;
  uintptr_t first_;
  uintptr_t page_ = 0;  // that can be read in place
  bool failed_ = false;
};

// Finds the function by its place in the sorted entries.
bool SearchFunction(const LoadedObject& object, const SearchTable& table, uintptr_t address,
                    TableMemory* memory, FunctionInformation* function) {
  SearchEntries entries(object, table);
  uint64_t low = 0;  // entries before it begin at `address` or before
  uint64_t high = table.count;
  while (low < high && !entries.failed()) {
    const uint64_t middle = low + (high - low) / 2;
    if (entries.Begin(middle) <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (entries.failed() || low == 0) return false;
  const uintptr_t place = entries.Function(low - 1);
  if (entries.failed()) return false;
  TableCursor cursor(object, place, object.tables_end);
  return ReadFunction(&cursor, memory, function) && function->Contains(address);
}

// Finds the function by reading all entries, where they are not sorted.
bool ScanForFunction(const LoadedObject& object, uintptr_t frames, uintptr_t address,
                     TableMemory* memory, FunctionInformation* function) {
  constexpr int kMostEntries = 1 << 16;
  TableCursor cursor(object, frames, object.tables_end);
  for (int i = 0; i < kMostEntries && !cursor.failed(); ++i) {
    if (ReadFunction(&cursor, memory, function) && function->Contains(address)) return true;
  }
  return false;
}

// The functions of a program that has no search table, sorted. Made by the first walk that wants
// it; those that come meanwhile find nothing. Never unmapped.
class ProgramIndex {
 public:
  constexpr ProgramIndex() = default;
  ProgramIndex(const ProgramIndex&) = delete;
  ProgramIndex& operator=(const ProgramIndex&) = delete;

  // Requires `program` to be the object of the program, and its tables to be .eh_frame.
  bool Find(const LoadedObject& program, uintptr_t address, TableMemory* memory,
            FunctionInformation* function) {
    if (!IsReady(program)) return false;
    const Entry* begin = entries_;
    const Entry* next =
        std::upper_bound(begin, begin + count_, address,
                         [](uintptr_t wanted, const Entry& entry) { return wanted < entry.begin; });
    if (next == begin) return false;
    TableCursor cursor(program, (next - 1)->place, program.tables_end);
    return ReadFunction(&cursor, memory, function) && function->Contains(address);
  }

 private:
  struct Entry {
    uintptr_t begin;
    uintptr_t place;  // of its entry in the table
  };
  enum class State : uint8_t { kUnknown, kInWork, kReady, kNone };

  bool IsReady(const LoadedObject& program) {
    // Acquire pairs with the release in IsReady and makes the entries visible.
    State state = state_.load(std::memory_order_acquire);
    if (state == State::kUnknown &&
        state_.compare_exchange_strong(state, State::kInWork, std::memory_order_relaxed)) {
      state = Make(program) ? State::kReady : State::kNone;
      // Release pairs with the acquire in IsReady and publishes the entries.
      state_.store(state, std::memory_order_release);
    }
    return state == State::kReady;
  }

  // Calls f(function, place) for each function.
  template <typename F>
  static void ForEach(const LoadedObject& program, F f) {
    TableCursor cursor(program, program.tables_start, program.tables_end);
    while (!cursor.failed() && !cursor.done()) {
      const uintptr_t place = cursor.position();
      FunctionInformation function;
      if (ReadFunction(&cursor, nullptr, &function)) f(function, place);
    }
  }

  bool Make(LoadedObject program) {
    program.stays = true;
    size_t count = 0;
    ForEach(program, [&](const FunctionInformation&, uintptr_t) { ++count; });
    if (count == 0) return false;
    void* memory = MapZeroed(count * sizeof(Entry));
    if (memory == nullptr) return false;
    entries_ = static_cast<Entry*>(memory);
    ForEach(program, [&](const FunctionInformation& function, uintptr_t place) {
      if (count_ < count) entries_[count_++] = {function.begin, place};
    });
    std::sort(entries_, entries_ + count_,
              [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
    return true;
  }

  std::atomic<State> state_{State::kUnknown};
  Entry* entries_ = nullptr;
  size_t count_ = 0;
};

constinit ProgramIndex program_index;

TCMALLOC_NOINLINE bool FindFunction(const LoadedObject& object, uintptr_t address,
                                    TableMemory* memory, FunctionInformation* function) {
  if (object.table == 0) {
    return object.has_program_frames && program_index.Find(object, address, memory, function);
  }
  SearchTable table;
  if (!ReadSearchTable(object, &table)) return false;
  if (table.entries != 0) return SearchFunction(object, table, address, memory, function);
  return ScanForFunction(object, table.frames, address, memory, function);
}

// Executes instructions up to those of an address.
class Program {
 public:
  Program(const FunctionInformation& function, uintptr_t address)
      : function_(function), common_(function.common), address_(address) {
    current_.location = function.begin;
  }

  const FrameRules& rules() const { return current_.rules; }

  // Executes the instructions that are common to functions, or takes what they led to before.
  bool RunCommon(const LoadedObject& object, TableMemory* memory);

  // Executes those of a function, and moves the cursor behind the last one.
  bool Run(TableCursor& cursor);

  // Goes on, instead of beginning, from what Keep kept.
  void GoOnFrom(const TableProgress& progress) {
    std::memcpy(&current_, progress.state.data(), sizeof(current_));
  }
  // Keeps how far this program came, if it was a long way.
  void Keep(const TableCursor& cursor, TableProgress* progress) const;

 private:
  // The fewest bytes of instructions for which copying the state is worth it.
  static constexpr uintptr_t kLongWay = 256;

  // Instructions with an operand in their lower bits.
  static constexpr uint8_t kAdvance = 0x40;
  static constexpr uint8_t kOffset = 0x80;
  static constexpr uint8_t kRestore = 0xc0;
  enum Instruction : uint8_t {
    kNothing = 0x00,
    kSetLocation = 0x01,
    kAdvance1 = 0x02,
    kAdvance2 = 0x03,
    kAdvance4 = 0x04,
    kOffsetExtended = 0x05,
    kRestoreExtended = 0x06,
    kUndefined = 0x07,
    kSameValue = 0x08,
    kRegister = 0x09,
    kRememberState = 0x0a,
    kRestoreState = 0x0b,
    kFrame = 0x0c,
    kFrameRegister = 0x0d,
    kFrameOffset = 0x0e,
    kFrameExpression = 0x0f,
    kExpression = 0x10,
    kOffsetExtendedSigned = 0x11,
    kFrameSigned = 0x12,
    kFrameOffsetSigned = 0x13,
    kValueOffset = 0x14,
    kValueOffsetSigned = 0x15,
    kValueExpression = 0x16,
    kSignAddressWithPc = 0x2c,
    kSignAddress = 0x2d,
    kArgumentsSize = 0x2e,
    kOffsetNegative = 0x2f,
  };

  bool Execute(uint8_t instruction, TableCursor& cursor);
  bool ExecuteFrame(uint8_t instruction, TableCursor& cursor);
  bool Remember();
  bool RestoreRemembered();

  bool reached() const { return current_.location > address_; }

  void MoveTo(uintptr_t location) {
    current_.location = location;
    has_moved_ = true;
  }
  void AdvanceBy(uint64_t units) { MoveTo(current_.location + units * common_.code_alignment); }

  // Sets the rule of a register by its DWARF number. Ignores registers that are not tracked.
  bool SetRule(uint64_t dwarf, RuleKind kind, int64_t value) {
    if (value != static_cast<int32_t>(value)) return false;
    const int index = machine::RegisterIndex(dwarf);
    if (index >= 0) {
      current_.rules.registers[static_cast<size_t>(index)] = {kind, static_cast<int32_t>(value)};
    }
    return true;
  }

  int64_t Factored(uint64_t offset) const {
    return static_cast<int64_t>(offset * static_cast<uint64_t>(common_.data_alignment));
  }

  // Skips an expression and returns where it is from tables_start on.
  static int64_t SkipExpression(TableCursor& cursor) {
    const uintptr_t offset = cursor.position() - cursor.object().tables_start;
    cursor.Skip(cursor.Uleb());
    return static_cast<int64_t>(offset);
  }

  void RestoreInitial(uint64_t dwarf) {
    const int index = machine::RegisterIndex(dwarf);
    if (index < 0) return;
    const auto at = static_cast<size_t>(index);
    current_.rules.registers[at] = current_.initial.registers[at];
  }

  bool SetFrameRegister(uint64_t dwarf) {
    current_.rules.frame_kind = RuleKind::kOffset;
    current_.rules.frame_register = static_cast<int16_t>(machine::RegisterIndex(dwarf));
    return true;
  }

  bool SetFrameValue(RuleKind kind, int64_t value) {
    if (value != static_cast<int32_t>(value)) return false;
    current_.rules.frame_kind = kind;
    current_.rules.frame_value = static_cast<int32_t>(value);
    return true;
  }

  const FunctionInformation& function_;
  const CommonInformation& common_;
  uintptr_t address_;
  bool has_moved_ = false;
  TableState current_;
};

bool Program::RunCommon(const LoadedObject& object, TableMemory* memory) {
  CommonEntries::Entry* entry =
      memory != nullptr ? &memory->common.At(object.identity, function_.common_position) : nullptr;
  if (entry != nullptr && IsEntry(*entry, object.identity, function_.common_position)) {
    std::memcpy(&current_.rules, entry->rules.data(), sizeof(current_.rules));
  } else {
    TableCursor cursor(object, common_.instructions, common_.instructions_end);
    if (!Run(cursor)) return false;
    // Instructions that move on would lead elsewhere in another function, and states that they put
    // away are not in the entry.
    if (entry != nullptr && !has_moved_ && current_.remembered_count == 0) {
      entry->object = object.identity;
      entry->position = function_.common_position;
      entry->information = common_;
      std::memcpy(entry->rules.data(), &current_.rules, sizeof(current_.rules));
    }
  }
  current_.initial = current_.rules;
  return true;
}

void Program::Keep(const TableCursor& cursor, TableProgress* progress) const {
  if (cursor.position() - function_.instructions < kLongWay) return;
  progress->object = cursor.object().identity;
  progress->instructions = function_.instructions;
  progress->address = address_;
  progress->position = cursor.position();
  std::memcpy(progress->state.data(), &current_, sizeof(current_));
}

bool Program::Run(TableCursor& cursor) {
  while (!cursor.done() && !reached()) {
    const auto instruction = cursor.Fixed<uint8_t>();
    const uint8_t operand = instruction & 0x3f;
    bool good = true;
    switch (instruction & 0xc0) {
      case kAdvance:
        AdvanceBy(operand);
        break;
      case kOffset:
        good = SetRule(operand, RuleKind::kAtOffset, Factored(cursor.Uleb()));
        break;
      case kRestore:
        RestoreInitial(operand);
        break;
      default:
        good = Execute(instruction, cursor);
    }
    if (!good || cursor.failed()) return false;
  }
  return true;
}

bool Program::Execute(uint8_t instruction, TableCursor& cursor) {
  switch (instruction) {
    case kNothing:
    case kSignAddress:
    case kSignAddressWithPc:
      return true;
    case kSetLocation:
      MoveTo(cursor.Pointer(common_.pointer_encoding));
      return true;
    case kAdvance1:
      AdvanceBy(cursor.Fixed<uint8_t>());
      return true;
    case kAdvance2:
      AdvanceBy(cursor.Fixed<uint16_t>());
      return true;
    case kAdvance4:
      AdvanceBy(cursor.Fixed<uint32_t>());
      return true;
    case kRememberState:
      return Remember();
    case kRestoreState:
      return RestoreRemembered();
    case kArgumentsSize:
      cursor.Uleb();
      return true;
    case kFrame:
    case kFrameRegister:
    case kFrameOffset:
    case kFrameExpression:
    case kFrameSigned:
    case kFrameOffsetSigned:
      return ExecuteFrame(instruction, cursor);
    default:
      break;
  }
  const uint64_t dwarf = cursor.Uleb();
  switch (instruction) {
    case kOffsetExtended:
      return SetRule(dwarf, RuleKind::kAtOffset, Factored(cursor.Uleb()));
    case kOffsetExtendedSigned:
      return SetRule(dwarf, RuleKind::kAtOffset, Factored(static_cast<uint64_t>(cursor.Sleb())));
    case kOffsetNegative:
      return SetRule(dwarf, RuleKind::kAtOffset, -Factored(cursor.Uleb()));
    case kRestoreExtended:
      RestoreInitial(dwarf);
      return true;
    case kUndefined:
      return SetRule(dwarf, RuleKind::kUndefined, 0);
    case kSameValue:
      return SetRule(dwarf, RuleKind::kSame, 0);
    case kRegister: {
      const int source = machine::RegisterIndex(cursor.Uleb());
      return SetRule(dwarf, source < 0 ? RuleKind::kUndefined : RuleKind::kRegister, source);
    }
    case kExpression:
      return SetRule(dwarf, RuleKind::kAtExpression, SkipExpression(cursor));
    case kValueExpression:
      return SetRule(dwarf, RuleKind::kExpression, SkipExpression(cursor));
    case kValueOffset:
      return SetRule(dwarf, RuleKind::kOffset, Factored(cursor.Uleb()));
    case kValueOffsetSigned:
      return SetRule(dwarf, RuleKind::kOffset, Factored(static_cast<uint64_t>(cursor.Sleb())));
    default:
      return false;
  }
}

bool Program::ExecuteFrame(uint8_t instruction, TableCursor& cursor) {
  switch (instruction) {
    case kFrame:
      return SetFrameRegister(cursor.Uleb()) &&
             SetFrameValue(RuleKind::kOffset, static_cast<int64_t>(cursor.Uleb()));
    case kFrameSigned:
      return SetFrameRegister(cursor.Uleb()) &&
             SetFrameValue(RuleKind::kOffset, Factored(static_cast<uint64_t>(cursor.Sleb())));
    case kFrameRegister:
      return SetFrameRegister(cursor.Uleb());
    case kFrameOffset:
      return SetFrameValue(RuleKind::kOffset, static_cast<int64_t>(cursor.Uleb()));
    case kFrameOffsetSigned:
      return SetFrameValue(RuleKind::kOffset, Factored(static_cast<uint64_t>(cursor.Sleb())));
    default:
      return SetFrameValue(RuleKind::kExpression, SkipExpression(cursor));
  }
}

bool Program::Remember() {
  if (current_.remembered_count == TableState::kMostRemembered) return false;
  current_.remembered[current_.remembered_count++] = current_.rules;
  return true;
}

bool Program::RestoreRemembered() {
  if (current_.remembered_count == 0) return false;
  current_.rules = current_.remembered[--current_.remembered_count];
  return true;
}

// Returns true if the table of the function was executed up to an instruction at or before
// `address`.
bool IsOnTheWay(const TableProgress& progress, const LoadedObject& object,
                const FunctionInformation& function, uintptr_t address) {
  return progress.object == object.identity && progress.object != 0 &&
         progress.instructions == function.instructions && progress.address <= address;
}

// Finds the rules in the table of a function. Not inlined, so that the search for the function does
// not take this much of the stack.
TCMALLOC_NOINLINE bool ExecuteTable(const LoadedObject& object, const FunctionInformation& function,
                                    uintptr_t address, TableMemory* memory, FrameRules* rules) {
  Program program(function, address);
  uintptr_t begin = function.instructions;
  if (memory != nullptr && IsOnTheWay(memory->progress, object, function, address)) {
    program.GoOnFrom(memory->progress);
    begin = memory->progress.position;
  } else if (!program.RunCommon(object, memory)) {
    return false;
  }
  TableCursor cursor(object, begin, function.instructions_end);
  if (!program.Run(cursor)) return false;
  if (memory != nullptr) program.Keep(cursor, &memory->progress);
  *rules = program.rules();
  rules->return_register = static_cast<int16_t>(function.common.return_register);
  rules->is_signal_frame = function.common.is_signal_frame;
  rules->function = function.begin;
  return rules->frame_kind != RuleKind::kUndefined && rules->return_register >= 0;
}

}  // namespace

bool ReadFrameRules(const LoadedObject& object, uintptr_t address, TableMemory* memory,
                    FrameRules* rules) {
  FunctionInformation function;
  return FindFunction(object, address, memory, &function) &&
         ExecuteTable(object, function, address, memory, rules);
}

}  // namespace tcmalloc
