// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Text built in a fixed buffer, for places where nothing may be allocated.

#ifndef TCMALLOC_BASE_MESSAGE_H_
#define TCMALLOC_BASE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/attributes.h"

namespace tcmalloc {

// A line of at most kCapacity bytes; what does not fit is cut. Allocates nothing, takes no lock
// and may be used in a signal handler.
class Message {
 public:
  static constexpr size_t kCapacity = 480;

  Message& operator<<(std::string_view text);
  Message& operator<<(const char* text) { return *this << std::string_view(text); }
  Message& operator<<(uint64_t decimal);
  Message& operator<<(int64_t decimal);
  Message& operator<<(uint32_t decimal) { return *this << uint64_t{decimal}; }
  Message& operator<<(int32_t decimal) { return *this << int64_t{decimal}; }
  Message& operator<<(bool value) { return *this << (value ? "true" : "false"); }
  // Hexadecimal, with the prefix 0x.
  Message& operator<<(const volatile void* address);
  // A value with three decimals, rounded towards zero.
  Message& AppendFixed(double value);

  std::string_view view() const { return {buffer_, size_}; }

  // Writes the text and a newline to file descriptor `fd` in one call; errno is kept and a failure
  // is ignored, for there is nobody to tell.
  void WriteLine(int fd) const;

 private:
  char buffer_[kCapacity + 1] = {};
  size_t size_ = 0;
};

// Writes all of `text` to `fd`, retrying interrupted and short writes. Keeps errno.
void WriteAll(int fd, std::string_view text);

// Writes "tcmalloc: <message>" to stderr, in one line, and aborts.
[[noreturn]] TCMALLOC_COLD void Crash(const Message& message);

// Writes "tcmalloc: <message>" to stderr, in one line.
TCMALLOC_COLD void Warn(const Message& message);

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_MESSAGE_H_
