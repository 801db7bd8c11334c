// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The limits that control groups impose on this process.

#ifndef TCMALLOC_SYSTEM_CGROUP_H_
#define TCMALLOC_SYSTEM_CGROUP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "system/cgroup_text.h"

namespace tcmalloc {

// The strictest limits of the process's cgroup and those above it. The kernel enforces all of them.
struct CgroupLimits {
  uint64_t memory_max = kNoMemoryLimit;   // bytes
  uint64_t memory_high = kNoMemoryLimit;  // bytes; version 2 only
  uint64_t memory_current = 0;            // bytes that the cgroup itself holds; 0 if unknown
  int cpu_quota = kNoCpuLimit;            // CPUs, rounded up
  int cpuset_cpus = kNoCpuLimit;
  uint32_t pressure = 0;  // see ParsePressure; version 2 only

  bool operator==(const CgroupLimits&) const = default;
};

// A path that is built in place, with its terminating zero byte.
class CgroupPath {
 public:
  constexpr CgroupPath() = default;

  // Returns false, with nothing changed, if the text does not fit.
  [[nodiscard]] bool Append(std::string_view text);
  // Appends a path of mountinfo without its escapes.
  [[nodiscard]] bool AppendUnescaped(std::string_view text);
  void Truncate(size_t length) { text_[length_ = length] = '\0'; }

  std::string_view view() const { return {text_, length_}; }
  const char* c_str() const { return text_; }

 private:
  // Several times the length that container runtimes use.
  static constexpr size_t kCapacity = 1024;

  size_t length_ = 0;
  char text_[kCapacity] = {};
};

// Finds the cgroups of this process in /proc/self/cgroup and their mount points in
// /proc/self/mountinfo, and reads their limits: version 2, the controllers of version 1, or some of
// each. A file that is missing, malformed or out of reach (a namespace may hide cgroups) limits
// nothing.
//
// All zero at first, so that it may lie in .bss. Not thread safe. Allocates nothing. May change
// errno.
class Cgroup {
 public:
  constexpr Cgroup() = default;
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  // Prepends `root` to every path, including the mount points; for tests. The text must outlive
  // this.
  void set_root(std::string_view root) { root_ = root; }

  // Reads the present limits. Follows the process if it was moved to another cgroup. Returns no
  // value if an existing file could not be read now: see LineReader::interfered.
  std::optional<CgroupLimits> Read();

  // Returns the resident bytes of this process, including its share of files. No value if unknown.
  std::optional<uint64_t> ReadResidentBytes();

 private:
  enum Controller : uint8_t { kMemory, kCpu, kCpuset, kControllers };

  // The place of one controller's files.
  struct Directory {
    CgroupPath member;     // the process's place in the hierarchy
    CgroupPath path;       // the same as a path of files
    size_t top = 0;        // length of the part of `path` that is the mount point; 0: no path
    bool listed = false;   // a hierarchy of version 1 has the controller
    bool unified = false;  // version 2 does
  };

  // Calls visit(CgroupPath*) for a directory and those above it up to its mount point, until one
  // returns false.
  template <typename F>
  void ForEachLevel(const Directory& directory, F visit);

  void Locate();
  void SetMembership(const CgroupMembership& membership);
  void Mount(const MountLine& mount);
  void ChooseDirectory(const MountLine& mount, Directory* directory);
  void ReadMemory(CgroupLimits* limits);
  void ReadCpu(CgroupLimits* limits);
  void ReadCpuset(CgroupLimits* limits);

  std::string_view root_;
  uint64_t membership_hash_ = 0;  // of what the directories were found by
  Directory directories_[kControllers];
  // The path in use; too long for the stacks on which the allocator may run.
  CgroupPath scratch_;
  bool interfered_ = false;  // with some file, since Read began
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_CGROUP_H_
