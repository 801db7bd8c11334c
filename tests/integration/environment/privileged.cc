// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "integration/environment/privileged.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace tcmalloc::testing {
namespace {

constexpr gid_t kOtherGroup = 65534;

}  // namespace

PrivilegedCopy::PrivilegedCopy(const std::string& program, Privilege privilege)
    : privilege_(privilege), problem_(Make(program)) {}

PrivilegedCopy::~PrivilegedCopy() {
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

std::string PrivilegedCopy::Make(const std::string& program) {
  if (geteuid() != 0) return "only root can make such a program";
  std::string pattern = std::filesystem::temp_directory_path() / "privileged.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return "no temporary directory";
  directory_ = pattern;
  path_ = directory_ + "/probe";
  if (chmod(directory_.c_str(), S_IRWXU | S_IXOTH) != 0) return "cannot open the directory";
  std::error_code error;
  std::filesystem::copy_file(program, path_, error);
  if (error) return "cannot copy " + program + ": " + error.message();
  if (privilege_ == Privilege::kUser) {
    const bool set = chmod(path_.c_str(), S_ISUID | S_IRWXU | S_IXOTH) == 0;
    return set ? "" : "cannot set the bit";
  }
  // chmod after chown, which clears the bit.
  if (chown(path_.c_str(), 0, kOtherGroup) != 0) return "cannot change the group of a file";
  if (chmod(path_.c_str(), S_ISGID | S_IRWXU | S_IRGRP | S_IXGRP) != 0) return "cannot set the bit";
  return "";
}

}  // namespace tcmalloc::testing
