// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Names of the files of a heap profiler.

#ifndef TCMALLOC_RECORDER_PROFILE_NAME_H_
#define TCMALLOC_RECORDER_PROFILE_NAME_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "options/child_mark.h"
#include "options/options.h"

namespace tcmalloc {

// A path in memory of its own. Text beyond its capacity is left out, and makes it too long.
class ProfileName {
 public:
  constexpr ProfileName() = default;

  void Clear();
  ProfileName& operator<<(std::string_view text);
  // Appends at least `width` digits.
  ProfileName& AppendNumber(uint64_t number, int width);
  // Clears gperftools' mark, and returns true if the name had it.
  bool ClearMark() { return ClearChildMark(text_); }

  bool ok() const { return !too_long_; }
  const char* text() const { return text_; }
  std::string_view view() const { return {text_, size_}; }

 private:
  char text_[kPathCapacity] = {};
  size_t size_ = 0;
  bool too_long_ = false;
};

// Appends the suffix that tells a process apart from others with the same environment: the rank
// that a launcher of parallel programs gave it, and its process number if that is wanted or there
// is no rank.
void AppendProcess(ProfileName& prefix, pid_t process, bool use_pid);

// Removes the files that earlier runs left: those whose path is the prefix, a dot, anything, and
// ".heap" or ".heap.pb.gz". Does nothing if the folder cannot be read.
void RemoveOldProfiles(std::string_view prefix);

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_PROFILE_NAME_H_
