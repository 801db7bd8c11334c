// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/message.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "base/attributes.h"
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

// The time that the next line of the report may wait.
constinit std::atomic<int> crash_patience{kCrashPatience};

// Follows the first line of a message about a mistake.
constexpr std::string_view kAdvice =
    "\n    run it under tcm debug, or preload libtcmalloc_debug.so.4, to see who allocated and who "
    "freed it";

// See OmitAdvice.
constinit std::atomic<bool> advice_is_moot{false};

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

// Inline, because a function of its own has unwind information that is larger.
TCMALLOC_ALWAYS_INLINE bool WriteReportLine(const Message& line, int fd) {
  const bool written = line.WriteLine(fd, crash_patience.load(std::memory_order_relaxed));
  if (!written) crash_patience.store(0, std::memory_order_relaxed);
  return written;
}

// The process that writes the report, because a child of fork has one of its own.
constinit std::atomic<long> reporting_process{0};
constinit std::atomic<int> report_descriptor{-1};

// Returns true for a file that has other names as well. In a folder that others may write to, it
// may be a file of somebody else, to which only this process can append.
bool HasOtherNames(int fd) {
  struct stat information = {};
  return ::syscall(SYS_fstat, fd, &information) != 0 || information.st_nlink > 1;
}

// Opens the crash report and writes which process it is about. Returns a negative number if it
// cannot be written.
int OpenCrashReport(const char* prefix, long process) {
  Message name;
  name << prefix << "." << process;
  if (name.view().size() == Message::kCapacity) return -1;
  char path[Message::kCapacity + 1] = {};
  std::memcpy(path, name.view().data(), name.view().size());
  constexpr int kFlags =
      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW;
  auto fd = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, kFlags, 0600));
  if (fd < 0) return fd;
  if (fd <= STDERR_FILENO) {
    // The program has closed a stream of its own, whose place the file must not take.
    const int low = fd;
    fd = static_cast<int>(::syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    ::syscall(SYS_close, low);
    if (fd < 0) return fd;
  }
  char program[Message::kCapacity + 1] = {};
  ::syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, Message::kCapacity);
  const Message line = Message() << "process " << process << " " << program;
  if (HasOtherNames(fd) || !line.WriteLine(fd, kCrashPatience)) {
    ::syscall(SYS_close, fd);
    return -1;
  }
  return fd;
}

// Returns the descriptor of this process's report, or a negative number. Makes no system call if
// none is wanted, because a sandbox may forbid it.
int CrashReport() {
  const char* prefix = crash_report_prefix.load(std::memory_order_relaxed);
  if (prefix == nullptr) return -1;
  const long process = ::syscall(SYS_getpid);
  if (reporting_process.load(std::memory_order_relaxed) != process) {
    report_descriptor.store(OpenCrashReport(prefix, process), std::memory_order_relaxed);
    reporting_process.store(process, std::memory_order_relaxed);
  }
  return report_descriptor.load(std::memory_order_relaxed);
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

bool Message::WriteLine(int fd, int milliseconds) const {
  char line[kCapacity + 1];
  std::memcpy(line, buffer_, size_);
  line[size_] = '\n';
  return WriteLineWithin(fd, {line, size_ + 1}, milliseconds);
}

constinit std::atomic<MisuseReport> misuse_report{nullptr};
constinit std::atomic<const char*> own_work{nullptr};
constinit std::atomic<const char*> crash_report_prefix{nullptr};

void WriteFirstCrashLine(const Message& message, std::string_view advice) {
  Message first;
  first << "tcmalloc: " << message.view();
  Message all = first;
  all << advice;
  crash_patience.store(kCrashPatience, std::memory_order_relaxed);
  const int report = CrashReport();
  WriteReportLine(report >= 0 ? first : all, STDERR_FILENO);
  if (report >= 0) WriteReportLine(all, report);
}

void WriteCrashLine(const Message& message) {
  // The report may be on a disk that is full by now.
  const int report = CrashReport();
  if (report < 0 || !WriteReportLine(message, report)) WriteReportLine(message, STDERR_FILENO);
}

void WriteMisuse(const Message& message) {
  const bool is_moot = advice_is_moot.load(std::memory_order_relaxed);
  WriteFirstCrashLine(message, is_moot ? std::string_view() : kAdvice);
}

void Crash(const Message& message) {
  BecomeCrashingThread();
  WriteFirstCrashLine(message);
  std::abort();
}

void OmitAdvice() { advice_is_moot.store(true, std::memory_order_relaxed); }

void CrashOnMisuse(const Message& message, const void* block) {
  BecomeCrashingThread();
  const MisuseReport report = misuse_report.load(std::memory_order_relaxed);
  report != nullptr ? report(message, block) : WriteMisuse(message);
  std::abort();
}

void Warn(const Message& message) { WriteTagged(message, kPatience); }

void Notify(const Message& message) { WriteTagged(message, 0); }

}  // namespace tcmalloc
