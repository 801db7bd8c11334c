// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "fakes/fake_file.h"
#include "fakes/fault_injection.h"
#include "fakes/one_cpu.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::FakeFile;
using ::tcmalloc::testing::FaultMode;
using ::tcmalloc::testing::InjectFaults;
using ::tcmalloc::testing::RunOnCpu;
using ::tcmalloc::testing::ScopedFaultInjection;
using ::tcmalloc::testing::SystemCall;

TEST(EndOfCpuIdsTest, CoversAllCpusAndFewMore) {
  EXPECT_GE(EndOfCpuIds(), UsableCpus());
  EXPECT_GE(EndOfCpuIds(), ::sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_LE(EndOfCpuIds(), PossibleCpus() + 3);
}

TEST(EndOfCpuIdsTest, ReadsWhatTheKernelPrintsOfTheProcess) {
  FakeFile file("Groups:\t" + std::string(1000, '4') + "\nCpus_allowed:\tff,ffffffff\n");
  EXPECT_EQ(EndOfCpuIds(), 40);
  EXPECT_EQ(file.path(), "/proc/self/status");
  EXPECT_EQ(file.open_files(), 0);
}

// Of a kernel with 1000 CPUs.
int NeedsLongMasks(pid_t, size_t bytes, void*) { return bytes < 128 ? -1 : 128; }

TEST(EndOfCpuIdsTest, FallsBackToTheShortestMaskThatTheKernelTakes) {
  for (const std::string& contents : {std::string(), std::string("Cpus_allowed:\tmany\n"),
                                      "Cpus_allowed:\t" + std::string(1000, 'f') + "\n"}) {
    FakeFile file(contents);
    system_calls.sched_getaffinity = NeedsLongMasks;
    EXPECT_EQ(EndOfCpuIds(), 1024);
    system_calls.sched_getaffinity = [](pid_t, size_t, void*) { return -1; };
    EXPECT_EQ(EndOfCpuIds(), 0);
  }
}

TEST(UsableCpusTest, FollowsTheAffinityMask) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(UsableCpus(), CPU_COUNT(&all));
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    ASSERT_TRUE(RunOnCpu(cpu));
    EXPECT_EQ(UsableCpus(), 1);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(UsableCpusTest, IsOneWhereTheKernelDoesNotTell) {
  ScopedFaultInjection injection;
  InjectFaults(SystemCall::kSchedGetaffinity, {.mode = FaultMode::kFrom, .error = EINVAL});
  EXPECT_EQ(UsableCpus(), 1);
}

TEST(PossibleCpusTest, CoversTheConfiguredOnes) {
  EXPECT_GE(PossibleCpus(), ::sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_GE(PossibleCpus(), UsableCpus());
}

TEST(PossibleCpusTest, ReadsTheList) {
  FakeFile file("0-3,96-127\n");
  EXPECT_EQ(PossibleCpus(), 128);
  EXPECT_EQ(file.path(), "/sys/devices/system/cpu/possible");
  EXPECT_EQ(file.open_files(), 0);
}

// CPUs 1 and 70.
int SparseAffinity(pid_t, size_t bytes, void* mask) {
  std::memset(mask, 0, bytes);
  static_cast<unsigned char*>(mask)[0] = 1 << 1;
  static_cast<unsigned char*>(mask)[70 / 8] = 1 << (70 % 8);
  return 128;
}

TEST(PossibleCpusTest, FallsBackToTheAffinityMask) {
  for (const char* contents : {"", "garbage\n", "0-\n"}) {
    FakeFile file(contents);
    system_calls.sched_getaffinity = SparseAffinity;
    EXPECT_EQ(PossibleCpus(), 71) << contents;
    EXPECT_EQ(UsableCpus(), 2);
  }
}

// Cut at the end of the buffer, this list still looks like one.
TEST(PossibleCpusTest, IgnoresAListThatIsTooLong) {
  std::string list;
  for (int i = 0; i < 200; ++i) list += "10,";
  FakeFile file(list + "127\n");
  system_calls.sched_getaffinity = SparseAffinity;
  EXPECT_EQ(PossibleCpus(), 71);
}

TEST(PossibleCpusTest, IsOneWhereNothingIsKnown) {
  ScopedFaultInjection injection;
  InjectFaults(SystemCall::kSchedGetaffinity, {.mode = FaultMode::kFrom, .error = EPERM});
  InjectFaults(SystemCall::kOpen, {.mode = FaultMode::kFrom, .error = EACCES});
  EXPECT_EQ(PossibleCpus(), 1);
}

}  // namespace
}  // namespace tcmalloc
