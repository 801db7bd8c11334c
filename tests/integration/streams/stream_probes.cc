// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

#include "integration/streams/probes.h"

namespace tcmalloc::testing {
namespace {

// Larger than the threshold of the report, and never touched.
constexpr std::size_t kLarge = std::size_t{3} << 30;

// Makes `fd` the standard error.
void BecomeStderr(int fd) {
  dup2(fd, STDERR_FILENO);
  close(fd);
}

bool IsPending(int signal) {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

int WithoutReader(int (&ends)[2]) {
  BecomeStderr(ends[1]);
  close(ends[0]);
  if (malloc(kLarge) == nullptr) return 3;
  malloc_stats();
  return IsPending(SIGPIPE) ? 4 : 0;
}

int PipeWithoutReader() {
  int ends[2];
  return pipe(ends) == 0 ? WithoutReader(ends) : 2;
}

int SocketWithoutReader() {
  int ends[2];
  return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 ? WithoutReader(ends) : 2;
}

// A signal that the program holds back is its own.
int PendingSignalStays() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  raise(SIGPIPE);
  int ends[2];
  if (pipe(ends) != 0) return 2;
  const int status = WithoutReader(ends);
  return status == 4 ? 0 : 5;
}

int FullPipe() {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK) != 0) return 2;
  char bytes[4096] = {};
  while (write(ends[1], bytes, sizeof(bytes)) > 0) {
  }
  fcntl(ends[1], F_SETFL, 0);
  BecomeStderr(ends[1]);
  return malloc(kLarge) != nullptr ? 0 : 3;
}

int FullSocket() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 2;
  char bytes[4096] = {};
  while (send(ends[1], bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
  }
  BecomeStderr(ends[1]);
  return malloc(kLarge) != nullptr ? 0 : 3;
}

// A daemon that closed all descriptors has its data at the number of standard error.
int DataFile() {
  const int file = memfd_create("data", 0);
  if (file < 0) return 2;
  BecomeStderr(file);
  if (malloc(kLarge) == nullptr) return 3;
  return lseek(STDERR_FILENO, 0, SEEK_END) == 0 ? 0 : 4;
}

constexpr StreamProbe kStreamProbes[] = {
    {"pipe without reader", PipeWithoutReader},
    {"socket without reader", SocketWithoutReader},
    {"pending signal stays", PendingSignalStays},
    {"full pipe", FullPipe},
    {"full socket", FullSocket},
    {"data file", DataFile},
};

}  // namespace

std::span<const StreamProbe> StreamProbes() { return kStreamProbes; }

}  // namespace tcmalloc::testing
