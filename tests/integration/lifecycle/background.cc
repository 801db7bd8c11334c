// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The background thread, which TCMALLOC_BACKGROUND=1 asks for: it runs and takes no signals; it
// gives the memory of an idle process back, here and in a child of fork; and it ends with the
// process. To be run with a short half-life.

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "stress/threads/workload.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Allocates nothing that stays.
size_t ResidentBytes() {
  FILE* file = fopen("/proc/self/statm", "r");
  PROGRAM_CHECK(file != nullptr);
  size_t total = 0;
  size_t resident = 0;
  PROGRAM_CHECK(fscanf(file, "%zu %zu", &total, &resident) == 2);
  fclose(file);
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

std::string FieldOf(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":\t", 0) == 0) return line.substr(name.size() + 2);
  }
  return {};
}

// The status file of the allocator's thread in this process, or nothing.
std::string BackgroundStatus() {
  std::string found;
  DIR* directory = opendir("/proc/self/task");
  PROGRAM_CHECK(directory != nullptr);
  while (const dirent* entry = readdir(directory)) {
    const std::string path = std::string("/proc/self/task/") + entry->d_name + "/status";
    if (FieldOf(path, "Name") == "tcmalloc") found = path;
  }
  closedir(directory);
  return found;
}

// Waits until `condition()` holds, for whoever waits for this program to give up if it never does.
template <typename F>
void Await(F condition) {
  while (!condition()) usleep(1000);
}

void AllocateAndFree() {
  constexpr size_t kBlock = 4000;
  std::vector<void*> blocks(100 * kMiB / kBlock);
  for (void*& block : blocks) {
    block = malloc(kBlock);
    memset(block, 1, kBlock);
  }
  for (void* block : blocks) free(block);
}

void CheckThread() {
  Await([] { return !BackgroundStatus().empty(); });
  // All but the two that cannot be blocked, and the two that libc keeps for itself.
  const unsigned long long blocked =
      strtoull(FieldOf(BackgroundStatus(), "SigBlk").c_str(), nullptr, 16);
  PROGRAM_CHECK((blocked | 0x1'8004'0100ULL) == ~0ULL);
}

void CheckRelease() {
  const size_t before = ResidentBytes();
  AllocateAndFree();
  Await([before] { return ResidentBytes() <= before + 16 * kMiB; });
}

}  // namespace

int main() {
  CheckThread();
  CheckRelease();
  const pid_t child = fork();
  PROGRAM_CHECK(child >= 0);
  if (child == 0) {
    AllocateAndFree();
    CheckThread();
    CheckRelease();
    exit(0);
  }
  int status = -1;
  PROGRAM_CHECK(waitpid(child, &status, 0) == child);
  PROGRAM_CHECK(status == 0);
  CheckThread();
  return 0;
}
