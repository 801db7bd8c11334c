// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace tcmalloc {
namespace {

ProfilerSettings Load(std::vector<const char*> entries, int complaints = 0) {
  entries.push_back(nullptr);
  Environment environment(entries.data());
  ::testing::internal::CaptureStderr();
  const ProfilerSettings settings = LoadProfilerSettings(environment);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), complaints) << said;
  return settings;
}

TEST(SettingsTest, EveryVariableSetsItsField) {
  EXPECT_EQ(Load({}).frequency, 100);
  EXPECT_EQ(Load({}).timer_signal, SIGPROF);
  EXPECT_EQ(Load({"CPUPROFILE_FREQUENCY=250"}).frequency, 250);
  EXPECT_TRUE(Load({"CPUPROFILE_REALTIME=1"}).wall);
  EXPECT_TRUE(Load({"CPUPROFILE_REALTIME=any"}).wall);
  EXPECT_FALSE(Load({"CPUPROFILE_REALTIME=0"}).wall);
  EXPECT_TRUE(Load({"CPUPROFILE_PERF_EVENTS=1"}).perf);
  EXPECT_EQ(Load({"CPUPROFILE_TIMER_SIGNAL=34"}).timer_signal, 34);
  EXPECT_TRUE(Load({"TCMALLOC_PROFILE_FORMAT=proto"}).proto);
  EXPECT_FALSE(Load({"TCMALLOC_PROFILE_FORMAT=text"}).proto);
}

TEST(SettingsTest, ComplainsOfValuesOutOfRange) {
  EXPECT_EQ(Load({"CPUPROFILE_FREQUENCY=4001"}, 1).frequency, 4000);
  EXPECT_EQ(Load({"CPUPROFILE_FREQUENCY=0"}, 1).frequency, 100);
  EXPECT_EQ(Load({"CPUPROFILE_FREQUENCY=often"}, 1).frequency, 100);
  EXPECT_EQ(Load({"CPUPROFILE_FREQUENCY="}).frequency, 100);
  EXPECT_EQ(Load({"CPUPROFILE_TIMER_SIGNAL=-3"}, 1).timer_signal, SIGPROF);
}

TEST(SettingsTest, ComplainsOfSwitchesThatAreNone) {
  EXPECT_FALSE(Load({"CPUPROFILE_PERF_EVENTS=q"}, 1).perf);
  EXPECT_FALSE(Load({"CPUPROFILE_PERF_EVENTS=no"}).perf);
  EXPECT_TRUE(Load({"CPUPROFILE_REALTIME=q"}).wall);
}

TEST(SettingsTest, ComplainsOnceInAProcess) {
  setenv("CPUPROFILE_FREQUENCY", "5000", 1);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(CurrentProfilerSettings().frequency, 4000);
  const std::string said = ::testing::internal::GetCapturedStderr();
  unsetenv("CPUPROFILE_FREQUENCY");
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

TEST(SettingsTest, StartsAsAsked) {
  const char* entries[] = {"CPUPROFILE=/tmp/a", "CPUPROFILESIGNAL=12", "CPUPROFILE_USE_PID=1",
                           "CPUPROFILE_FOLLOW_FORKS=1", nullptr};
  Environment environment(entries);
  StartSettings settings;
  LoadStartSettings(environment, &settings);
  EXPECT_STREQ(settings.path, "/tmp/a");
  EXPECT_EQ(settings.toggle_signal, 12);
  EXPECT_TRUE(settings.use_pid);
  EXPECT_TRUE(settings.follow_forks);
}

TEST(SettingsTest, ANameThatGperftoolsMarkedIsThatOfTheParent) {
  const char* entries[] = {"CPUPROFILE=\xaftmp/a", "CPUPROFILE_USE_PID=0", nullptr};
  Environment environment(entries);
  StartSettings settings;
  LoadStartSettings(environment, &settings);
  EXPECT_STREQ(settings.path, "/tmp/a");
  EXPECT_TRUE(settings.use_pid);
}

TEST(SettingsTest, SaysThatNoSignalIsUsed) {
  const char* entries[] = {"CPUPROFILESIGNAL=usr1", nullptr};
  Environment environment(entries);
  StartSettings settings;
  ::testing::internal::CaptureStderr();
  LoadStartSettings(environment, &settings);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("expected a number from 1 to 64; using none\n"), std::string::npos) << said;
  EXPECT_EQ(settings.toggle_signal, 0);
}

}  // namespace
}  // namespace tcmalloc
