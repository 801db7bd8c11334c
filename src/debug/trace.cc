// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>

#include "base/message.h"
#include "base/output.h"
#include "debug/program_stack.h"
#include "heap_profile/caller_stack.h"
#include "system/auxv.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr int kUnopened = -1;
constexpr int kFailed = -2;
constexpr const char* kDefaultPath = "/tmp/google.alloc";

constinit std::atomic<int> trace_fd{kUnopened};

// Returns true if the file is not there yet, or is a regular one of this user.
bool MayBeWritten(const char* path) {
  if (IsSecureProcess()) return false;
  struct stat information = {};
  if (system_calls.lstat(path, &information) != 0) return true;
  return S_ISREG(information.st_mode) && information.st_uid == system_calls.getauxval(AT_EUID);
}

int OpenTrace(const Options& options) {
  const char* path = options.trace_file.empty() ? kDefaultPath : options.trace_file.text;
  int fd = kFailed;
  if (MayBeWritten(path)) {
    fd = system_calls.open(
        path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
  }
  if (fd < 0) {
    Message message;
    message << "trace file ";
    message.AppendQuoted(path) << " cannot be written";
    Warn(message);
    return kFailed;
  }
  WriteAll(fd, "func\tsize\tptr\tthread_id\tstack pcs for tools/symbolize\n");
  return fd;
}

// Returns the file, or a negative number. Of two threads that open it, one wins.
int TraceFile(const Options& options) {
  int fd = trace_fd.load(std::memory_order_relaxed);
  if (fd != kUnopened) return fd;
  const int opened = OpenTrace(options);
  if (trace_fd.compare_exchange_strong(fd, opened, std::memory_order_relaxed)) return opened;
  if (opened >= 0) system_calls.close(opened);
  return fd;
}

}  // namespace

void WriteTraceLine(const Options& options, const char* call, size_t size, const void* block) {
  const int saved_errno = errno;
  const int fd = TraceFile(options);
  if (fd >= 0) {
    Message line;
    line << call << "\t" << uint64_t{size} << "\t" << block << "\t"
         << static_cast<uint64_t>(pthread_self());
    const CallerStack stack(ProgramStack::kMostFrames);
    for (const void* frame : stack.frames()) line << "\t" << frame;
    line << "\n";
    WriteAll(fd, line.view());
  }
  errno = saved_errno;
}

}  // namespace tcmalloc
