// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/signals/breakpoints.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace tcmalloc::testing {
namespace {

constexpr uint8_t kBreakpoint = 0xcc;  // int3

uint8_t& ByteAt(uintptr_t address) { return *reinterpret_cast<uint8_t*>(address); }

template <typename T>
T Read(uintptr_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(value));
  return value;
}

// Where a thread may be after an instruction.
struct Ways {
  std::array<uintptr_t, 2> to;
  size_t count = 0;
};

// `at` is where an offset of type T stands, which counts from behind itself.
template <typename T>
uintptr_t Target(uintptr_t at) {
  return at + sizeof(T) + static_cast<uintptr_t>(intptr_t{Read<T>(at)});
}
template <typename T>
Ways Jump(uintptr_t at) {
  return {{Target<T>(at)}, 1};
}
template <typename T>
Ways Branch(uintptr_t at) {
  return {{at + sizeof(T), Target<T>(at)}, 2};
}

bool IsPrefix(uint8_t byte) {
  constexpr uint8_t kPrefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
                                   0x66, 0x67, 0xf0, 0xf2, 0xf3};
  return std::find(std::begin(kPrefixes), std::end(kPrefixes), byte) != std::end(kPrefixes) ||
         (byte & 0xf0) == 0x40;
}

// Instructions on strings, which a prefix repeats with a trap for each time.
bool IsOnStrings(uint8_t code) {
  return (code >= 0xa4 && code <= 0xa7) || (code >= 0xaa && code <= 0xaf);
}

// Those that go elsewhere by a register or by memory, or that have to do with flags or traps.
bool IsSpecial(uintptr_t code) {
  constexpr uint8_t kSpecial[] = {0x9c, 0x9d, 0xc2, 0xca, 0xcb, 0xcc, 0xcd,
                                  0xcf, 0xe0, 0xe1, 0xe2, 0xe3, 0xf4};
  const uint8_t first = ByteAt(code);
  if (first == 0xff) return (ByteAt(code + 1) >> 3 & 7) >= 2;
  return std::find(std::begin(kSpecial), std::end(kSpecial), first) != std::end(kSpecial);
}

// None if that is not known. `length` of the instruction is 0 if that is not known either.
Ways WaysFrom(uintptr_t address, uint8_t length, uintptr_t stack) {
  uintptr_t code = address;
  while (IsPrefix(ByteAt(code))) ++code;
  const uint8_t first = ByteAt(code);
  const bool has_prefix = code != address;
  const bool is_branch = (first & 0xf0) == 0x70 || first == 0xe8 || first == 0xe9 ||
                         first == 0xeb || first == 0xc3 ||
                         (first == 0x0f && (ByteAt(code + 1) & 0xf0) == 0x80);
  if (IsSpecial(code) || (has_prefix && (is_branch || IsOnStrings(first)))) return {};
  if (first == 0xc3) return {{Read<uintptr_t>(stack)}, 1};
  if (first == 0xeb) return Jump<int8_t>(code + 1);
  if (first == 0xe8 || first == 0xe9) return Jump<int32_t>(code + 1);
  if (first == 0x0f && is_branch) return Branch<int32_t>(code + 2);
  if (is_branch) return Branch<int8_t>(code + 1);
  if (length == 0) return {};
  return {{address + length}, 1};
}

}  // namespace

void Breakpoints::Initialize(uintptr_t begin, uintptr_t end) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first_page = begin / page * page;
  void* lengths =
      ::mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (lengths == MAP_FAILED || ::mprotect(reinterpret_cast<void*>(first_page), end - first_page,
                                          PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    return;
  }
  begin_ = begin;
  end_ = end;
  lengths_ = static_cast<uint8_t*>(lengths);
}

void Breakpoints::Learn(uintptr_t from, uintptr_t to) {
  if (!Contain(from) || to <= from || to - from > kLongestInstruction) return;
  lengths_[from - begin_] = static_cast<uint8_t>(to - from);
}

bool Breakpoints::PutAfter(uintptr_t address, uintptr_t stack) {
  if (!Contain(address)) return false;
  const Ways ways = WaysFrom(address, lengths_[address - begin_], stack);
  for (size_t i = 0; i < ways.count; ++i) {
    if (!Contain(ways.to[i])) return false;
  }
  for (size_t i = 0; i < ways.count; ++i) Put(ways.to[i]);
  return ways.count != 0;
}

void Breakpoints::Put(uintptr_t address) {
  if (IsAt(address)) return;
  breakpoints_[count_++] = {address, ByteAt(address)};
  ByteAt(address) = kBreakpoint;
}

bool Breakpoints::IsAt(uintptr_t address) const {
  for (size_t i = 0; i < count_; ++i) {
    if (breakpoints_[i].address == address) return true;
  }
  return false;
}

void Breakpoints::RemoveAll() {
  while (count_ > 0) {
    const Breakpoint& last = breakpoints_[--count_];
    ByteAt(last.address) = last.instead_of;
  }
}

}  // namespace tcmalloc::testing
