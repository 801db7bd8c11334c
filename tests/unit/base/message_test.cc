// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <thread>

#include "base/check.h"
#include "base/output.h"

namespace tcmalloc {
namespace {

template <typename T>
std::string Text(const T& value) {
  Message message;
  message << value;
  return std::string(message.view());
}

std::string Fixed(double value) {
  Message message;
  message.AppendFixed(value);
  return std::string(message.view());
}

TEST(MessageTest, EmptyTextNeedsNoAddress) {
  EXPECT_EQ(Text(std::string_view()), "");
  EXPECT_EQ(Text(std::string_view("")), "");
}

TEST(MessageTest, Numbers) {
  EXPECT_EQ(Text(uint64_t{0}), "0");
  EXPECT_EQ(Text(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(Text(std::numeric_limits<int64_t>::max()), "9223372036854775807");
  EXPECT_EQ(Text(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(Text(-1), "-1");
  EXPECT_EQ(Text(4000000000u), "4000000000");
}

TEST(MessageTest, OtherValues) {
  EXPECT_EQ(Text("text"), "text");
  EXPECT_EQ(Text(std::string_view("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(Text(true), "true");
  EXPECT_EQ(Text(false), "false");
  EXPECT_EQ(Text(reinterpret_cast<void*>(0)), "0x0");
  EXPECT_EQ(Text(reinterpret_cast<void*>(0x7f00deadbeef)), "0x7f00deadbeef");
  EXPECT_EQ(Text(reinterpret_cast<void*>(UINTPTR_MAX)), "0xffffffffffffffff");
}

TEST(MessageTest, FixedHasThreeDecimals) {
  EXPECT_EQ(Fixed(0), "0.000");
  EXPECT_EQ(Fixed(1.5), "1.500");
  EXPECT_EQ(Fixed(1.0625), "1.062");
  EXPECT_EQ(Fixed(0.0078125), "0.007");
  EXPECT_EQ(Fixed(-2.25), "-2.250");
  EXPECT_EQ(Fixed(123456789.875), "123456789.875");
}

TEST(MessageTest, QuotedTextIsShortAndPrintable) {
  const auto quoted = [](std::string_view text) {
    Message message;
    message.AppendQuoted(text);
    return std::string(message.view());
  };
  EXPECT_EQ(quoted(""), "\"\"");
  EXPECT_EQ(quoted("a b~"), "\"a b~\"");
  EXPECT_EQ(quoted("a\n\x1b\x7f\xff"), "\"a????\"");
  EXPECT_EQ(quoted(std::string(64, 'x')), "\"" + std::string(64, 'x') + "\"");
  EXPECT_EQ(quoted(std::string(65, 'x')), "\"" + std::string(64, 'x') + "...\"");
}

TEST(MessageTest, CutsWhatDoesNotFit) {
  Message message;
  message << std::string(Message::kCapacity - 3, 'x') << 123456 << "more" << uint64_t{7};
  EXPECT_EQ(message.view(), std::string(Message::kCapacity - 3, 'x') + "123");
  message << "";
  EXPECT_EQ(message.view().size(), Message::kCapacity);
}

class PipeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(ends_), 0); }
  ~PipeTest() override {
    ::close(ends_[0]);
    CloseWriter();
  }
  void CloseWriter() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  std::string ReadAll() {
    std::string text;
    char buffer[4096];
    ssize_t count = 0;
    while ((count = ::read(ends_[0], buffer, sizeof(buffer))) > 0) {
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }

  int ends_[2] = {-1, -1};
};

TEST_F(PipeTest, WriteLineAddsOneNewline) {
  Message message;
  message << "a line";
  message.WriteLine(ends_[1], 0);
  Message full;
  full << std::string(2 * Message::kCapacity, 'x');
  full.WriteLine(ends_[1], 0);
  CloseWriter();
  EXPECT_EQ(ReadAll(), "a line\n" + std::string(Message::kCapacity, 'x') + "\n");
}

std::atomic<int> interrupted_writes{0};

// True if the kernel has yet to deliver SIGUSR1 to the thread.
bool IsPending(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  std::string key;
  for (uint64_t set = 0; status >> key;) {
    if (key == "SigPnd:") return status >> std::hex >> set && (set >> (SIGUSR1 - 1) & 1) != 0;
  }
  return false;
}

// A signal makes a write to a full pipe return early: with a short count, or with EINTR where
// nothing of it was written yet. Its delivery is awaited, not its handler: the thread sanitizer
// puts that off until after WriteAll, which waits for the pipe to be read.
TEST_F(PipeTest, WriteAllContinuesInterruptedAndShortWrites) {
  constexpr int kSignals = 50;
  struct sigaction action = {};
  struct sigaction saved = {};
  action.sa_handler = [](int) { ++interrupted_writes; };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &saved), 0);
  const int capacity = ::fcntl(ends_[1], F_GETPIPE_SZ);
  const std::string text(static_cast<size_t>(capacity) * 3, 'y');

  std::atomic<pid_t> thread{0};
  std::thread writer([&] {
    thread = ::gettid();
    WriteAll(ends_[1], text);
    CloseWriter();
  });
  int available = 0;
  while (available < capacity) ASSERT_EQ(::ioctl(ends_[0], FIONREAD, &available), 0);
  for (int i = 0; i < kSignals; ++i) {
    ASSERT_EQ(::pthread_kill(writer.native_handle(), SIGUSR1), 0);
    while (IsPending(thread)) std::this_thread::yield();
  }
  EXPECT_EQ(ReadAll(), text);
  writer.join();
  EXPECT_GT(interrupted_writes, 0);
  ASSERT_EQ(::sigaction(SIGUSR1, &saved, nullptr), 0);
}

TEST_F(PipeTest, FailedWriteKeepsErrno) {
  errno = ENOENT;
  WriteAll(-1, "nobody");
  EXPECT_EQ(errno, ENOENT);
  const int read_only = ends_[0];
  WriteAll(read_only, "nobody");
  EXPECT_EQ(errno, ENOENT);
}

// A file that may not grow and a pipe without a reader.
TEST(OutputTest, FailedWritesRaiseNoSignal) {
  rlimit saved = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &saved), 0);
  const rlimit none = {0, saved.rlim_max};
  std::FILE* file = std::tmpfile();
  int ends[2];
  ASSERT_TRUE(file != nullptr && ::pipe(ends) == 0);
  ::close(ends[0]);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  for (const int fd : {::fileno(file), ends[1]}) {
    WriteAll(fd, "nobody");
    WriteLineWithin(fd, "nobody", 0);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &saved), 0);
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_FALSE(sigismember(&pending, SIGXFSZ) || sigismember(&pending, SIGPIPE));
  ::close(ends[1]);
  std::fclose(file);
}

TEST(WarnTest, GoesToStderrInOneLine) {
  Message message;
  message << "something " << 5;
  ::testing::internal::CaptureStderr();
  Warn(message);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tcmalloc: something 5\n");
}

TEST(CheckDeathTest, CrashAborts) {
  Message message;
  message << "the end";
  EXPECT_EXIT(Crash(message), ::testing::KilledBySignal(SIGABRT), "^tcmalloc: the end\n$");
}

struct CrashOutput {
  pid_t child = 0;
  std::string report;
  std::string errors;  // on stderr
};

// Runs `crash` in a child that writes a crash report.
CrashOutput OutputOf(void (*crash)()) {
  CrashOutput output;
  char folder[] = "/tmp/crash_report_XXXXXX";
  EXPECT_NE(::mkdtemp(folder), nullptr);
  const std::string prefix = std::string(folder) + "/report";
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    crash_report_prefix.store(prefix.c_str(), std::memory_order_relaxed);
    crash();
    ::_exit(0);
  }
  output.child = child;
  ::close(ends[1]);
  char text[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], text, sizeof text)) > 0;) {
    output.errors.append(text, static_cast<size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  const std::string path = prefix + "." + std::to_string(child);
  std::ifstream file(path);
  output.report = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  ::unlink(path.c_str());
  EXPECT_EQ(::rmdir(folder), 0);
  return output;
}

// Returns the report, without its first line, which must name the process and its program, and
// stores what went to stderr.
std::string ReportOf(void (*crash)(), std::string* errors) {
  const CrashOutput output = OutputOf(crash);
  *errors = output.errors;
  const std::string first = "process " + std::to_string(output.child) + " /";
  EXPECT_TRUE(output.report.starts_with(first)) << output.report;
  return output.report.substr(output.report.find('\n') + 1);
}

// Lets no file get longer, as a full disk does.
void RefuseToWriteFiles() {
  constexpr rlimit kNone = {0, 0};
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &kNone), 0);
}

TEST(CrashReportTest, HasAllAndStderrTheFirstLine) {
  std::string errors;
  const std::string report =
      ReportOf([] { CrashOnMisuse(Message() << "a mistake", nullptr); }, &errors);
  // An emulator adds lines of its own.
  EXPECT_TRUE(errors.starts_with("tcmalloc: a mistake\n")) << errors;
  EXPECT_EQ(errors.find("run it"), std::string::npos) << errors;
  EXPECT_EQ(report.find("tcmalloc: a mistake\n    run it under tcm debug"), 0U) << report;
}

TEST(CrashReportTest, TakesTheLinesThatFollow) {
  std::string errors;
  const std::string report = ReportOf(
      [] {
        WriteFirstCrashLine(Message() << "first");
        WriteCrashLine(Message() << "second");
        std::abort();
      },
      &errors);
  EXPECT_TRUE(errors.starts_with("tcmalloc: first\n")) << errors;
  EXPECT_EQ(errors.find("second"), std::string::npos) << errors;
  EXPECT_EQ(report, "tcmalloc: first\nsecond\n");
}

TEST(CrashReportTest, StderrHasAllIfTheFileTakesNothing) {
  const CrashOutput output = OutputOf([] {
    RefuseToWriteFiles();
    WriteFirstCrashLine(Message() << "first", " and advice");
    WriteCrashLine(Message() << "second");
    std::abort();
  });
  EXPECT_EQ(output.report, "");
  EXPECT_TRUE(output.errors.starts_with("tcmalloc: first and advice\nsecond\n")) << output.errors;
}

TEST(CrashReportTest, StderrHasWhatTheFileDoesNotTake) {
  std::string errors;
  const std::string report = ReportOf(
      [] {
        WriteFirstCrashLine(Message() << "first");
        RefuseToWriteFiles();
        WriteCrashLine(Message() << "second");
        std::abort();
      },
      &errors);
  EXPECT_EQ(report, "tcmalloc: first\n");
  EXPECT_TRUE(errors.starts_with("tcmalloc: first\nsecond\n")) << errors;
}

// The child is killed if each of its lines waits.
TEST(CrashReportTest, IsNotHeldUpByEachLine) {
  constexpr int kLines = 200;
  constexpr unsigned kSeconds = 60;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  while (::write(ends[1], "full", 1) == 1) {
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSeconds);
    ::dup2(ends[1], STDERR_FILENO);
    WriteFirstCrashLine(Message() << "first");
    for (int i = 0; i < kLines; ++i) WriteCrashLine(Message() << "another");
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(CrashReportTest, TakesTheNumberOfNoStream) {
  std::string errors;
  const std::string report = ReportOf(
      [] {
        ::close(STDERR_FILENO);
        CrashOnMisuse(Message() << "a mistake", nullptr);
      },
      &errors);
  EXPECT_EQ(errors, "");
  EXPECT_EQ(report.find("tcmalloc: "), report.rfind("tcmalloc: ")) << report;
}

TEST(CrashReportTest, ChildOfForkHasItsOwn) {
  std::string errors;
  const std::string report = ReportOf(
      [] {
        WriteFirstCrashLine(Message() << "of the parent");
        // The report of the child is removed by nobody else.
        const pid_t child = ::fork();
        if (child == 0) {
          crash_report_prefix.store("/nonexistent/report", std::memory_order_relaxed);
          WriteCrashLine(Message() << "of the child");
          ::_exit(0);
        }
        ::waitpid(child, nullptr, 0);
        std::abort();
      },
      &errors);
  EXPECT_EQ(report, "tcmalloc: of the parent\n");
  EXPECT_TRUE(errors.starts_with("tcmalloc: of the parent\nof the child\n")) << errors;
}

// Somebody else may have put a link there if the folder is one that others may write to.
TEST(CrashReportTest, FollowsNoLink) {
  for (auto* link : {&::symlink, &::link}) {
    char folder[] = "/tmp/crash_report_XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    const std::string target = std::string(folder) + "/target";
    const std::string prefix = std::string(folder) + "/report";
    const std::string report = prefix + "." + std::to_string(::getpid());
    std::ofstream(target) << "kept\n";
    ASSERT_EQ(link(target.c_str(), report.c_str()), 0);
    EXPECT_EXIT(
        {
          // The test's death runs in a child, which has a number of its own.
          const std::string own = prefix + "." + std::to_string(::getpid());
          if (own != report) ::rename(report.c_str(), own.c_str());
          crash_report_prefix.store(prefix.c_str(), std::memory_order_relaxed);
          WriteFirstCrashLine(Message() << "first");
          WriteCrashLine(Message() << "second");
          ::unlink(own.c_str());
          ::_exit(0);
        },
        ::testing::ExitedWithCode(0), "^tcmalloc: first\nsecond\n");
    std::ifstream file(target);
    const std::string content{std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>()};
    EXPECT_EQ(content, "kept\n");
    ::unlink(target.c_str());
    EXPECT_EQ(::rmdir(folder), 0);
  }
}

TEST(CheckDeathTest, FailedChecksPrintConditionAndValues) {
  const int two = 2;
  TCMALLOC_CHECK(two == 2);
  TCMALLOC_CHECK_EQ(two, 2);
  TCMALLOC_CHECK_LE(two, 2);
  EXPECT_DEATH(TCMALLOC_CHECK(two == 3), "message_test.cc:[0-9]+: check failed: two == 3");
  EXPECT_DEATH(TCMALLOC_CHECK_EQ(two, 3), "check failed: two == 3 \\(2 vs 3\\)");
  EXPECT_DEATH(TCMALLOC_CHECK_LE(two, 1), "check failed: two <= 1 \\(2 vs 1\\)");
}

TEST(CheckDeathTest, DebugChecksFollowTheLevel) {
  const int two = 2;
  if (kDebugChecks) {
    EXPECT_DEATH(TCMALLOC_DCHECK(two == 3), "check failed");
    EXPECT_DEATH(TCMALLOC_DCHECK_EQ(two, 3), "2 vs 3");
    EXPECT_DEATH(TCMALLOC_DCHECK_LE(two, 1), "2 vs 1");
  } else {
    TCMALLOC_DCHECK(two == 3);
    TCMALLOC_DCHECK_EQ(two, 3);
    TCMALLOC_DCHECK_LE(two, 1);
  }
}

TEST(CheckTest, EvaluatesItsOperandsOnce) {
  int calls = 0;
  const auto next = [&] { return ++calls; };
  TCMALLOC_CHECK_EQ(next(), 1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tcmalloc
