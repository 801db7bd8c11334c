// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/report_stream.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Numbers above those that programs choose for themselves, but few enough for select, and for a
// small table in the kernel.
constexpr rlim_t kMostDescriptors = 1024;

int FirstNumber() {
  rlimit limit = {};
  if (system_calls.getrlimit(RLIMIT_NOFILE, &limit) != 0) return STDERR_FILENO + 1;
  const rlim_t most = std::min(limit.rlim_cur, kMostDescriptors);
  return std::max(static_cast<int>(most - most / 8), STDERR_FILENO + 1);
}

bool IsClosed(int fd) { return ::syscall(SYS_fcntl, fd, F_GETFD) < 0 && errno == EBADF; }

}  // namespace

constinit ReportStream report_stream;

void ReportStream::Keep() {
  if (copy_ >= 0 || ::syscall(SYS_fstat, STDERR_FILENO, &stream_) != 0) return;
  copy_ = static_cast<int>(
      ::syscall(SYS_fcntl, STDERR_FILENO, F_DUPFD_CLOEXEC, static_cast<long>(FirstNumber())));
}

// A program that closes all descriptors may have given the number to a file of its own.
bool ReportStream::IsCopy() const {
  struct stat now = {};
  return copy_ >= 0 && ::syscall(SYS_fstat, copy_, &now) == 0 && now.st_dev == stream_.st_dev &&
         now.st_ino == stream_.st_ino && now.st_mode == stream_.st_mode;
}

void ReportStream::Drop() {
  if (IsCopy()) system_calls.close(copy_);
  copy_ = -1;
}

int ReportStream::descriptor() const {
  const int saved_errno = errno;
  const bool use_copy = IsClosed(STDERR_FILENO) && IsCopy();
  errno = saved_errno;
  return use_copy ? copy_ : STDERR_FILENO;
}

}  // namespace tcmalloc
