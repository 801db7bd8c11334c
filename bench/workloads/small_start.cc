// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Processes that allocate little: what starting under an allocator costs in time and in resident
// memory. The parent starts itself many times, one child after another.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

void AllocateALittle(uint64_t objects) {
  Random random(0);
  std::vector<Block> blocks(objects);
  for (Block& block : blocks) block = Allocate(random.Between(8, 256));
  for (Block& block : blocks) Release(&block);
}

// Runs one child to its end and returns its peak resident size in bytes. posix_spawn, unlike fork,
// copies no page tables, so the parent's size does not show.
uint64_t RunChild(uint64_t objects) {
  std::string program = "small_start";
  std::string processes = "--processes=0";
  std::string objects_option = "--objects=" + std::to_string(objects);
  char* arguments[] = {program.data(), processes.data(), objects_option.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) {
    Fail("cannot start a child");
  }
  int status = 0;
  rusage usage;
  if (wait4(child, &status, 0, &usage) != child || status != 0) Fail("a child failed");
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

double CpuSeconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int Main(int argc, char** argv) {
  uint64_t processes = 200;
  uint64_t objects = 500;
  Options options("small_start", "Starts children that allocate a little and end.");
  options.Number("processes", &processes, 0, UINT64_MAX, "children; 0: be such a child");
  options.Number("objects", &objects, 1, 1 << 24, "objects of 8 to 256 bytes in each child");
  options.Parse(argc, argv);
  if (processes == 0) {
    AllocateALittle(objects);
    return 0;
  }

  uint64_t peak = 0;
  rusage before;
  getrusage(RUSAGE_CHILDREN, &before);
  const Stopwatch stopwatch;
  for (uint64_t i = 0; i < processes; ++i) peak = std::max(peak, RunChild(objects));
  Elapsed elapsed = stopwatch.Read();
  rusage after;
  getrusage(RUSAGE_CHILDREN, &after);
  elapsed.cpu_seconds += CpuSeconds(after) - CpuSeconds(before);
  Report(processes, elapsed).Add("child_peak_bytes", peak).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
