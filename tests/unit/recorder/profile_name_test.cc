// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/profile_name.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace tcmalloc {
namespace {

std::string Named(bool use_pid) {
  ProfileName path;
  path << "p";
  AppendProcess(path, 42, use_pid);
  return path.text();
}

class ProfileNameTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"PMIX_RANK", "SLURM_JOB_ID", "SLURM_PROCID", "OMPI_HOME", "PMI_RANK"}) {
      unsetenv(name);
    }
  }
};

TEST_F(ProfileNameTest, LaunchersTellProcessesApart) {
  EXPECT_EQ(Named(false), "p");
  EXPECT_EQ(Named(true), "p_42");
  setenv("PMI_RANK", "3", 1);
  EXPECT_EQ(Named(false), "p.rank-3");
  setenv("OMPI_HOME", "/x", 1);
  EXPECT_EQ(Named(false), "p_42");
  setenv("SLURM_PROCID", "4", 1);
  EXPECT_EQ(Named(false), "p_42");
  setenv("SLURM_JOB_ID", "1", 1);
  EXPECT_EQ(Named(false), "p.slurmid-4");
  unsetenv("SLURM_PROCID");
  EXPECT_EQ(Named(false), "p_42");
  setenv("PMIX_RANK", "5", 1);
  EXPECT_EQ(Named(false), "p.rank-5");
  EXPECT_EQ(Named(true), "p.rank-5_42");
  setenv("PMIX_RANK", "", 1);
  EXPECT_EQ(Named(false), "p_42");
}

TEST_F(ProfileNameTest, TheMarkOfAParentIsCleared) {
  for (const std::string_view name : {"\xaftmp/p", "\xf4mp/p"}) {
    ProfileName path;
    path << name;
    EXPECT_TRUE(path.ClearMark());
    EXPECT_EQ(path.view(), name[0] == '\xaf' ? "/tmp/p" : "tmp/p");
    EXPECT_FALSE(path.ClearMark());
  }
}

TEST_F(ProfileNameTest, APathIsNeverCut) {
  ProfileName path;
  const std::string most(kPathCapacity - 5, 'x');
  path << most;
  path.AppendNumber(7, 4);
  EXPECT_TRUE(path.ok());
  EXPECT_EQ(path.view(), most + "0007");
  path << "x";
  EXPECT_FALSE(path.ok());
  path << "";
  EXPECT_FALSE(path.ok());
  path.Clear();
  EXPECT_TRUE(path.ok());
  EXPECT_EQ(path.view(), "");
}

TEST_F(ProfileNameTest, OldProfilesAreRemovedAndNothingElse) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / ("names" + std::to_string(getpid()));
  fs::create_directory(folder);
  const std::set<std::string> kept = {"p.heap", "pp.0001.heap", "p.0001.heap.gz", "q.0001.heap",
                                      "p"};
  for (const std::string& name : kept) std::ofstream(folder / name) << "x";
  std::ofstream(folder / "p.0001.heap.pb.gz") << "x";
  // More than fit into one read of the folder.
  for (int i = 0; i < 500; ++i) {
    std::ofstream(folder / ("p." + std::to_string(i) + ".heap")) << "x";
  }
  errno = 7;
  RemoveOldProfiles((folder / "p").string());
  EXPECT_EQ(errno, 7);
  std::set<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder)) left.insert(entry.path().filename());
  EXPECT_EQ(left, kept);
  RemoveOldProfiles((folder / "missing" / "p").string());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace tcmalloc
