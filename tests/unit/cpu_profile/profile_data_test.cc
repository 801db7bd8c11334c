// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cpu_profile/gperftools_profile_data.h"

namespace {

namespace fs = std::filesystem;
using Words = std::vector<uintptr_t>;

class ProfileDataTest : public ::testing::Test {
 protected:
  ~ProfileDataTest() override { fs::remove(path_); }

  Words Contents(size_t count) const {
    std::ifstream file(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    Words words(std::min(count, text.size() / sizeof(uintptr_t)));
    if (!words.empty()) std::memcpy(words.data(), text.data(), words.size() * sizeof(uintptr_t));
    return words;
  }

  static void Add(ProfileData& data, const Words& stack) {
    data.Add(static_cast<int>(stack.size()), reinterpret_cast<const void* const*>(stack.data()));
  }

  std::string path_ = ::testing::TempDir() + "profile_data." + std::to_string(getpid());
};

TEST_F(ProfileDataTest, WritesTheFormat) {
  ProfileData data;
  ProfileData::Options options;
  options.set_frequency(100);
  EXPECT_FALSE(data.enabled());
  ASSERT_TRUE(data.Start(path_.c_str(), options));
  EXPECT_FALSE(data.Start(path_.c_str(), options));
  EXPECT_TRUE(data.enabled());
  Add(data, {4, 5});
  Add(data, {4, 5});
  ProfileData::State state;
  data.GetCurrentState(&state);
  EXPECT_TRUE(state.enabled);
  EXPECT_EQ(state.samples_gathered, 2);
  EXPECT_EQ(state.profile_name, path_);
  data.FlushTable();
  const Words flushed = {0, 3, 0, 10'000, 0, 2, 2, 4, 5};
  EXPECT_EQ(Contents(100), flushed);
  Add(data, {6});
  data.Stop();
  Words whole = flushed;
  whole.insert(whole.end(), {1, 1, 6, 0, 1, 0});
  EXPECT_EQ(Contents(whole.size()), whole);
  EXPECT_FALSE(data.enabled());
  data.GetCurrentState(&state);
  EXPECT_FALSE(state.enabled);
}

TEST_F(ProfileDataTest, ResetWritesNoMore) {
  ProfileData data;
  ASSERT_TRUE(data.Start(path_.c_str(), ProfileData::Options()));
  Add(data, {4, 5});
  data.Reset();
  EXPECT_FALSE(data.enabled());
  EXPECT_TRUE(Contents(100).empty());
  EXPECT_FALSE(data.Start("/nonexistent/profile", ProfileData::Options()));
}

}  // namespace
