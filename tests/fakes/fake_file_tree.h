// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Files in a temporary directory that stands in for the root of a machine.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_FILE_TREE_H_
#define TCMALLOC_TESTS_FAKES_FAKE_FILE_TREE_H_

#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tcmalloc::testing {

// The directory lives as long as this. Not thread safe.
class FakeFileTree {
 public:
  FakeFileTree() {
    std::string name = std::filesystem::temp_directory_path() / "tree.XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      std::perror(name.c_str());
      std::abort();
    }
    root_ = name;
  }
  ~FakeFileTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeFileTree(const FakeFileTree&) = delete;
  FakeFileTree& operator=(const FakeFileTree&) = delete;

  const std::string& root() const { return root_; }

  // `path` begins with '/'. Directories are made as they are needed. The contents change at once,
  // as those of a kernel's file do.
  void Write(const std::string& path, std::string_view contents) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    const std::filesystem::path fresh = file.string() + ".new";
    std::ofstream(fresh) << contents;
    std::filesystem::rename(fresh, file);
  }
  void Remove(const std::string& path) const { std::filesystem::remove_all(root_ + path); }

  // A process in the cgroup `path` of version 2, mounted at the usual place.
  void WriteUnifiedCgroup(const std::string& path) const {
    Write("/proc/self/cgroup", "0::" + path + "\n");
    Write("/proc/self/mountinfo",
          "22 1 0:21 / /proc rw,relatime - proc proc rw\n"
          "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

 private:
  std::string root_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_FILE_TREE_H_
