// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/call_target.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tcmalloc {

#if defined(__x86_64__)

namespace {

using Code = const unsigned char*;

constexpr unsigned char kCall = 0xe8;
constexpr unsigned char kIndirect = 0xff;
constexpr unsigned char kCallFromTable = 0x15;  // after kIndirect, relative to the next instruction
constexpr unsigned char kJumpFromTable = 0x25;
constexpr unsigned char kEndbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
constexpr unsigned char kBound = 0xf2;  // a prefix of jumps

// Returns the address that the last four bytes of an instruction give relative to its end.
Code Relative(Code end) {
  int32_t offset = 0;
  std::memcpy(&offset, end - sizeof(offset), sizeof(offset));
  return end + offset;
}

const void* EntryOfTable(Code end) {
  const void* function = nullptr;
  std::memcpy(&function, Relative(end), sizeof(function));
  return function;
}

// Returns where a stub of the linker jumps to, or the function itself if it is none.
const void* BehindStub(Code function) {
  Code code = function;
  if (std::memcmp(code, kEndbr64, sizeof(kEndbr64)) == 0) code += sizeof(kEndbr64);
  if (*code == kBound) ++code;
  const bool is_stub = code[0] == kIndirect && code[1] == kJumpFromTable;
  return is_stub ? EntryOfTable(code + 2 + sizeof(int32_t)) : function;
}

}  // namespace

const void* CallTarget(const void* return_address) {
  const auto* end = static_cast<Code>(return_address);
  if (end[-6] == kIndirect && end[-5] == kCallFromTable) return EntryOfTable(end);
  return end[-5] == kCall ? BehindStub(Relative(end)) : nullptr;
}

#else

const void* CallTarget(const void*) { return nullptr; }

#endif

}  // namespace tcmalloc
