// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/suppressions.h"

#include <algorithm>
#include <cstring>

#include "profile_format/readable_name.h"
#include "system/line_reader.h"

namespace tcmalloc {
namespace {

constexpr size_t kLongestRule = 4096;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  while (!text.empty() && kSpace.find(text.front()) != std::string_view::npos) {
    text.remove_prefix(1);
  }
  while (!text.empty() && kSpace.find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

// A pattern without ^ begins like one with a star. Only the last star has to be tried at other
// places, so that no pattern takes longer than its length times that of the text.
bool MatchesPattern(std::string_view pattern, std::string_view text) {
  bool has_star = !pattern.starts_with("^");
  if (!has_star) pattern.remove_prefix(1);
  const bool to_end = pattern.ends_with("$");
  if (to_end) pattern.remove_suffix(1);
  // The places behind the last star in the pattern, and in the text where it is tried next.
  size_t after_star = 0;
  size_t retry = 0;
  size_t p = 0;
  size_t t = 0;
  while (true) {
    if (p == pattern.size() && (!to_end || t == text.size())) return true;
    if (p < pattern.size() && pattern[p] == '*') {
      has_star = true;
      after_star = ++p;
      retry = t;
      continue;
    }
    if (p < pattern.size() && t < text.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
      continue;
    }
    if (!has_star || retry >= text.size()) return false;
    p = after_star;
    t = ++retry;
  }
}

bool Suppressions::Load(const char* path) {
  const Scratch<char> buffer(kLongestRule);
  if (buffer.data() == nullptr || !Reserve()) return false;
  LineReader reader(buffer.data(), kLongestRule, '\n');
  if (!reader.OpenRegular(path)) return false;
  for (std::string_view line; reader.Next(&line);) {
    if (reader.truncated() || !AddLine(line)) ++unused_lines_;
  }
  return true;
}

void Suppressions::AddText(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (!AddLine({text.data(), end})) ++unused_lines_;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool Suppressions::Reserve() {
  if (text_.data() == nullptr) text_ = Scratch<char>(kTextBytes);
  if (patterns_.data() == nullptr) patterns_ = Scratch<std::string_view>(kMostPatterns);
  return text_.data() != nullptr && patterns_.data() != nullptr;
}

// Lines of other kinds are for other sanitizers, which read the same file.
bool Suppressions::AddLine(std::string_view line) {
  constexpr std::string_view kKind = "leak:";
  line = Trim(line);
  if (line.empty() || line.starts_with('#')) return true;
  if (!line.starts_with(kKind)) return line.find(':') != std::string_view::npos;
  line.remove_prefix(kKind.size());
  if (!Reserve()) return false;
  if (count_ == kMostPatterns || line.size() > kTextBytes - text_used_) return false;
  std::memcpy(text_.data() + text_used_, line.data(), line.size());
  patterns_[count_++] = {text_.data() + text_used_, line.size()};
  text_used_ += line.size();
  return true;
}

bool Suppressions::Matches(const SymbolName& name) const {
  ReadableNameText room;
  const std::string_view readable = ReadableName(name.function, room, sizeof(room));
  for (size_t i = 0; i < count_; ++i) {
    for (const std::string_view text : {name.function, readable, name.file}) {
      if (!text.empty() && MatchesPattern(patterns_[i], text)) return true;
    }
  }
  return false;
}

bool Suppressions::LeavesOut(std::span<const uintptr_t> frames) {
  if (!names_) names_.emplace(mappings_.emplace());
  for (const uintptr_t frame : frames) {
    if (Matches(names_->Find(frame - 1))) return true;
  }
  return false;
}

}  // namespace tcmalloc
