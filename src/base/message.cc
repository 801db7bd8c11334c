// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/message.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/output.h"

namespace tcmalloc {
namespace {

constexpr size_t kMaxDigits = 20;
constexpr size_t kLongestQuote = 64;

// Writes the digits of `value` before `end` and returns where they begin.
char* DigitsBefore(char* end, uint64_t value, uint64_t base) {
  do {
    *--end = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  return end;
}

// The time that a line may wait for its reader. The last line of a process may wait longer.
constexpr int kCrashPatience = 1000;  // milliseconds
constexpr int kPatience = 100;

// Follows the first line of a message about a mistake.
constexpr std::string_view kAdvice =
    "\n    preload libtcmalloc_minimal_debug.so.4 to see who allocated and who freed it";

// The kernel's number of the thread that writes the last line of the process.
constinit std::atomic<long> crashing_thread{0};

// Lets one thread write and abort. The others wait for the end of the process, but not forever: the
// program may catch SIGABRT and go on. A thread that comes again goes on at once.
void BecomeCrashingThread() {
  constexpr timespec kNap = {.tv_sec = 0, .tv_nsec = 10'000'000};
  constexpr int kMostNaps = 200;
  const long self = ::syscall(SYS_gettid);
  for (int i = 0; i < kMostNaps; ++i) {
    long other = 0;
    if (crashing_thread.compare_exchange_strong(other, self, std::memory_order_relaxed)) return;
    if (other == self) return;
    ::syscall(SYS_nanosleep, &kNap, nullptr);
  }
  crashing_thread.store(self, std::memory_order_relaxed);
}

void WriteTagged(const Message& message, int milliseconds) {
  Message line;
  line << "tcmalloc: " << message.view();
  line.WriteLine(STDERR_FILENO, milliseconds);
}

}  // namespace

Message& Message::operator<<(std::string_view text) {
  const size_t count = std::min(text.size(), kCapacity - size_);
  // An empty view may have no address, which memcpy must not be given.
  if (count > 0) std::memcpy(buffer_ + size_, text.data(), count);
  size_ += count;
  return *this;
}

Message& Message::operator<<(uint64_t decimal) {
  char digits[kMaxDigits];
  char* end = digits + kMaxDigits;
  char* begin = DigitsBefore(end, decimal, 10);
  return *this << std::string_view(begin, static_cast<size_t>(end - begin));
}

Message& Message::operator<<(int64_t decimal) {
  if (decimal >= 0) return *this << static_cast<uint64_t>(decimal);
  return *this << "-" << (uint64_t{0} - static_cast<uint64_t>(decimal));
}

Message& Message::operator<<(const volatile void* address) {
  char digits[kMaxDigits];
  char* end = digits + kMaxDigits;
  char* begin = DigitsBefore(end, reinterpret_cast<uintptr_t>(address), 16);
  return *this << "0x" << std::string_view(begin, static_cast<size_t>(end - begin));
}

Message& Message::AppendQuoted(std::string_view text) {
  *this << "\"";
  for (const char c : text.substr(0, kLongestQuote)) {
    const bool printable = c >= ' ' && c <= '~';
    *this << std::string_view(printable ? &c : "?", 1);
  }
  return *this << (text.size() > kLongestQuote ? "...\"" : "\"");
}

Message& Message::AppendFixed(double value) {
  if (value < 0) {
    *this << "-";
    value = -value;
  }
  auto whole = static_cast<uint64_t>(value);
  auto thousandths = static_cast<uint64_t>((value - static_cast<double>(whole)) * 1000);
  *this << whole << "." << thousandths / 100 << thousandths / 10 % 10 << thousandths % 10;
  return *this;
}

void Message::WriteLine(int fd, int milliseconds) const {
  char line[kCapacity + 1];
  std::memcpy(line, buffer_, size_);
  line[size_] = '\n';
  WriteLineWithin(fd, {line, size_ + 1}, milliseconds);
}

constinit std::atomic<CrashDetails> crash_details{nullptr};

void Crash(const Message& message) {
  BecomeCrashingThread();
  WriteTagged(message, kCrashPatience);
  std::abort();
}

void CrashOnMisuse(const Message& message, const void* block) {
  BecomeCrashingThread();
  Message lines;
  lines << "tcmalloc: " << message.view() << kAdvice;
  lines.WriteLine(STDERR_FILENO, kCrashPatience);
  if (CrashDetails details = crash_details.load(std::memory_order_relaxed)) details(block);
  std::abort();
}

void Warn(const Message& message) { WriteTagged(message, kPatience); }

void Notify(const Message& message) { WriteTagged(message, 0); }

}  // namespace tcmalloc
