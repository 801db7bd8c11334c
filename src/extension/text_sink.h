// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where reports are printed to.

#ifndef TCMALLOC_EXTENSION_TEXT_SINK_H_
#define TCMALLOC_EXTENSION_TEXT_SINK_H_

#include <string_view>

#include "base/message.h"

namespace tcmalloc {

// Receives a report line by line, each with its newline. Allocates nothing itself.
class TextSink {
 public:
  virtual void Write(std::string_view text) = 0;

  void WriteLine(const Message& line) {
    Write(line.view());
    Write("\n");
  }

 protected:
  ~TextSink() = default;
};

// Writes to a file descriptor. Keeps errno; a failed write is ignored.
class FileSink final : public TextSink {
 public:
  explicit FileSink(int fd) : fd_(fd) {}
  void Write(std::string_view text) override { WriteAll(fd_, text); }

 private:
  int fd_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_TEXT_SINK_H_
