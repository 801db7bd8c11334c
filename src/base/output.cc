// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/output.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {
namespace {

// The kernel's layout of a set of signals.
using SignalSet = uint64_t;
constexpr SignalSet kPipeSignal = SignalSet{1} << (SIGPIPE - 1);

// Hides the SIGPIPE of this thread's writes to a pipe or socket without a reader while it lives. A
// SIGPIPE that was pending before stays pending. Keeps errno.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() : saved_errno_(errno) {
    SignalSet pending = 0;
    ::syscall(SYS_rt_sigpending, &pending, sizeof(pending));
    was_pending_ = (pending & kPipeSignal) != 0;
    blocked_ = ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kPipeSignal, &mask_, sizeof(mask_)) == 0;
  }
  ~WithoutPipeSignal() {
    if (broken_ && blocked_ && !was_pending_) {
      constexpr timespec kNoTime = {};
      ::syscall(SYS_rt_sigtimedwait, &kPipeSignal, nullptr, &kNoTime, sizeof(kPipeSignal));
    }
    if (blocked_) ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask_, nullptr, sizeof(mask_));
    errno = saved_errno_;
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

  // Called after a write failed with `error`.
  void NoteFailure(int error) { broken_ = broken_ || error == EPIPE; }

 private:
  int saved_errno_;
  SignalSet mask_ = 0;
  bool was_pending_ = false;
  bool blocked_ = false;
  bool broken_ = false;
};

long Write(int fd, std::string_view text) {
  long written = 0;
  do {
    written = ::syscall(SYS_write, fd, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  return written;
}

// Returns true for pipes, sockets and terminals, which have no position. A write to them may wait
// for the reader.
bool HasReader(int fd) { return ::syscall(SYS_lseek, fd, 0L, SEEK_CUR) < 0 && errno == ESPIPE; }

bool BecomesWritable(int fd, int milliseconds) {
  pollfd wanted = {.fd = fd, .events = POLLOUT, .revents = 0};
  timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1'000'000L};
  long ready = 0;
  // The kernel updates `time` to the time that remains.
  do {
    ready = ::syscall(SYS_ppoll, &wanted, 1L, &time, nullptr, sizeof(SignalSet));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Writes `line`, or fails if it had to wait, even because another writer took the room meanwhile.
// Older kernels have no such write for pipes.
long WriteAtOnce(int fd, std::string_view line) {
  const iovec part = {.iov_base = const_cast<char*>(line.data()), .iov_len = line.size()};
  constexpr long kHere = -1;
  const long written = ::syscall(SYS_pwritev2, fd, &part, 1L, kHere, kHere, RWF_NOWAIT);
  const bool unknown = errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS;
  return written < 0 && unknown ? Write(fd, line) : written;
}

}  // namespace

void WriteAll(int fd, std::string_view text) {
  WithoutPipeSignal scope;
  while (!text.empty()) {
    const long written = Write(fd, text);
    if (written < 0) scope.NoteFailure(errno);
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void WriteLineWithin(int fd, std::string_view line, int milliseconds) {
  WithoutPipeSignal scope;
  const bool waits = HasReader(fd);
  if (waits && !BecomesWritable(fd, milliseconds)) return;
  const long written = waits ? WriteAtOnce(fd, line) : Write(fd, line);
  if (written < 0) scope.NoteFailure(errno);
}

}  // namespace tcmalloc
