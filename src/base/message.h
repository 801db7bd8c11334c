// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Builds text in a fixed buffer, for places where nothing may be allocated.

#ifndef TCMALLOC_BASE_MESSAGE_H_
#define TCMALLOC_BASE_MESSAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/attributes.h"

namespace tcmalloc {

// A line of at most kCapacity bytes; longer text is cut. Allocates nothing, takes no lock and may
// be used in a signal handler.
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
  // Appends the address in hexadecimal, with the prefix 0x.
  Message& operator<<(const volatile void* address);
  // Appends the beginning of any text, in quotation marks. Unprintable characters become question
  // marks.
  Message& AppendQuoted(std::string_view text);
  // Appends a value with three decimals, rounded towards zero.
  Message& AppendFixed(double value);

  std::string_view view() const { return {buffer_, size_}; }

  // Writes the text and a newline to `fd`: see WriteLineWithin.
  bool WriteLine(int fd, int milliseconds) const;

 private:
  char buffer_[kCapacity + 1] = {};
  size_t size_ = 0;
};

// Write "tcmalloc: <message>" to stderr, in one line. If stderr is a full pipe, or another stream
// whose reader is slow, they give up after a while, because the program is inside malloc or free.

// Waits up to a second, and aborts. Of threads that crash at the same time, one writes.
[[noreturn]] TCMALLOC_COLD void Crash(const Message& message);
// Reports a mistake of the program about `block`, with lines that begin with four spaces: what to
// do next, and what misuse_report adds. Those lines go to the crash report alone, if there is one.
[[noreturn]] TCMALLOC_COLD void CrashOnMisuse(const Message& message, const void* block);

// Makes CrashOnMisuse not advise what to do next, in the mode that it would advise.
TCMALLOC_COLD void OmitAdvice();

// Writes what CrashOnMisuse does: WriteMisuse, and further details. Null in a library that has none
// of these.
using MisuseReport = void (*)(const Message& message, const void* block);
extern constinit std::atomic<MisuseReport> misuse_report;
TCMALLOC_COLD void WriteMisuse(const Message& message);

// The name of what the library does on its own account, such as a look through all blocks, while it
// does it; null otherwise. A message names it where no call of the program noticed the mistake.
extern constinit std::atomic<const char*> own_work;

// The beginning of the name of the file, completed by a dot and the number of the process, to which
// messages of crashes are appended. Null for none. The text is never freed.
extern constinit std::atomic<const char*> crash_report_prefix;
// Write a line of a message that ends the process: the first to stderr and to the crash report,
// those that follow to the report if there is one, else to stderr. `advice` begins with a newline
// and follows as well. Wait up to a second, but once a line has waited in vain, those after it do
// not wait: a reader that is stuck holds up the end of the process for a second at most.
TCMALLOC_COLD void WriteFirstCrashLine(const Message& message, std::string_view advice = {});
TCMALLOC_COLD void WriteCrashLine(const Message& message);

// Waits up to a tenth of a second.
TCMALLOC_COLD void Warn(const Message& message);
// Does not wait.
TCMALLOC_COLD void Notify(const Message& message);

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_MESSAGE_H_
