// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The allocator under real resource limits. Each probe runs in a process of its own that starts
// under the limit: limits --probe NAME BYTES. With TCM_MOST_MIB in the environment there are no
// greater limits of the address space, which programs fill several times.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "conformance/child.h"
#include "conformance/suite.h"
#include "integration/limits/probes.h"

namespace tcmalloc::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

constexpr std::size_t kAddressSpaceMiB[] = {64, 128, 192, 256, 384, 512, 768, 1024};
constexpr const char* kMemoryProbes[] = {"exhaust-large",
                                         "exhaust-small",
                                         "exhaust-in-turn",
                                         "largest-again",
                                         "calloc",
                                         "realloc",
                                         "new"};

// The values of two variables of the allocator; null leaves one alone.
struct Mode {
  const char* front_end = nullptr;
  const char* page_heap = nullptr;
};

void ExpectProbe(Case& result, const char* name, int resource, std::size_t limit, Mode mode = {}) {
  const ChildResult child = RunInChild([&] {
    if (mode.front_end != nullptr) setenv("TCMALLOC_FRONT_END", mode.front_end, 1);
    if (mode.page_heap != nullptr) setenv("TCMALLOC_PAGE_HEAP", mode.page_heap, 1);
    const rlimit wanted{limit, limit};
    if (limit != 0 && setrlimit(resource, &wanted) != 0) _exit(2);
    execl("/proc/self/exe", "limits", "--probe", name, std::to_string(limit).c_str(), nullptr);
    _exit(2);
  });
  result.Check(child.Exited(0), "end", "exit status 0", child);
}

void AddLimit(Suite& suite, const char* probe, const char* limit_name, int resource,
              std::size_t mebibytes) {
  suite.Add(std::string(limit_name) + " " + std::to_string(mebibytes) + " MiB/" + probe,
            [=](Case& result) { ExpectProbe(result, probe, resource, mebibytes * kMiB); });
}

// Adds each probe of memory under each limit. Returns the number of cases.
std::size_t AddMemoryLimits(Suite& suite) {
  const char* const text = std::getenv("TCM_MOST_MIB");
  const std::size_t most = text != nullptr ? std::strtoull(text, nullptr, 10) : SIZE_MAX;
  std::size_t cases = 0;
  for (const char* probe : kMemoryProbes) {
    for (const std::size_t mebibytes : kAddressSpaceMiB) {
      if (mebibytes > most) continue;
      AddLimit(suite, probe, "RLIMIT_AS", RLIMIT_AS, mebibytes);
      ++cases;
    }
    AddLimit(suite, probe, "RLIMIT_DATA", RLIMIT_DATA, 128);
    ++cases;
  }
  return cases;
}

// What caches of CPUs and threads keep, and either page heap, leaves enough to others.
void AddModes(Suite& suite) {
  for (const char* front_end : {"per_thread", "per_cpu"}) {
    for (const char* page_heap : {"classic", "huge"}) {
      suite.Add(std::string("RLIMIT_AS 128 MiB/exhaust-other-sizes/") + front_end + "/" + page_heap,
                [=](Case& result) {
                  ExpectProbe(result, "exhaust-other-sizes", RLIMIT_AS, 128 * kMiB,
                              {front_end, page_heap});
                });
    }
  }
}

std::size_t MostMappings() {
  std::size_t count = 0;
  FILE* const file = std::fopen("/proc/sys/vm/max_map_count", "re");
  if (file == nullptr || std::fscanf(file, "%zu", &count) != 1) count = 0;
  if (file != nullptr) std::fclose(file);
  return count;
}

void AddMappings(Suite& suite) {
  suite.Add("max_map_count/no-mappings-left", [](Case& result) {
    constexpr std::size_t kMost = 500'000;
    if (MostMappings() > kMost) return result.Skip("vm.max_map_count is too large to exhaust");
    ExpectProbe(result, "no-mappings-left", 0, 0);
  });
}

int RunProbe(const char* name, const char* limit) {
  for (const Probe& probe : Probes()) {
    if (std::strcmp(probe.name, name) != 0) continue;
    probe.run(std::strtoull(limit, nullptr, 10));
    return 0;
  }
  return 2;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  if (argc == 4 && std::strcmp(argv[1], "--probe") == 0) return RunProbe(argv[2], argv[3]);
  Suite suite;
  const std::size_t cases = AddMemoryLimits(suite);
  AddLimit(suite, "threads", "RLIMIT_AS", RLIMIT_AS, 300);
  AddLimit(suite, "threads-with-large-stacks", "RLIMIT_AS", RLIMIT_AS, 300);
  AddModes(suite);
  AddMappings(suite);
  return suite.Main(argc, argv, cases);
}
