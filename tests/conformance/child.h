// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_CONFORMANCE_CHILD_H_
#define TCMALLOC_TESTS_CONFORMANCE_CHILD_H_

#include <functional>
#include <iosfwd>
#include <string>

namespace tcmalloc::testing {

// How a child process ended, and what it wrote to stderr.
struct ChildResult {
  int status = 0;  // as waitpid gives it
  std::string errors;

  bool Exited(int code) const;
  bool Killed(int signal) const;
};

std::ostream& operator<<(std::ostream& out, const ChildResult& result);

// Runs `body` in a forked child, which then exits with 0. The child writes no core file, has the
// default signal actions, and is killed by SIGALRM after a minute.
ChildResult RunInChild(const std::function<void()>& body);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_CHILD_H_
