// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Destinations of reports.

#ifndef TCMALLOC_REPORT_TEXT_SINK_H_
#define TCMALLOC_REPORT_TEXT_SINK_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/output.h"
#include "profile_format/byte_sink.h"

namespace tcmalloc {

// Receives a report line by line, each with its newline.
using TextSink = ByteSink;

// Writes to a file descriptor. Keeps errno; a failed write is ignored.
class FileSink final : public TextSink {
 public:
  explicit FileSink(int fd) : fd_(fd) {}
  void Write(std::string_view text) override { WriteAll(fd_, text); }

 private:
  int fd_;
};

// Writes to memory, and cuts text that does not fit.
class PrefixSink final : public TextSink {
 public:
  PrefixSink(char* buffer, size_t size) : next_(buffer), left_(size) {}
  void Write(std::string_view text) override {
    const size_t count = std::min(text.size(), left_);
    if (count > 0) std::memcpy(next_, text.data(), count);
    next_ += count;
    left_ -= count;
    written_ += text.size();
  }

  // The address for the next text.
  char* end() const { return next_; }
  // The bytes of the text, including those that did not fit.
  size_t written() const { return written_; }

 private:
  char* next_;
  size_t left_;
  size_t written_ = 0;
};

// A PrefixSink that always ends its text with a zero byte, for which it leaves room.
class BufferSink final : public TextSink {
 public:
  // Requires size > 0.
  BufferSink(char* buffer, size_t size) : text_(buffer, size - 1) { *text_.end() = '\0'; }
  void Write(std::string_view text) override {
    text_.Write(text);
    *text_.end() = '\0';
  }

  size_t written() const { return text_.written(); }

 private:
  PrefixSink text_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_TEXT_SINK_H_
