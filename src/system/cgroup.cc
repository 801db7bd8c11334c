// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/cgroup.h"

#include <algorithm>

#include "base/random.h"
#include "system/cpu_list.h"
#include "system/first_line.h"
#include "system/line_reader.h"
#include "system/resident.h"

namespace tcmalloc {
namespace {

constexpr std::string_view kControllerNames[] = {"memory", "cpu", "cpuset"};

constexpr uint64_t kEmptyHash = 1;

uint64_t Hash(uint64_t seed, std::string_view text) {
  for (const char c : text) seed = NextRandom(seed ^ static_cast<unsigned char>(c));
  return NextRandom(seed);
}

// Lists the lines of the file at root + name. Sets `interfered` if they cannot be read now.
class RootedFile {
 public:
  RootedFile(std::string_view root, std::string_view name, bool* interfered)
      : interfered_(interfered) {
    // The path needs no room of its own: nothing is read before the file is open.
    if (root.size() + name.size() >= sizeof(buffer_)) return;
    *std::copy(name.begin(), name.end(), std::copy(root.begin(), root.end(), buffer_)) = '\0';
    open_ = lines_.Open(buffer_);
    *interfered_ |= lines_.interfered();
  }

  bool Next(std::string_view* line) {
    while (open_ && lines_.Next(line)) {
      if (!lines_.truncated()) return true;
    }
    *interfered_ |= lines_.interfered();
    return false;
  }

 private:
  bool* interfered_;
  // Longer lines do not concern cgroups.
  char buffer_[1024];
  LineReader lines_{buffer_, sizeof(buffer_), '\n'};
  bool open_ = false;
};

// Calls f(path) with the path of a file of a cgroup, unless that is too long.
template <typename F>
void WithPathIn(CgroupPath* directory, std::string_view name, F f) {
  const size_t length = directory->view().size();
  if (directory->Append("/") && directory->Append(name)) f(directory->c_str());
  directory->Truncate(length);
}

// The first line of a file that holds a few numbers. Sets `interfered` if it cannot be read now.
class FirstLine {
 public:
  FirstLine(CgroupPath* directory, std::string_view name, bool* interfered) {
    WithPathIn(directory, name,
               [&](const char* path) { line_ = ReadFirstLine(path, buffer_, interfered); });
  }

  std::string_view view() const { return line_; }

 private:
  char buffer_[128];
  std::string_view line_;
};

// Returns how many CPUs the list in a file names; kNoCpuLimit if the file holds no list. Such a
// list may be longer than any buffer.
int CountOfListedCpus(CgroupPath* directory, std::string_view name, bool* interfered) {
  char buffer[64];
  LineReader ranges(buffer, sizeof(buffer), ',');
  int count = kNoCpuLimit;
  bool open = false;
  WithPathIn(directory, name, [&](const char* path) { open = ranges.Open(path); });
  std::string_view range;
  while (open && ranges.Next(&range)) {
    if (range.ends_with('\n')) range.remove_suffix(1);
    const int more = CountOfCpuList(range);
    if (more == 0) {
      count = kNoCpuLimit;
      break;
    }
    count = std::min(count + more, kMostCpus);
  }
  *interfered |= ranges.interfered();
  return count;
}

int Stricter(int a, int b) {
  if (a == kNoCpuLimit || b == kNoCpuLimit) return std::max(a, b);
  return std::min(a, b);
}

// Returns true if `path` is `directory` or lies in it.
bool LiesIn(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

bool CgroupPath::Append(std::string_view text) {
  if (text.size() >= kCapacity - length_) return false;
  std::copy(text.begin(), text.end(), text_ + length_);
  Truncate(length_ + text.size());
  return true;
}

bool CgroupPath::AppendUnescaped(std::string_view text) {
  const size_t count = Unescape(text, text_ + length_, kCapacity - 1 - length_);
  Truncate(length_ + count);
  return count != 0;
}

std::optional<CgroupLimits> Cgroup::Read() {
  interfered_ = false;
  Locate();
  CgroupLimits limits;
  ReadMemory(&limits);
  ReadCpu(&limits);
  ReadCpuset(&limits);
  if (interfered_) return std::nullopt;
  return limits;
}

std::optional<uint64_t> Cgroup::ReadResidentBytes() {
  scratch_.Truncate(0);
  if (!scratch_.Append(root_) || !scratch_.Append("/proc/self/statm")) return std::nullopt;
  return ResidentBytes(scratch_.c_str());
}

template <typename F>
void Cgroup::ForEachLevel(const Directory& directory, F visit) {
  if (directory.top == 0) return;
  scratch_ = directory.path;
  while (visit(&scratch_) && scratch_.view().size() > directory.top) {
    scratch_.Truncate(std::max(scratch_.view().rfind('/'), directory.top));
  }
}

// Reads the mount points of cgroups only if the process has moved since the last time, or if they
// could not be read then.
void Cgroup::Locate() {
  uint64_t hash = kEmptyHash;
  std::string_view line;
  {
    RootedFile file(root_, "/proc/self/cgroup", &interfered_);
    while (file.Next(&line)) hash = Hash(hash, line);
  }
  if (interfered_ || hash == membership_hash_) return;
  for (Directory& directory : directories_) directory = {};
  {
    RootedFile file(root_, "/proc/self/cgroup", &interfered_);
    CgroupMembership membership;
    while (file.Next(&line)) {
      if (ParseCgroupMembership(line, &membership)) SetMembership(membership);
    }
  }
  RootedFile file(root_, "/proc/self/mountinfo", &interfered_);
  MountLine mount;
  while (file.Next(&line)) {
    if (ParseMountLine(line, &mount)) Mount(mount);
  }
  membership_hash_ = interfered_ ? 0 : hash;
}

// A controller belongs to version 2 unless a hierarchy of version 1 has it.
void Cgroup::SetMembership(const CgroupMembership& membership) {
  const bool unified = membership.controllers.empty();
  for (size_t i = 0; i < kControllers; ++i) {
    Directory& directory = directories_[i];
    if (unified ? directory.listed : !ListHolds(membership.controllers, kControllerNames[i])) {
      continue;
    }
    directory.member.Truncate(0);
    if (!directory.member.Append(membership.path)) continue;
    directory.listed = !unified;
    directory.unified = unified;
  }
}

void Cgroup::Mount(const MountLine& mount) {
  for (size_t i = 0; i < kControllers; ++i) {
    Directory& directory = directories_[i];
    const bool here = directory.unified ? mount.type == "cgroup2"
                                        : directory.listed && mount.type == "cgroup" &&
                                              ListHolds(mount.options, kControllerNames[i]);
    if (here) ChooseDirectory(mount, &directory);
  }
}

// Notes a mount, which may show only a part of the hierarchy. If the name of the process's cgroup
// is not in that part, as in a container that sees the host's names, the top of the part is the
// best choice. Of several mounts that show the cgroup the last one counts, because it may hide the
// others.
void Cgroup::ChooseDirectory(const MountLine& mount, Directory* directory) {
  CgroupPath& root = scratch_;
  root.Truncate(0);
  if (!root.AppendUnescaped(mount.root)) return;
  std::string_view below = directory->member.view();
  const bool exact = LiesIn(below, root.view()) && below.find("/..") == std::string_view::npos;
  if (!exact && directory->top != 0) return;
  below.remove_prefix(exact && root.view() != "/" ? root.view().size() : 0);
  if (!exact || below == "/") below = {};

  directory->top = 0;
  directory->path.Truncate(0);
  if (!directory->path.Append(root_) || !directory->path.AppendUnescaped(mount.point)) return;
  const size_t top = directory->path.view().size();
  if (!directory->path.Append(below)) return;
  directory->top = top;
}

void Cgroup::ReadMemory(CgroupLimits* limits) {
  const Directory& directory = directories_[kMemory];
  const bool unified = directory.unified;
  const char* max = unified ? "memory.max" : "memory.limit_in_bytes";
  ForEachLevel(directory, [&](CgroupPath* path) {
    limits->memory_max =
        std::min(limits->memory_max, ParseMemoryLimit(FirstLine(path, max, &interfered_).view()));
    if (unified) {
      limits->memory_high =
          std::min(limits->memory_high,
                   ParseMemoryLimit(FirstLine(path, "memory.high", &interfered_).view()));
    }
    return true;
  });
  ForEachLevel(directory, [&](CgroupPath* path) {
    const char* current = unified ? "memory.current" : "memory.usage_in_bytes";
    const uint64_t bytes = ParseMemoryLimit(FirstLine(path, current, &interfered_).view());
    if (bytes != kNoMemoryLimit) limits->memory_current = bytes;
    if (unified)
      limits->pressure = ParsePressure(FirstLine(path, "memory.pressure", &interfered_).view());
    return false;
  });
}

void Cgroup::ReadCpu(CgroupLimits* limits) {
  const Directory& directory = directories_[kCpu];
  ForEachLevel(directory, [&](CgroupPath* path) {
    const int cpus = directory.unified
                         ? ParseCpuMax(FirstLine(path, "cpu.max", &interfered_).view())
                         : ParseCpuQuota(FirstLine(path, "cpu.cfs_quota_us", &interfered_).view(),
                                         FirstLine(path, "cpu.cfs_period_us", &interfered_).view());
    limits->cpu_quota = Stricter(limits->cpu_quota, cpus);
    return true;
  });
}

// Reads the effective set, which already respects the cgroups above. Version 2 may lack that file
// in a cgroup for which the controller is off.
void Cgroup::ReadCpuset(CgroupLimits* limits) {
  const Directory& directory = directories_[kCpuset];
  ForEachLevel(directory, [&](CgroupPath* path) {
    for (const char* name :
         {directory.unified ? "cpuset.cpus.effective" : "cpuset.effective_cpus", "cpuset.cpus"}) {
      limits->cpuset_cpus = CountOfListedCpus(path, name, &interfered_);
      if (limits->cpuset_cpus != kNoCpuLimit) return false;
    }
    return true;
  });
}

}  // namespace tcmalloc
