// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PRIVILEGED_H_
#define TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PRIVILEGED_H_

#include <string>

namespace tcmalloc::testing {

// A copy of a program that changes the group when it runs, so that the kernel sets AT_SECURE. The
// group, not the user: the copy can still read what the program needs. Removed at the end.
class PrivilegedCopy {
 public:
  explicit PrivilegedCopy(const std::string& program);
  ~PrivilegedCopy();
  PrivilegedCopy(const PrivilegedCopy&) = delete;
  PrivilegedCopy& operator=(const PrivilegedCopy&) = delete;

  // Empty if the copy is there; otherwise why it cannot be made.
  const std::string& problem() const { return problem_; }
  const std::string& path() const { return path_; }
  const std::string& directory() const { return directory_; }

 private:
  std::string Make(const std::string& program);

  std::string directory_;
  std::string path_;
  std::string problem_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PRIVILEGED_H_
