// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel's list of the mappings of this process, for several readers.

#ifndef TCMALLOC_PROFILE_FORMAT_MAPS_TEXT_H_
#define TCMALLOC_PROFILE_FORMAT_MAPS_TEXT_H_

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "profile_format/scratch.h"

namespace tcmalloc {

// A copy of /proc/self/maps. The kernel takes longer to write it than readers to parse it. For one
// thread; takes memory from the system alone.
class MapsText {
 public:
  // Reads the list as it is now. Returns false, and has no text, if it cannot be read or there is
  // no memory for it.
  [[nodiscard]] bool Read();

  // The lines, each with its end. Empty if the list was not read.
  std::string_view view() const { return {bytes_.data(), size_}; }

  // Calls f(std::string_view) for each line, without its end.
  template <typename F>
  void ForEachLine(F f) const {
    for (std::string_view rest = view(); !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      f(std::string_view(rest.data(), end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

 private:
  static constexpr size_t kFirstBytes = size_t{64} << 10;

  bool MakeRoom();

  Scratch<char> bytes_;
  size_t size_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_MAPS_TEXT_H_
