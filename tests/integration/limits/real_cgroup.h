// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_LIMITS_REAL_CGROUP_H_
#define TCMALLOC_TESTS_INTEGRATION_LIMITS_REAL_CGROUP_H_

#include <cstddef>
#include <string>

namespace tcmalloc::testing {

// A memory cgroup below that of this process, with a limit in bytes, where the machine lets us make
// one. It is removed in the end; the processes that entered it must have ended.
class RealCgroup {
 public:
  explicit RealCgroup(std::size_t limit);
  ~RealCgroup();
  RealCgroup(const RealCgroup&) = delete;
  RealCgroup& operator=(const RealCgroup&) = delete;

  // Why there is none; empty if there is one.
  const std::string& problem() const { return problem_; }
  // Moves the calling process into it. False if that is refused.
  bool Enter() const;

 private:
  std::string directory_;
  std::string problem_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_LIMITS_REAL_CGROUP_H_
