// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/profile_file.h"

#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

namespace fs = std::filesystem;

class ProfileFileTest : public ::testing::Test {
 protected:
  ProfileFileTest() : directory_(::testing::TempDir() + "profile.XXXXXX") {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
  }
  ~ProfileFileTest() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  // Expects one line about a path to which nothing can be written.
  static void ExpectRefused(const std::string& path) {
    ::testing::internal::CaptureStderr();
    errno = EDOM;
    {
      ProfileFile file(path.c_str());
      EXPECT_FALSE(file.ok());
      file.Write("text");
      EXPECT_FALSE(file.Complete());
    }
    EXPECT_EQ(errno, EDOM);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  }

  std::string directory_;
};

TEST_F(ProfileFileTest, AppearsWhenItIsComplete) {
  const std::string path = Path("100%s%n.heap");
  ProfileFile file(path.c_str());
  file.Write("one ");
  file.Write("two");
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(file.Complete());
  EXPECT_EQ(Contents(path), "one two");
  struct stat information = {};
  ASSERT_EQ(stat(path.c_str(), &information), 0);
  EXPECT_EQ(information.st_mode & 07777, 0600U);
  EXPECT_EQ(Files(), 1U);
}

TEST_F(ProfileFileTest, LeavesNothingWhenItIsGivenUp) {
  const std::string path = Path("a");
  {
    ProfileFile(path.c_str()).Write("text");
  }
  EXPECT_EQ(Files(), 0U);
}

TEST_F(ProfileFileTest, ReplacesAFileOfTheUser) {
  const std::string path = Path("a");
  std::ofstream(path) << "old";
  ProfileFile file(path.c_str());
  file.Write("new");
  EXPECT_EQ(Contents(path), "old");
  EXPECT_TRUE(file.Complete());
  EXPECT_EQ(Contents(path), "new");
}

// Of a process that had the same number and was killed, as the first one of a container.
TEST_F(ProfileFileTest, WritesBesideAnUnfinishedFile) {
  const std::string path = Path("a");
  const std::string theirs = path + ".tmp." + std::to_string(getpid());
  for (const char* suffix : {"", ".1", ".2"}) std::ofstream(theirs + suffix) << "unfinished";
  EXPECT_EQ(Files(), 3U);
  ProfileFile file(path.c_str());
  file.Write("text");
  EXPECT_TRUE(file.Complete());
  EXPECT_EQ(Contents(path), "text");
  EXPECT_EQ(Contents(theirs), "unfinished");
}

TEST_F(ProfileFileTest, WritesFilesWithTheLongestNames) {
  const std::string path = Path(std::string(NAME_MAX, 'n'));
  {
    ProfileFile file(path.c_str());
    file.Write("text");
    EXPECT_TRUE(file.Complete());
  }
  EXPECT_EQ(Contents(path), "text");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(ProfileFileTest, WritesFilesWithTheLongestPaths) {
  std::string folder = directory_;
  while (folder.size() + 200 < PATH_MAX) {
    folder += "/" + std::string(100, 'd');
    fs::create_directory(folder);
  }
  const std::string path = folder + "/" + std::string(PATH_MAX - 2 - folder.size(), 'n');
  {
    ProfileFile file(path.c_str());
    file.Write("text");
    EXPECT_TRUE(file.Complete());
  }
  EXPECT_EQ(Contents(path), "text");
}

TEST_F(ProfileFileTest, WritesPiecesOfEverySize) {
  const std::string path = Path("a");
  std::string expected;
  {
    ProfileFile file(path.c_str());
    for (const size_t bytes : {0, 1, 65'535, 1, 65'536, 65'537, 7, 200'000, 65'530, 6, 0}) {
      const std::string piece(bytes, static_cast<char>('a' + expected.size() % 26));
      file.Write(piece);
      expected += piece;
    }
    EXPECT_TRUE(file.Complete());
  }
  EXPECT_TRUE(Contents(path) == expected);
}

TEST_F(ProfileFileTest, RefusesWhatIsNoRegularFile) {
  std::ofstream(Path("target")) << "old";
  fs::create_symlink(Path("target"), Path("link"));
  fs::create_symlink(Path("nothing"), Path("dangling"));
  fs::create_directory(Path("directory"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  // No device is tried: a writer that is wrong would replace it.
  for (const char* name : {"link", "dangling", "directory", "fifo"}) ExpectRefused(Path(name));
  EXPECT_EQ(Contents(Path("target")), "old");
  EXPECT_FALSE(fs::exists(Path("nothing")));
  EXPECT_EQ(Files(), 5U);
}

TEST_F(ProfileFileTest, RefusesBadPaths) {
  ExpectRefused("");
  ExpectRefused(Path("missing/a"));
  ExpectRefused(Path(std::string(300, 'a')));
  ExpectRefused(Path(std::string(4096, 'a')));
  ExpectRefused(Path(std::string(100'000, '/')));
  EXPECT_EQ(Files(), 0U);
}

TEST_F(ProfileFileTest, ReplacesItsFileWhenItHasGivenUpRights) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give up rights";
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  const std::string path = Path("a");
  const pid_t child = fork();
  if (child == 0) {
    if (setuid(65534) != 0) _exit(2);
    for (const char* text : {"old", "new"}) {
      ProfileFile file(path.c_str());
      file.Write(text);
      if (!file.Complete()) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this root may not give up rights";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(Contents(path), "new");
}

TEST_F(ProfileFileTest, RefusesADirectoryThatIsReadOnly) {
  if (geteuid() == 0) GTEST_SKIP() << "root writes everywhere";
  ASSERT_EQ(chmod(directory_.c_str(), 0500), 0);
  ExpectRefused(Path("a"));
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
}

TEST_F(ProfileFileTest, SaysOnceThatItWasRemoved) {
  const std::string path = Path("a");
  ::testing::internal::CaptureStderr();
  {
    ProfileFile file(path.c_str());
    file.Write("text");
    for (const auto& entry : fs::directory_iterator(directory_)) fs::remove(entry);
    EXPECT_FALSE(file.Complete());
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_EQ(Files(), 0U);
}

// As on a file system that stores bytes on close.
TEST_F(ProfileFileTest, SaysThatTheFileCannotBeClosed) {
  const std::string path = Path("a");
  std::ofstream(path) << "old";
  ::testing::internal::CaptureStderr();
  {
    ProfileFile file(path.c_str());
    file.Write("new");
    system_calls.close = [](int fd) {
      real_system_calls.close(fd);
      errno = EDQUOT;
      return -1;
    };
    EXPECT_FALSE(file.Complete());
    system_calls.close = real_system_calls.close;
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_NE(said.find("cannot be written"), std::string::npos) << said;
  EXPECT_EQ(Contents(path), "old");
  EXPECT_EQ(Files(), 1U);
}

// A limit of the size of files makes writes fail as a full disk does.
TEST_F(ProfileFileTest, SaysOnceThatTheDiskIsFull) {
  rlimit old_limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  signal(SIGXFSZ, SIG_DFL);
  const std::string path = Path("a");
  std::ofstream(path) << "old";
  ::testing::internal::CaptureStderr();
  {
    ProfileFile file(path.c_str());
    const rlimit limit = {1000, old_limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 3000; ++i) file.Write(std::string(100, 'x'));
    EXPECT_FALSE(file.Complete());
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  }
  sigset_t pending;
  ASSERT_EQ(sigpending(&pending), 0);
  EXPECT_FALSE(sigismember(&pending, SIGXFSZ));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
  EXPECT_EQ(Contents(path), "old");
  EXPECT_EQ(Files(), 1U);
}

}  // namespace
}  // namespace tcmalloc
