// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "options/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "options/load.h"
#include "system/environment.h"

namespace tcmalloc {
namespace {

std::vector<std::string> SettingsOf(const Options& options) {
  std::vector<std::string> settings;
  ForEachSetting(
      options,
      [](std::string_view text, void* to) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(text);
      },
      &settings);
  return settings;
}

Options OptionsFrom(const std::vector<std::string>& variables) {
  std::vector<const char*> block;
  for (const std::string& variable : variables) block.push_back(variable.c_str());
  block.push_back(nullptr);
  Environment environment(block.data());
  Options options;
  LoadOptions(environment, &options);
  return options;
}

TEST(SettingsTest, DefaultsAreNone) {
  EXPECT_EQ(SettingsOf(Options{}), std::vector<std::string>());
  EXPECT_EQ(SettingsOf(OptionsFrom({"TCMALLOC_RELEASE_RATE=1", "TCMALLOC_SAMPLE_PARAMETER=2M"})),
            std::vector<std::string>());
}

TEST(SettingsTest, AreWhatTheEnvironmentWouldSay) {
  // In the order of the table, one of each type.
  const std::vector<std::string> settings = {
      "TCMALLOC_FRONT_END=per_cpu",
      "TCMALLOC_RELEASE_RATE=2.500",
      "TCMALLOC_HEAP_LIMIT_MB=2048",
      "TCMALLOC_AGGRESSIVE_DECOMMIT=true",
      "TCMALLOC_MEMFS_MALLOC_PATH=/" + std::string(kPathCapacity - 2, 'x'),
      "TCMALLOC_SAMPLE_PARAMETER=0",
      "TCMALLOC_GUARDED_SAMPLE_PARAMETER=0",
      "TCMALLOC_PROFILE_TYPE=peak,lifetimes",
      "TCMALLOC_PROFILE_FORMAT=proto",
      "HEAP_PROFILE_CLEANUP=false",
  };
  EXPECT_EQ(SettingsOf(OptionsFrom(settings)), settings);
}

}  // namespace
}  // namespace tcmalloc
