// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/cgroup.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "fakes/fake_file_tree.h"
#include "fakes/fault_injection.h"
#include "system/auxv.h"
#include "system/topology.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::CallsSeen;
using ::tcmalloc::testing::ClearFaults;
using ::tcmalloc::testing::FakeFileTree;
using ::tcmalloc::testing::FaultMode;
using ::tcmalloc::testing::FaultsInjected;
using ::tcmalloc::testing::InjectFaults;
using ::tcmalloc::testing::ScopedFaultInjection;
using ::tcmalloc::testing::SystemCall;

constexpr char kTop[] = "/sys/fs/cgroup";

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override { cgroup_.set_root(tree_.root().c_str()); }

  void WriteV1(const std::string& membership, const std::string& mountinfo) const {
    tree_.Write("/proc/self/cgroup", membership);
    tree_.Write("/proc/self/mountinfo", mountinfo);
  }

  FakeFileTree tree_;
  Cgroup cgroup_;
};

TEST_F(CgroupTest, WithoutFilesThereAreNoLimits) {
  EXPECT_EQ(cgroup_.Read(), CgroupLimits{});
  EXPECT_EQ(cgroup_.ReadResidentBytes(), std::nullopt);
}

TEST_F(CgroupTest, ReadsEveryFileOfVersion2) {
  tree_.WriteUnifiedCgroup("/app");
  const std::string app = std::string(kTop) + "/app/";
  tree_.Write(app + "memory.max", "1073741824\n");
  tree_.Write(app + "memory.high", "805306368\n");
  tree_.Write(app + "memory.current", "4096\n");
  tree_.Write(app + "memory.pressure",
              "some avg10=12.34 avg60=0.00 avg300=0.00 total=5\nfull avg10=99.00 avg60=0.00\n");
  tree_.Write(app + "cpu.max", "250000 100000\n");
  tree_.Write(app + "cpuset.cpus.effective", "0-3,8\n");
  const CgroupLimits limits = cgroup_.Read().value();
  EXPECT_EQ(limits.memory_max, 1073741824u);
  EXPECT_EQ(limits.memory_high, 805306368u);
  EXPECT_EQ(limits.memory_current, 4096u);
  EXPECT_EQ(limits.pressure, 1234u);
  EXPECT_EQ(limits.cpu_quota, 3);
  EXPECT_EQ(limits.cpuset_cpus, 5);
}

TEST_F(CgroupTest, TakesTheStrictestOfAllLevels) {
  tree_.WriteUnifiedCgroup("/pods/pod1/app");
  const std::string pods = std::string(kTop) + "/pods";
  tree_.Write(pods + "/memory.max", "3000\n");
  tree_.Write(pods + "/memory.high", "max\n");
  tree_.Write(pods + "/cpu.max", "max 100000\n");
  tree_.Write(pods + "/pod1/memory.max", "2000\n");
  tree_.Write(pods + "/pod1/memory.high", "1500\n");
  tree_.Write(pods + "/pod1/cpu.max", "100001 100000\n");
  tree_.Write(pods + "/pod1/memory.current", "77\n");
  tree_.Write(pods + "/pod1/memory.pressure", "some avg10=50.00 avg60=0.00\n");
  tree_.Write(pods + "/pod1/cpuset.cpus.effective", "1-2\n");
  tree_.Write(pods + "/pod1/app/memory.max", "max\n");
  tree_.Write(pods + "/pod1/app/memory.high", "1800\n");
  tree_.Write(pods + "/pod1/app/memory.current", "33\n");
  tree_.Write(pods + "/pod1/app/cpu.max", "900000 100000\n");
  const CgroupLimits limits = cgroup_.Read().value();
  EXPECT_EQ(limits.memory_max, 2000u);
  EXPECT_EQ(limits.memory_high, 1500u);
  EXPECT_EQ(limits.cpu_quota, 2);
  EXPECT_EQ(limits.memory_current, 33u) << "of the cgroup itself";
  EXPECT_EQ(limits.pressure, 0u) << "of the cgroup itself";
  EXPECT_EQ(limits.cpuset_cpus, 2) << "of the nearest that has one";
}

TEST_F(CgroupTest, TheLimitsOfTheTopCountToo) {
  tree_.WriteUnifiedCgroup("/");
  tree_.Write(std::string(kTop) + "/memory.max", "4000\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 4000u);
  tree_.WriteUnifiedCgroup("/a/b");
  tree_.Write(std::string(kTop) + "/a/b/memory.max", "5000\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 4000u);
}

TEST_F(CgroupTest, FilesBesideTheMountAreNotRead) {
  tree_.WriteUnifiedCgroup("/a");
  tree_.Write("/sys/fs/memory.max", "1\n");
  tree_.Write("/memory.max", "1\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, kNoMemoryLimit);
}

TEST_F(CgroupTest, ReadsVersion1) {
  WriteV1("4:memory:/pod/app\n3:cpuset:/pod\n2:cpu,cpuacct:/pod/app\n1:name=systemd:/x\n",
          "32 31 0:29 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
          "34 31 0:31 / /cg/cpuset rw,relatime shared:7 master:2 - cgroup cgroup rw,cpuset\n"
          "35 31 0:32 / /cg/memory rw,relatime - cgroup cgroup rw,memory\n");
  tree_.Write("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n");
  tree_.Write("/cg/memory/pod/memory.limit_in_bytes", "500000\n");
  tree_.Write("/cg/memory/pod/app/memory.limit_in_bytes", "9223372036854771712\n");
  tree_.Write("/cg/memory/pod/app/memory.soft_limit_in_bytes", "1000\n");
  tree_.Write("/cg/memory/pod/app/memory.usage_in_bytes", "1234\n");
  tree_.Write("/cg/cpu,cpuacct/pod/cpu.cfs_quota_us", "150000\n");
  tree_.Write("/cg/cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n");
  tree_.Write("/cg/cpu,cpuacct/pod/app/cpu.cfs_quota_us", "-1\n");
  tree_.Write("/cg/cpu,cpuacct/pod/app/cpu.cfs_period_us", "100000\n");
  tree_.Write("/cg/cpuset/pod/cpuset.cpus", "0-7\n");
  const CgroupLimits limits = cgroup_.Read().value();
  EXPECT_EQ(limits.memory_max, 500000u);
  EXPECT_EQ(limits.memory_high, kNoMemoryLimit) << "the soft limit of version 1 is another thing";
  EXPECT_EQ(limits.memory_current, 1234u);
  EXPECT_EQ(limits.cpu_quota, 2);
  EXPECT_EQ(limits.cpuset_cpus, 8);
  tree_.Write("/cg/cpuset/pod/cpuset.effective_cpus", "0-2\n");
  EXPECT_EQ(cgroup_.Read()->cpuset_cpus, 3);
}

// As systemd mounted them for years: version 2 without controllers beside version 1 with all.
TEST_F(CgroupTest, ControllersOfVersion1ComeBeforeVersion2) {
  for (const char* membership : {"4:memory:/a\n0::/b\n", "0::/b\n4:memory:/a\n"}) {
    WriteV1(membership,
            "40 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n"
            "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n");
    tree_.Write("/cg/memory/a/memory.limit_in_bytes", "1000\n");
    tree_.Write("/cg/unified/b/memory.max", "10\n");
    tree_.Write("/cg/unified/b/cpu.max", "400000 100000\n");
    EXPECT_EQ(cgroup_.Read()->memory_max, 1000u) << membership;
    EXPECT_EQ(cgroup_.Read()->cpu_quota, 4) << "a controller that only version 2 has";
  }
}

// A container without a namespace of its own: the names are the host's, the mount shows a part.
TEST_F(CgroupTest, UnderstandsAMountOfAPart) {
  WriteV1("4:memory:/docker/abc/inner\n",
          "35 31 0:32 /docker/abc /cg/memory ro - cgroup cgroup rw,memory\n");
  tree_.Write("/cg/memory/memory.limit_in_bytes", "2000\n");
  tree_.Write("/cg/memory/inner/memory.limit_in_bytes", "1000\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 1000u);
  WriteV1("4:memory:/docker/abc\n",
          "35 31 0:32 /docker/abc /cg/memory ro - cgroup cgroup rw,memory\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 2000u);
}

// Then its top is what there is.
TEST_F(CgroupTest, AMountThatDoesNotShowTheCgroup) {
  for (const char* path : {"/other", "/docker/abcd", "/../sibling", "/"}) {
    WriteV1(std::string("4:memory:") + path + "\n",
            "35 31 0:32 /docker/abc /cg/memory ro - cgroup cgroup rw,memory\n");
    tree_.Write("/cg/memory/memory.limit_in_bytes", "2000\n");
    EXPECT_EQ(cgroup_.Read()->memory_max, 2000u) << path;
  }
}

TEST_F(CgroupTest, PrefersTheMountThatShowsTheCgroup) {
  WriteV1("0::/b/c\n",
          "1 2 0:3 /a /first rw - cgroup2 none rw\n"
          "1 2 0:3 /b /second rw - cgroup2 none rw\n"
          "1 2 0:3 /d /third rw - cgroup2 none rw\n");
  tree_.Write("/first/memory.max", "1\n");
  tree_.Write("/second/c/memory.max", "2\n");
  tree_.Write("/third/memory.max", "3\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 2u);

  Cgroup fresh;
  fresh.set_root(tree_.root().c_str());
  WriteV1("0::/b/c\n",
          "1 2 0:3 /b /second rw - cgroup2 none rw\n"
          "1 2 0:3 / /fourth rw - cgroup2 none rw\n");
  tree_.Write("/fourth/b/memory.max", "1\n");
  EXPECT_EQ(fresh.Read()->memory_max, 1u) << "the last one may hide the others";
}

TEST_F(CgroupTest, PathsMayHaveAnyCharacters) {
  WriteV1("0::/with space/back\\slash:and:colons\n",
          "1 2 0:3 / /mount\\040point\\134here rw - cgroup2 none rw\n");
  tree_.Write("/mount point\\here/with space/back\\slash:and:colons/memory.max", "9\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 9u);
}

// The kernel marks a cgroup that was removed with its processes still inside.
TEST_F(CgroupTest, ARemovedCgroupLeavesThoseAboveIt) {
  tree_.WriteUnifiedCgroup("/a/b (deleted)");
  tree_.Write(std::string(kTop) + "/a/memory.max", "9\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 9u);
}

TEST_F(CgroupTest, FollowsChangesAndMoves) {
  tree_.WriteUnifiedCgroup("/a");
  const std::string top = kTop;
  tree_.Write(top + "/a/memory.max", "1000\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 1000u);
  tree_.Write(top + "/a/memory.max", "500\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 500u);
  tree_.Write(top + "/b/memory.max", "200\n");
  tree_.Write("/proc/self/cgroup", "0::/b\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 200u);
  tree_.Remove("/proc/self/cgroup");
  EXPECT_EQ(cgroup_.Read(), CgroupLimits{});
}

TEST_F(CgroupTest, ReadsTheMountsOnceForEachPlace) {
  tree_.WriteUnifiedCgroup("/a");
  ScopedFaultInjection counting;
  cgroup_.Read();
  const uint64_t first = CallsSeen(SystemCall::kOpen);
  cgroup_.Read();
  EXPECT_EQ(CallsSeen(SystemCall::kOpen) - first, first - 2);
  EXPECT_EQ(CallsSeen(SystemCall::kClose), 4u) << "each of the files that exist";
}

// Every other CPU, as where hyperthreads are left alone.
TEST_F(CgroupTest, ListsOfCpusMayBeLong) {
  tree_.WriteUnifiedCgroup("/a");
  std::string list = "0";
  for (int cpu = 2; cpu < 2048; cpu += 2) list += "," + std::to_string(cpu);
  const std::string file = std::string(kTop) + "/a/cpuset.cpus.effective";
  tree_.Write(file, list + "\n");
  EXPECT_EQ(cgroup_.Read()->cpuset_cpus, 1024);
  tree_.Write(file, list + ",many\n");
  EXPECT_EQ(cgroup_.Read()->cpuset_cpus, kNoCpuLimit);
}

TEST_F(CgroupTest, MalformedFilesLimitNothing) {
  for (const char* text : {"", "\n", "many\n", "-1\n", "12 MiB\n", "0x10\n", " 5\n", "max max\n",
                           "99999999999999999999999999\n", "1152921504606846976\n"}) {
    tree_.WriteUnifiedCgroup("/a");
    const std::string directory = std::string(kTop) + "/a/";
    for (const char* name : {"memory.max", "memory.high", "memory.current", "memory.pressure",
                             "cpu.max", "cpuset.cpus.effective"}) {
      tree_.Write(directory + name, text);
    }
    EXPECT_EQ(cgroup_.Read(), CgroupLimits{}) << text;
  }
}

TEST_F(CgroupTest, MalformedPlacesLimitNothing) {
  for (const char* membership : {"", "0\n", "0:\n", "0::\n", "0::a\n", ":::\n", "4:memory\n"}) {
    tree_.WriteUnifiedCgroup("/");
    tree_.Write("/proc/self/cgroup", membership);
    tree_.Write(std::string(kTop) + "/memory.max", "4000\n");
    EXPECT_EQ(cgroup_.Read(), CgroupLimits{}) << membership;
  }
  for (const char* mount :
       {"", "\n", "30 23 0:26 / /sys/fs/cgroup rw cgroup2 cgroup2 rw\n",
        "30 23 0:26 sys /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "30 23 0:26 / /sys/fs/cgroup rw -\n", "30 23 0:26 / /sys/fs/cgroup rw - tmpfs t rw\n"}) {
    Cgroup fresh;
    fresh.set_root(tree_.root().c_str());
    tree_.WriteUnifiedCgroup("/");
    tree_.Write("/proc/self/mountinfo", mount);
    EXPECT_EQ(fresh.Read(), CgroupLimits{}) << mount;
  }
}

TEST_F(CgroupTest, LongLinesAndPathsLimitNothing) {
  const std::string deep = "/" + std::string(2000, 'd');
  tree_.WriteUnifiedCgroup(deep);
  tree_.Write(std::string(kTop) + "/memory.max", "4000\n");
  EXPECT_EQ(cgroup_.Read(), CgroupLimits{});
  std::string part;
  for (int i = 0; i < 9; ++i) part += "/" + std::string(100, 'd');
  tree_.WriteUnifiedCgroup(part);
  cgroup_.Read();
  WriteV1("0::/a\n", "5 1 0:9 / /x" + std::string(9000, 'y') +
                         " rw - overlay o rw\n"
                         "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(cgroup_.Read()->memory_max, 4000u) << "the line after a long one counts";
}

TEST_F(CgroupTest, EveryCallMayFail) {
  tree_.WriteUnifiedCgroup("/a");
  tree_.Write(std::string(kTop) + "/a/memory.max", "1000\n");
  for (const SystemCall call : {SystemCall::kOpen, SystemCall::kRead, SystemCall::kClose}) {
    for (uint64_t k = 1; k < 20; ++k) {
      ScopedFaultInjection injection;
      InjectFaults(call, {.mode = FaultMode::kOnce, .k = k, .error = EACCES});
      Cgroup fresh;
      fresh.set_root(tree_.root().c_str());
      const uint64_t max = fresh.Read()->memory_max;
      EXPECT_TRUE(max == 1000 || max == kNoMemoryLimit) << max;
    }
  }
}

// A process without a free descriptor has the limits that it had, and not none.
TEST_F(CgroupTest, WhereFilesCannotBeReadNowNothingIsKnown) {
  tree_.WriteUnifiedCgroup("/a");
  tree_.Write(std::string(kTop) + "/a/memory.max", "1000\n");
  for (const auto& [call, error] : {std::pair(SystemCall::kOpen, EMFILE),
                                    {SystemCall::kOpen, ENFILE},
                                    {SystemCall::kRead, ENOMEM},
                                    {SystemCall::kRead, EBADF}}) {
    int failures = 0;
    for (uint64_t k = 1; k < 20; ++k) {
      ScopedFaultInjection injection;
      Cgroup fresh;
      fresh.set_root(tree_.root().c_str());
      InjectFaults(call, {.mode = FaultMode::kOnce, .k = k, .error = error});
      const bool known = fresh.Read().has_value();
      EXPECT_EQ(known, FaultsInjected() == 0) << k;
      failures += known ? 0 : 1;
      ClearFaults();
      ASSERT_TRUE(fresh.Read().has_value()) << "the next time";
      EXPECT_EQ(fresh.Read()->memory_max, 1000u);
    }
    EXPECT_GE(failures, 3);
  }
}

TEST_F(CgroupTest, ReadsResidentMemory) {
  tree_.Write("/proc/self/statm", "5000 120 30 4 0 60 0\n");
  EXPECT_EQ(cgroup_.ReadResidentBytes(), 120 * KernelPageSize());
  Cgroup real;
  EXPECT_GT(real.ReadResidentBytes().value(), 100'000u);
}

TEST(RealCgroupTest, IsReadWithoutComplaint) {
  Cgroup cgroup;
  const CgroupLimits limits = cgroup.Read().value();
  EXPECT_GT(limits.memory_max, 1u << 20);
  EXPECT_GE(UsableCpus(limits), 1);
  EXPECT_LE(UsableCpus(limits), UsableCpus());
}

TEST(CgroupTextTest, Pressure) {
  EXPECT_EQ(ParsePressure("some avg10=0.00 avg60=1.00"), 0u);
  EXPECT_EQ(ParsePressure("some avg10=0.07"), 7u);
  EXPECT_EQ(ParsePressure("some avg10=3.5"), 350u);
  EXPECT_EQ(ParsePressure("some avg10=3"), 300u);
  EXPECT_EQ(ParsePressure("some avg10=100.00 "), 10000u);
  EXPECT_EQ(ParsePressure("some avg10=99999999999999999999"), 0u) << "does not fit";
  EXPECT_EQ(ParsePressure("full avg10=5.00"), 0u);
  EXPECT_EQ(ParsePressure("some avg10=x"), 0u);
  EXPECT_EQ(ParsePressure("some avg10=1.x"), 0u);
}

TEST(CgroupTextTest, Quotas) {
  EXPECT_EQ(ParseCpuMax("100000 100000"), 1);
  EXPECT_EQ(ParseCpuMax("1 100000"), 1);
  EXPECT_EQ(ParseCpuMax("100001 100000"), 2);
  EXPECT_EQ(ParseCpuMax("6400000 100000"), 64);
  for (const char* none : {"max 100000", "max", "0 100000", "5 0", "5", "5 ", "5 6 7", "5  6",
                           "18446744073709551615 1", "-5 6"}) {
    EXPECT_EQ(ParseCpuMax(none), kNoCpuLimit) << none;
  }
}

TEST(CgroupTextTest, Escapes) {
  char out[16];
  const auto unescaped = [&](std::string_view text) {
    return std::string(out, Unescape(text, out, sizeof(out)));
  };
  EXPECT_EQ(unescaped("plain"), "plain");
  EXPECT_EQ(unescaped("a\\040b\\011\\012\\134"), "a b\t\n\\");
  EXPECT_EQ(unescaped("\\04"), "\\04");
  EXPECT_EQ(unescaped("\\999\\"), "\\999\\");
  EXPECT_EQ(unescaped("\\400"), "\\400") << "no byte";
  EXPECT_EQ(unescaped("0123456789abcdef"), "0123456789abcdef");
  EXPECT_EQ(unescaped("0123456789abcdefg"), "") << "does not fit";
}

TEST(CgroupLimitsTest, BoundTheUsableCpus) {
  const int cpus = UsableCpus();
  EXPECT_EQ(UsableCpus(CgroupLimits{}), cpus);
  EXPECT_EQ(UsableCpus(CgroupLimits{.cpu_quota = 1}), 1);
  EXPECT_EQ(UsableCpus(CgroupLimits{.cpuset_cpus = 1}), 1);
  EXPECT_EQ(UsableCpus(CgroupLimits{.cpu_quota = 10'000, .cpuset_cpus = 20'000}), cpus);
}

}  // namespace
}  // namespace tcmalloc
