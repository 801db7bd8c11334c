// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Destinations of profiles and reports.

#ifndef TCMALLOC_PROFILE_FORMAT_BYTE_SINK_H_
#define TCMALLOC_PROFILE_FORMAT_BYTE_SINK_H_

#include <string_view>

#include "base/message.h"

namespace tcmalloc {

// Receives bytes in pieces. Allocates nothing itself, unless it says so. A sink that has failed
// ignores what follows.
class ByteSink {
 public:
  virtual void Write(std::string_view bytes) = 0;

  void WriteLine(const Message& line) {
    Write(line.view());
    Write("\n");
  }

 protected:
  ~ByteSink() = default;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_BYTE_SINK_H_
