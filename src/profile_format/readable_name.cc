// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/readable_name.h"

#include <algorithm>
#include <cstring>

namespace tcmalloc {
namespace {

// Appends to a text of limited length.
class Appender {
 public:
  Appender(char* text, size_t capacity) : text_(text), capacity_(capacity) {}

  void Append(std::string_view part) {
    const size_t bytes = std::min(part.size(), capacity_ - size_);
    std::memcpy(text_ + size_, part.data(), bytes);
    size_ += bytes;
  }
  std::string_view view() const { return {text_, size_}; }

 private:
  char* text_;
  size_t capacity_;
  size_t size_ = 0;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes "<length><identifier>" from the front of *symbol. Returns an empty text if it is not there.
std::string_view TakeIdentifier(std::string_view* symbol) {
  size_t length = 0;
  size_t digits = 0;
  while (digits < symbol->size() && digits < 6 && IsDigit((*symbol)[digits])) {
    length = length * 10 + static_cast<size_t>((*symbol)[digits++] - '0');
  }
  if (digits == 0 || length > symbol->size() - digits) return {};
  const std::string_view name(symbol->data() + digits, length);
  symbol->remove_prefix(digits + length);
  return name;
}

// Skips the arguments of a template, which begin with I and end with E. Returns false if they
// cannot be understood.
bool SkipTemplateArguments(std::string_view* symbol) {
  int depth = 0;
  do {
    if (symbol->empty()) return false;
    const char c = symbol->front();
    if (IsDigit(c)) {
      if (TakeIdentifier(symbol).empty()) return false;
      continue;
    }
    if (c == 'I' || c == 'N' || c == 'L' || c == 'X' || c == 'J') ++depth;
    if (c == 'E') --depth;
    symbol->remove_prefix(1);
    // The value of a literal has digits that are no length.
    if (c == 'L') {
      while (!symbol->empty() && symbol->front() != 'E') symbol->remove_prefix(1);
    }
  } while (depth > 0);
  return true;
}

}  // namespace

std::string_view ReadableName(std::string_view symbol, char* text, size_t capacity) {
  std::string_view rest = symbol;
  if (!rest.starts_with("_Z")) return symbol;
  rest.remove_prefix(2);
  Appender name(text, capacity);
  const bool nested = rest.starts_with("N");
  if (nested) rest.remove_prefix(1);
  // Qualifiers of member functions.
  while (nested && !rest.empty() && (rest.front() == 'K' || rest.front() == 'V')) {
    rest.remove_prefix(1);
  }
  if (rest.starts_with("St")) {
    rest.remove_prefix(2);
    name.Append("std::");
  }
  std::string_view last;
  while (!rest.empty() && rest.front() != 'E') {
    if (rest.front() == 'L') rest.remove_prefix(1);
    if (rest.starts_with("C1") || rest.starts_with("C2") || rest.starts_with("D1") ||
        rest.starts_with("D2") || rest.starts_with("D0")) {
      name.Append(rest.front() == 'D' ? "::~" : "::");
      name.Append(last);
      break;
    }
    if (rest.front() == 'I') {
      if (!SkipTemplateArguments(&rest)) break;
      continue;
    }
    const std::string_view part = TakeIdentifier(&rest);
    if (part.empty()) break;
    if (!last.empty()) name.Append("::");
    last = part.starts_with("_GLOBAL__N") ? std::string_view("(anonymous namespace)") : part;
    name.Append(last);
    if (!nested) break;
  }
  return last.empty() ? symbol : name.view();
}

}  // namespace tcmalloc
