// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Encodes one message of protocol buffers.

#ifndef TCMALLOC_PROFILE_FORMAT_MESSAGE_BUFFER_H_
#define TCMALLOC_PROFILE_FORMAT_MESSAGE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tcmalloc {

// A message of at most kBytes bytes. Fields that do not fit are left out. Zero bytes are an empty
// one.
template <size_t kBytes>
class MessageBuffer {
 public:
  void Clear() { used_ = 0; }

  // Adds a number, unless it is 0, which is the default of every field.
  void AddNumber(int field, uint64_t value) {
    if (value == 0) return;
    if (used_ + 2 * kMostVarint > kBytes) return;
    AppendVarint(static_cast<uint64_t>(field) << 3);
    AppendVarint(value);
  }

  // Adds bytes: a string, a message, or numbers that are packed.
  void AddBytes(int field, std::string_view bytes) {
    if (used_ + 2 * kMostVarint + bytes.size() > kBytes) return;
    AddHeadOfBytes(field, bytes.size());
    std::memcpy(bytes_ + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
  }

  // Adds what stands before `size` bytes, which the caller writes.
  void AddHeadOfBytes(int field, size_t size) {
    if (used_ + 2 * kMostVarint > kBytes) return;
    AppendVarint(static_cast<uint64_t>(field) << 3 | 2);
    AppendVarint(size);
  }

  // Adds a number without a field, for numbers that are packed.
  void AddPacked(uint64_t value) {
    if (used_ + kMostVarint <= kBytes) AppendVarint(value);
  }

  std::string_view view() const { return {bytes_, used_}; }

 private:
  static constexpr size_t kMostVarint = 10;

  void AppendVarint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_[used_++] = static_cast<char>(value | 0x80);
    bytes_[used_++] = static_cast<char>(value);
  }

  char bytes_[kBytes];
  size_t used_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_MESSAGE_BUFFER_H_
