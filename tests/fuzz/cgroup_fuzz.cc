// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Lines about control groups: any text. What is understood, written as the kernel would write it,
// must be understood again as the same.

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "system/cgroup_text.h"
#include "system/resident.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

void CheckInside(std::string_view view, std::string_view text) {
  if (view.empty()) return;
  TCMALLOC_CHECK(view.data() >= text.data());
  TCMALLOC_CHECK(view.data() + view.size() <= text.data() + text.size());
}

void CheckMembership(std::string_view text) {
  CgroupMembership membership;
  if (!ParseCgroupMembership(text, &membership)) return;
  CheckInside(membership.controllers, text);
  CheckInside(membership.path, text);
  TCMALLOC_CHECK(membership.path.starts_with('/'));
  TCMALLOC_CHECK_EQ(membership.controllers.find(':'), std::string_view::npos);
  const std::string again =
      "7:" + std::string(membership.controllers) + ":" + std::string(membership.path);
  CgroupMembership second;
  TCMALLOC_CHECK(ParseCgroupMembership(again, &second));
  TCMALLOC_CHECK_EQ(second.controllers, membership.controllers);
  TCMALLOC_CHECK_EQ(second.path, membership.path);
}

void CheckMount(std::string_view text) {
  MountLine mount;
  if (!ParseMountLine(text, &mount)) return;
  for (const std::string_view view : {mount.root, mount.point, mount.type, mount.options}) {
    CheckInside(view, text);
  }
  TCMALLOC_CHECK(mount.root.starts_with('/') && mount.point.starts_with('/'));
  const std::string again = "1 2 3:4 " + std::string(mount.root) + " " + std::string(mount.point) +
                            " rw - " + std::string(mount.type) + " source " +
                            std::string(mount.options);
  MountLine second;
  TCMALLOC_CHECK(ParseMountLine(again, &second));
  TCMALLOC_CHECK_EQ(second.root, mount.root);
  TCMALLOC_CHECK_EQ(second.point, mount.point);
  TCMALLOC_CHECK_EQ(second.type, mount.type);
  TCMALLOC_CHECK_EQ(second.options, mount.options);
}

void CheckUnescape(std::string_view text, size_t capacity) {
  std::vector<char> out(capacity);
  const size_t length = Unescape(text, out.data(), capacity);
  TCMALLOC_CHECK_LE(length, capacity);
  TCMALLOC_CHECK_LE(length, text.size());
  if (capacity >= text.size()) TCMALLOC_CHECK_EQ(length == 0, text.empty());
}

void CheckNumbers(std::string_view text) {
  const uint64_t bytes = ParseMemoryLimit(text);
  TCMALLOC_CHECK(bytes == kNoMemoryLimit || bytes < uint64_t{1} << 60);
  const int cpus = ParseCpuMax(text);
  TCMALLOC_CHECK(cpus >= 0 && cpus < 1 << 16);
  TCMALLOC_CHECK_LE(ParsePressure(text), 10099u);
  static_cast<void>(ParseResidentPages(text));
}

void CheckQuota(uint64_t quota, uint64_t period) {
  char text[64];
  std::snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, quota, period);
  const int cpus = ParseCpuMax(text);
  if (cpus == kNoCpuLimit) return;
  const auto whole = static_cast<uint64_t>(cpus);
  TCMALLOC_CHECK((whole - 1) * period < quota && quota <= whole * period);
}

}  // namespace

TCM_FUZZ_TARGET(cgroup_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const auto quota = input.Take<uint32_t>();
  const auto period = input.Take<uint32_t>();
  CheckQuota(quota, period);
  const auto capacity = input.Take<uint8_t>();
  while (!input.empty()) {
    const std::string_view line = input.TakeUntil('\n');
    // Of exactly this size, so that a read beyond its end is noticed.
    const std::vector<char> exact(line.begin(), line.end());
    const std::string_view text(exact.data(), exact.size());
    CheckMembership(text);
    CheckMount(text);
    CheckUnescape(text, capacity);
    CheckNumbers(text);
    TCMALLOC_CHECK_EQ(ListHolds(text, "memory"),
                      ("," + std::string(text) + ",").find(",memory,") != std::string::npos);
  }
  return 0;
}
