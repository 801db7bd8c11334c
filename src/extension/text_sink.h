// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where reports are printed to.

#ifndef TCMALLOC_EXTENSION_TEXT_SINK_H_
#define TCMALLOC_EXTENSION_TEXT_SINK_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
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

// Writes to memory. Cuts what does not fit, and always leaves room for the terminating zero byte.
class BufferSink final : public TextSink {
 public:
  // Requires size > 0.
  BufferSink(char* buffer, size_t size) : next_(buffer), left_(size - 1) { *next_ = '\0'; }
  void Write(std::string_view text) override {
    const size_t count = std::min(text.size(), left_);
    std::memcpy(next_, text.data(), count);
    next_ += count;
    left_ -= count;
    *next_ = '\0';
    written_ += text.size();
  }

  // Bytes, those included that did not fit.
  size_t written() const { return written_; }

 private:
  char* next_;
  size_t left_;
  size_t written_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_TEXT_SINK_H_
