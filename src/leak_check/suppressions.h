// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Leaks that shall not be reported.

#ifndef TCMALLOC_LEAK_CHECK_SUPPRESSIONS_H_
#define TCMALLOC_LEAK_CHECK_SUPPRESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "leak_check/search_request.h"
#include "leak_check/symbol_names.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

// Returns true if a pattern occurs in a text. * stands for any characters; ^ in front ties the
// pattern to the beginning of the text, and $ behind it to the end.
bool MatchesPattern(std::string_view pattern, std::string_view text);

// A file in the format of LeakSanitizer: a line leak:PATTERN for each function, file or library,
// and comments that begin with #. A stack is left out if a frame of it has a function whose name
// matches, mangled or readable, or is from a file whose path matches.
class Suppressions final : public StackFilter {
 public:
  static constexpr size_t kMostPatterns = 4096;

  Suppressions() = default;

  // Reads the patterns of a file, and of the text of a function __lsan_default_suppressions if the
  // program has one. Returns false if the file cannot be read, or is not a regular one.
  bool Load(const char* path);
  void AddText(std::string_view text);

  // Returns the number of lines that are no suppressions, or for which there was no room.
  uint64_t unused_lines() const { return unused_lines_; }
  bool empty() const { return count_ == 0; }
  // Reads symbols of files on the way.
  bool LeavesOut(std::span<const uintptr_t> frames) override;

 private:
  static constexpr size_t kTextBytes = size_t{256} << 10;

  // Gets memory for the patterns, which most programs do without. Returns false if there is none.
  bool Reserve();
  // Returns false if the line is not used, though it should.
  bool AddLine(std::string_view line);
  bool Matches(const SymbolName& name) const;

  Scratch<char> text_;
  size_t text_used_ = 0;
  Scratch<std::string_view> patterns_;
  size_t count_ = 0;
  uint64_t unused_lines_ = 0;
  // Made for the first stack.
  std::optional<Mappings> mappings_;
  std::optional<SymbolNames> names_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_SUPPRESSIONS_H_
