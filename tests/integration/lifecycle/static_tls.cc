// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "integration/lifecycle/static_tls.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

// Far more than any libc has room for, and little enough for an exit status.
constexpr int kMostFillers = 250;

// Loads up to `most` copies of the library and returns how many could be loaded.
int LoadCopies(const char* path, int most) {
  // A library is known by its file, so that each copy needs one of its own; once it is loaded the
  // file is not needed any more.
  std::string folder = std::filesystem::temp_directory_path() / "tcm_static_tls_XXXXXX";
  PROGRAM_CHECK(mkdtemp(folder.data()) != nullptr);
  int loaded = 0;
  while (loaded < most) {
    const std::string copy = folder + "/filler" + std::to_string(loaded) + ".so";
    std::filesystem::copy_file(path, copy);
    if (dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
      PROGRAM_CHECK(strstr(dlerror(), "static TLS") != nullptr);
      break;
    }
    ++loaded;
  }
  std::filesystem::remove_all(folder);
  return loaded;
}

// The number of copies for which there is room, found out in a child process.
int RoomForCopies(const char* path) {
  const pid_t child = fork();
  PROGRAM_CHECK(child >= 0);
  if (child == 0) _exit(LoadCopies(path, kMostFillers));
  int status = 0;
  PROGRAM_CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  PROGRAM_CHECK(WEXITSTATUS(status) < kMostFillers);
  return WEXITSTATUS(status);
}

}  // namespace

int FillStaticTls(const char* path) {
  const int room = RoomForCopies(path);
  PROGRAM_CHECK(room > 0);
  PROGRAM_CHECK(LoadCopies(path, room - 1) == room - 1);
  return room - 1;
}

}  // namespace tcmalloc::testing
