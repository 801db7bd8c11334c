// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/proc_maps.h"

namespace tcmalloc {
namespace {

constexpr int kNotADigit = -1;

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return kNotADigit;
}

bool TakeNumber(std::string_view* text, unsigned base, uint64_t* number) {
  uint64_t value = 0;
  size_t digits = 0;
  for (; digits < text->size(); ++digits) {
    const int digit = DigitValue((*text)[digits]);
    if (digit == kNotADigit || static_cast<unsigned>(digit) >= base) break;
    if (__builtin_mul_overflow(value, base, &value)) return false;
    if (__builtin_add_overflow(value, static_cast<unsigned>(digit), &value)) return false;
  }
  text->remove_prefix(digits);
  *number = value;
  return digits != 0;
}

bool TakeChar(std::string_view* text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

void SkipBlanks(std::string_view* text) {
  while (TakeChar(text, ' ')) {
  }
}

bool TakePermission(std::string_view* text, char letter, char otherwise, bool* permission) {
  *permission = text->starts_with(letter);
  return TakeChar(text, *permission ? letter : otherwise);
}

bool TakePermissions(std::string_view* text, ProcMapping* mapping) {
  return TakePermission(text, 'r', '-', &mapping->readable) &&
         TakePermission(text, 'w', '-', &mapping->writable) &&
         TakePermission(text, 'x', '-', &mapping->executable) &&
         TakePermission(text, 's', 'p', &mapping->shared);
}

// start-end perms offset major:minor inode name
bool ParseMapping(std::string_view text, ProcMapping* mapping) {
  uint64_t device = 0;
  const bool valid = TakeNumber(&text, 16, &mapping->start) && TakeChar(&text, '-') &&
                     TakeNumber(&text, 16, &mapping->end) && TakeChar(&text, ' ') &&
                     TakePermissions(&text, mapping) && TakeChar(&text, ' ') &&
                     TakeNumber(&text, 16, &mapping->offset) && TakeChar(&text, ' ') &&
                     TakeNumber(&text, 16, &device) && TakeChar(&text, ':') &&
                     TakeNumber(&text, 16, &device) && TakeChar(&text, ' ') &&
                     TakeNumber(&text, 10, &mapping->inode) && mapping->start <= mapping->end;
  if (!valid || !(text.empty() || text.starts_with(' '))) return false;
  SkipBlanks(&text);
  mapping->name = text;
  return true;
}

// Name:    123 kB
bool ParseSize(std::string_view text, ProcMapsLine* line) {
  const size_t colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  line->field = {text.data(), colon};
  text.remove_prefix(colon + 1);
  SkipBlanks(&text);
  uint64_t kilobytes = 0;
  return TakeNumber(&text, 10, &kilobytes) && text == " kB" &&
         !__builtin_mul_overflow(kilobytes, uint64_t{1024}, &line->bytes);
}

}  // namespace

ProcMapsLine ParseProcMapsLine(std::string_view text) {
  ProcMapsLine line;
  if (ParseMapping(text, &line.mapping)) {
    line.kind = ProcMapsLine::Kind::kMapping;
    return line;
  }
  if (ParseSize(text, &line)) {
    line.kind = ProcMapsLine::Kind::kSize;
    return line;
  }
  return {};
}

bool ProcMapsReader::Next(ProcMapsLine* line) {
  std::string_view text;
  if (!lines_.Next(&text)) return false;
  *line = ParseProcMapsLine(text);
  return true;
}

}  // namespace tcmalloc
