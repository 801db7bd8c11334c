// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "integration/limits/real_cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tcmalloc::testing {
namespace {

bool WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

// The directory of this process's memory cgroup, where the usual places have it; and whether it is
// of version 2.
std::string FindOwn(bool* unified) {
  std::ifstream file("/proc/self/cgroup");
  std::string own;
  for (std::string line; std::getline(file, line);) {
    const std::size_t path = line.find(':', line.find(':') + 1) + 1;
    const bool version1 = line.find(":memory:") != std::string::npos;
    if (!version1 && (line.rfind("0::", 0) != 0 || !own.empty())) continue;
    *unified = !version1;
    own = (version1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup") + line.substr(path);
  }
  return own;
}

}  // namespace

RealCgroup::RealCgroup(std::size_t limit) {
  bool unified = false;
  const std::string own = FindOwn(&unified);
  directory_ = own + "/heap_limits." + std::to_string(getpid());
  const std::string file = directory_ + (unified ? "/memory.max" : "/memory.limit_in_bytes");
  if (own.empty() || mkdir(directory_.c_str(), 0755) != 0) {
    problem_ = "no memory cgroup can be made here: " + directory_ + ": " + std::strerror(errno);
    directory_.clear();
  } else if (!WriteText(file, std::to_string(limit))) {
    problem_ = "the memory controller is not to be had here: " + file;
  }
}

RealCgroup::~RealCgroup() {
  if (!directory_.empty()) rmdir(directory_.c_str());
}

bool RealCgroup::Enter() const {
  return WriteText(directory_ + "/cgroup.procs", std::to_string(getpid()));
}

}  // namespace tcmalloc::testing
