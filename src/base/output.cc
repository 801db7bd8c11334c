// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/output.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/hidden_write_signals.h"

namespace tcmalloc {
namespace {

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
    ready = ::syscall(SYS_ppoll, &wanted, 1L, &time, nullptr, sizeof(uint64_t));
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
  HiddenWriteSignals scope;
  while (!text.empty()) {
    const long written = Write(fd, text);
    if (written < 0) scope.NoteFailure();
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

bool WriteLineWithin(int fd, std::string_view line, int milliseconds) {
  HiddenWriteSignals scope;
  const bool waits = HasReader(fd);
  if (waits && !BecomesWritable(fd, milliseconds)) return false;
  const long written = waits ? WriteAtOnce(fd, line) : Write(fd, line);
  if (written < 0) scope.NoteFailure();
  return written == static_cast<long>(line.size());
}

}  // namespace tcmalloc
