// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Names of files in which parts stand for something.

#ifndef TCMALLOC_HEAP_PROFILE_PROFILE_PATH_H_
#define TCMALLOC_HEAP_PROFILE_PROFILE_PATH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "options/options.h"

namespace tcmalloc {

// Returns true if `pattern` has % before `letter`.
bool HasPlaceholder(const char* pattern, char letter);

// A name made from a pattern, in which %p stands for the number of the process, %t for the seconds
// since 1970, %n for a number that each name of the process has another of, %k for the type of the
// profile, and %% for one %. Anything else behind a % stays as it is.
class ProfilePath {
 public:
  // `type` and `numbered` ask for the type, unless it is empty, and for a number where the pattern
  // has no place for them: they come before .pb.gz or at the end, behind a dot.
  struct Parts {
    std::string_view type = {};
    bool typed = false;
    bool numbered = false;
  };
  ProfilePath(const char* pattern, const Parts& parts);

  // Is longer than a path may be if it did not fit.
  const char* text() const { return text_; }

 private:
  void Append(std::string_view text);
  void Append(uint64_t number);
  void AppendPlaceholder(char letter, const Parts& parts);
  void AppendMissing(std::string_view pattern, const Parts& parts);

  char text_[kPathCapacity + 1] = {};
  size_t size_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_PROFILE_PATH_H_
