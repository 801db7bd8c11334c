// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PRIVILEGED_H_
#define TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PRIVILEGED_H_

#include <string>

namespace tcmalloc::testing {

// kGroup: started by root, it runs with another group. kUser: started by a user without rights, it
// runs with those of root. Either way it can read what the program needs.
enum class Privilege { kGroup, kUser };

// A copy of a program that has more rights than who starts it, so that the kernel sets AT_SECURE.
// Removed at the end.
class PrivilegedCopy {
 public:
  PrivilegedCopy(const std::string& program, Privilege privilege);
  ~PrivilegedCopy();
  PrivilegedCopy(const PrivilegedCopy&) = delete;
  PrivilegedCopy& operator=(const PrivilegedCopy&) = delete;

  // Empty if the copy is there; otherwise why it cannot be made.
  const std::string& problem() const { return problem_; }
  const std::string& path() const { return path_; }
  const std::string& directory() const { return directory_; }

 private:
  std::string Make(const std::string& program);

  Privilege privilege_;
  std::string directory_;
  std::string path_;
  std::string problem_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PRIVILEGED_H_
