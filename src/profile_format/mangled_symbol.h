// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the small parts of a mangled name.

#ifndef TCMALLOC_PROFILE_FORMAT_MANGLED_SYMBOL_H_
#define TCMALLOC_PROFILE_FORMAT_MANGLED_SYMBOL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tcmalloc {

// A place in a symbol. Functions move it past what they are named after.
class MangledSymbol {
 public:
  static constexpr size_t kLongest = UINT16_MAX;

  explicit MangledSymbol(std::string_view symbol) : symbol_(symbol) {}

  size_t at() const { return at_; }
  void MoveTo(size_t at) { at_ = at; }
  void Skip(size_t characters) { at_ = std::min(at_ + characters, symbol_.size()); }
  bool is_too_long() const { return symbol_.size() > kLongest; }

  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
  static bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

  // Returns a character that is still to be read; 0 past the end.
  char Front(size_t ahead = 0) const {
    return at_ + ahead < symbol_.size() ? symbol_[at_ + ahead] : '\0';
  }
  // Moves past a text if it is there.
  bool Take(std::string_view text) {
    if (!Between(at_, symbol_.size()).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  std::string_view TakeWhile(bool (*fits)(char)) {
    const size_t begin = at_;
    while (at_ < symbol_.size() && fits(symbol_[at_])) ++at_;
    return Between(begin, at_);
  }

  // Returns the number of decimal digits; 0 if there are none, or too many.
  uint32_t Number() {
    uint32_t number = 0;
    for (const char digit : TakeWhile(IsDigit)) {
      if (number > kLongest) return 0;
      number = number * 10 + static_cast<uint32_t>(digit - '0');
    }
    return number;
  }
  // Reads "_" as 0 and "<number>_" as one more than that.
  bool Ordinal(uint32_t* number) {
    *number = Take("_") ? 0 : IsDigit(Front()) ? Number() + 1 : UINT32_MAX;
    return *number == 0 || (*number != UINT32_MAX && Take("_"));
  }
  // Moves past what tells names of one function apart, if it is there.
  bool Discriminator() {
    if (!Take("_")) return true;
    if (Take("_")) return !TakeWhile(IsDigit).empty() && Take("_");
    if (!IsDigit(Front())) return false;
    Skip(1);
    return true;
  }

  // Returns what has been read from `begin` on.
  std::string_view From(size_t begin) const { return Between(begin, at_); }

  // Reads "<length><identifier>". Returns an empty text if it is not there.
  std::string_view Identifier() {
    const uint32_t length = Number();
    if (length == 0 || length > symbol_.size() - at_) return {};
    at_ += length;
    return Between(at_ - length, at_);
  }

 private:
  // Not by substr, which throws, and for which a library would need that of C++.
  std::string_view Between(size_t begin, size_t end) const {
    return {symbol_.data() + begin, end - begin};
  }

  const std::string_view symbol_;
  size_t at_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_MANGLED_SYMBOL_H_
