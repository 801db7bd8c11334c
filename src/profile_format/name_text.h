// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A name that is written from parts.

#ifndef TCMALLOC_PROFILE_FORMAT_NAME_TEXT_H_
#define TCMALLOC_PROFILE_FORMAT_NAME_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tcmalloc {

// Appends to a text of limited length. While it is quiet, it leaves all out.
class NameText {
 public:
  NameText(char* text, size_t capacity) : text_(text), capacity_(capacity) {}

  void Write(std::string_view part) {
    if (quiet_ > 0) return;
    overflown_ |= part.size() > capacity_ - size_;
    if (overflown_ || part.empty()) return;
    std::memcpy(text_ + size_, part.data(), part.size());
    size_ += part.size();
  }
  void WriteNumber(uint32_t number) {
    char digits[10];
    char* begin = digits + sizeof(digits);
    do {
      *--begin = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    Write({begin, static_cast<size_t>(digits + sizeof(digits) - begin)});
  }

  void BeQuiet() { ++quiet_; }
  void EndQuiet() { --quiet_; }
  bool is_quiet() const { return quiet_ > 0; }

  size_t size() const { return size_; }
  std::string_view TextFrom(size_t begin) const { return {text_ + begin, size_ - begin}; }
  // True if some part had no room.
  bool overflown() const { return overflown_; }

 private:
  char* const text_;
  const size_t capacity_;
  size_t size_ = 0;
  int quiet_ = 0;
  bool overflown_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_NAME_TEXT_H_
