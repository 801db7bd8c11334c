// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "conformance/child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ostream>

namespace tcmalloc::testing {
namespace {

constexpr unsigned kChildSeconds = 60;

[[noreturn]] void RunBody(const std::function<void()>& body, int stderr_pipe) {
  dup2(stderr_pipe, STDERR_FILENO);
  close(stderr_pipe);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM}) {
    std::signal(signal, SIG_DFL);
  }
  alarm(kChildSeconds);
  body();
  _exit(0);
}

std::string ReadToEnd(int file) {
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t got = read(file, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part, static_cast<std::size_t>(got));
  }
}

}  // namespace

bool ChildResult::Exited(int code) const {
  return WIFEXITED(status) && WEXITSTATUS(status) == code;
}

bool ChildResult::Killed(int signal) const {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

std::ostream& operator<<(std::ostream& out, const ChildResult& result) {
  if (WIFEXITED(result.status)) {
    out << "exit status " << WEXITSTATUS(result.status);
  } else {
    out << "signal " << WTERMSIG(result.status);
  }
  return out << " with stderr \"" << result.errors << '"';
}

ChildResult RunInChild(const std::function<void()>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    std::perror("pipe2");
    std::exit(2);
  }
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    std::perror("fork");
    std::exit(2);
  }
  if (pid == 0) {
    close(ends[0]);
    RunBody(body, ends[1]);
  }
  close(ends[1]);
  ChildResult result;
  result.errors = ReadToEnd(ends[0]);
  close(ends[0]);
  while (waitpid(pid, &result.status, 0) < 0 && errno == EINTR) {
  }
  return result;
}

}  // namespace tcmalloc::testing
