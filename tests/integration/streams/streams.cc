// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Checks that the allocator's messages do the program no harm: no signal, no wait without end, no
// line in a file of its own, and no cancellation inside malloc. Each probe runs in a process of its
// own: streams --probe NAME.

#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>

#include "conformance/child.h"
#include "conformance/suite.h"
#include "integration/streams/probes.h"

namespace tcmalloc::testing {
namespace {

void ExpectProbe(Case& result, const char* probe, bool reports, const char* page_heap) {
  const ChildResult child = RunInChild([&] {
    if (reports) setenv("TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "1073741824", 1);
    if (strcmp(probe, "wait") == 0) {
      setenv("TCMALLOC_HEAP_LIMIT_MB", "64", 1);
      setenv("TCMALLOC_RELEASE_RATE", "0", 1);
    }
    setenv("TCMALLOC_PAGE_HEAP", page_heap, 1);
    execl("/proc/self/exe", "streams", "--probe", probe, nullptr);
    _exit(2);
  });
  if (child.Exited(kProbeSkipped)) return result.Skip("system calls cannot be held up here");
  result.Check(child.Exited(0), probe, "exit status 0", child);
}

void AddAll(Suite& suite, const std::string& group, std::span<const StreamProbe> probes) {
  for (const StreamProbe& probe : probes) {
    // Reports are off unless they are asked for.
    const bool reports = strcmp(probe.name, "data file") != 0;
    for (const char* page_heap : {"classic", "huge"}) {
      suite.Add(group + "/" + probe.name + "/" + page_heap, [&probe, reports, page_heap](Case& c) {
        ExpectProbe(c, probe.name, reports, page_heap);
      });
    }
  }
}

int RunProbe(const char* name) {
  for (const std::span<const StreamProbe> probes : {StreamProbes(), CancellationProbes()}) {
    for (const StreamProbe& probe : probes) {
      if (strcmp(probe.name, name) == 0) return probe.run();
    }
  }
  return 2;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  constexpr std::size_t kLeastCases = 20;
  if (argc == 3 && std::strcmp(argv[1], "--probe") == 0) return RunProbe(argv[2]);
  Suite suite;
  AddAll(suite, "streams", StreamProbes());
  AddAll(suite, "cancellation", CancellationProbes());
  return suite.Main(argc, argv, kLeastCases);
}
