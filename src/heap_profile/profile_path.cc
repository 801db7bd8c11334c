// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/profile_path.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/message.h"
#include "profile_format/proto_name.h"
#include "system/clock.h"

namespace tcmalloc {
namespace {

constinit std::atomic<uint64_t> names_made{0};

}  // namespace

bool HasPlaceholder(const char* pattern, char letter) {
  for (const char* c = pattern; *c != '\0'; ++c) {
    if (*c != '%') continue;
    ++c;
    if (*c == letter) return true;
    if (*c == '\0') return false;
  }
  return false;
}

ProfilePath::ProfilePath(const char* pattern, const Parts& parts) {
  const std::string_view whole(pattern);
  const size_t suffix = IsProtoName(whole) ? kProtoSuffix.size() : 0;
  const char* const end = pattern + whole.size() - suffix;
  for (const char* c = pattern; c < end; ++c) {
    if (*c == '%' && c + 1 < end) {
      AppendPlaceholder(*++c, parts);
    } else {
      Append({c, 1});
    }
  }
  AppendMissing(whole, parts);
  Append({end, suffix});
}

void ProfilePath::AppendPlaceholder(char letter, const Parts& parts) {
  switch (letter) {
    case 'p':
      return Append(static_cast<uint64_t>(getpid()));
    case 't':
      return Append(static_cast<uint64_t>(WallNanoseconds() / 1'000'000'000));
    case 'n':
      return Append(names_made.fetch_add(1, std::memory_order_relaxed) + 1);
    case 'k':
      return Append(parts.type);
    case '%':
      return Append("%");
    default:
      Append("%");
      return Append({&letter, 1});
  }
}

void ProfilePath::AppendMissing(std::string_view pattern, const Parts& parts) {
  if (parts.typed && !HasPlaceholder(pattern.data(), 'k')) {
    Append(".");
    Append(parts.type);
  }
  const bool has_number =
      HasPlaceholder(pattern.data(), 'n') || HasPlaceholder(pattern.data(), 't');
  if (parts.numbered && !has_number) {
    Append(".");
    AppendPlaceholder('n', parts);
  }
}

void ProfilePath::Append(std::string_view text) {
  const size_t room = kPathCapacity - size_;
  const size_t count = std::min(room, text.size());
  std::memcpy(text_ + size_, text.data(), count);
  size_ += count;
}

void ProfilePath::Append(uint64_t number) {
  Message digits;
  digits << number;
  Append(digits.view());
}

}  // namespace tcmalloc
