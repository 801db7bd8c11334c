// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The limits that the allocator keeps itself: hard and soft ones, and those of control groups, fake
// and real. Each probe runs in a process of its own: heap_limits --probe NAME ARGUMENT.

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "conformance/child.h"
#include "conformance/suite.h"
#include "fakes/fake_file_tree.h"
#include "integration/limits/heap_limit_probes.h"
#include "integration/limits/real_cgroup.h"

namespace tcmalloc::testing {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr std::size_t kLeastCases = 15;
// Memory then goes back only where a limit asks for it.
const Variables kNoRelease = {{"TCMALLOC_RELEASE_RATE", "0"}, {"TCMALLOC_CGROUP", "off"}};

// Waits until the program is done. `enter` runs in the new process before the program does.
template <typename Enter>
void ExpectProbe(Case& result, const char* probe, const Variables& variables,
                 const std::string& argument, Enter enter) {
  const ChildResult child = RunInChild([&] {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    if (!enter()) _exit(2);
    execl("/proc/self/exe", "heap_limits", "--probe", probe, argument.c_str(), nullptr);
    _exit(2);
  });
  result.Check(child.Exited(0), probe, "exit status 0", child);
}

void ExpectProbe(Case& result, const char* probe, Variables variables,
                 const std::string& argument = "") {
  variables.insert(kNoRelease.begin(), kNoRelease.end());
  ExpectProbe(result, probe, variables, argument, [] { return true; });
}

// Both front ends, and both page heaps.
template <typename Run>
void AddInAllModes(Suite& suite, const std::string& name, Run run) {
  for (const char* front_end : {"per_thread", "per_cpu"}) {
    for (const char* page_heap : {"classic", "huge"}) {
      suite.Add(name + "/" + front_end + "/" + page_heap, [=](Case& result) {
        run(result, {{"TCMALLOC_FRONT_END", front_end}, {"TCMALLOC_PAGE_HEAP", page_heap}});
      });
    }
  }
}

void AddHard(Suite& suite) {
  for (const char* probe :
       {"hard-threads", "hard-caches", "hard-large", "hard-shrink", "hard-probes"}) {
    AddInAllModes(suite, std::string("hard/") + probe, [=](Case& result, Variables mode) {
      mode["TCMALLOC_HEAP_LIMIT_MB"] = "96";
      ExpectProbe(result, probe, mode, "96");
    });
  }
  AddInAllModes(suite, "hard/address-space", [](Case& result, const Variables& mode) {
    ExpectProbe(result, "address-space", mode, "1024");
  });
}

void AddSoft(Suite& suite) {
  for (const char* front_end : {"per_thread", "per_cpu"}) {
    for (const char* probe : {"soft-gives-back", "soft-never-fails", "soft-threads"}) {
      suite.Add(std::string("soft/") + probe + "/" + front_end, [=](Case& result) {
        ExpectProbe(result, probe,
                    {{"TCMALLOC_SOFT_LIMIT_MB", "64"}, {"TCMALLOC_FRONT_END", front_end}}, "64");
      });
    }
  }
  suite.Add("soft/without a limit memory stays",
            [](Case& result) { ExpectProbe(result, "keeps-memory", {}); });
}

void AddFakeCgroup(Suite& suite) {
  suite.Add("fake cgroup/the limit shrinks", [](Case& result) {
    const FakeFileTree tree;
    tree.WriteUnifiedCgroup("/app");
    tree.Write("/sys/fs/cgroup/app/memory.max", "max\n");
    ExpectProbe(result, "shrinking-cgroup",
                {{"TCMALLOC_CGROUP", "auto"},
                 {"TCMALLOC_CGROUP_ROOT", tree.root()},
                 {"TCMALLOC_BACKGROUND", "1"}},
                tree.root());
  });
  suite.Add("fake cgroup/a heap that grows finds its limit", [](Case& result) {
    const FakeFileTree tree;
    tree.WriteUnifiedCgroup("/app");
    tree.Write("/sys/fs/cgroup/app/memory.max", "max\n");
    ExpectProbe(result, "growing-in-cgroup",
                {{"TCMALLOC_CGROUP", "auto"}, {"TCMALLOC_CGROUP_ROOT", tree.root()}}, tree.root());
  });
  suite.Add("fake cgroup/pressure", [](Case& result) {
    const FakeFileTree tree;
    tree.WriteUnifiedCgroup("/app");
    tree.Write("/sys/fs/cgroup/app/memory.pressure", "some avg10=0.00 avg60=0.00\n");
    ExpectProbe(result, "pressure",
                {{"TCMALLOC_CGROUP", "auto"},
                 {"TCMALLOC_CGROUP_ROOT", tree.root()},
                 {"TCMALLOC_BACKGROUND", "1"}},
                tree.root());
  });
  // Twelve threads are many for one CPU, and few for two.
  for (const char* quota : {"100000 100000\n", "max 100000\n"}) {
    suite.Add(std::string("fake cgroup/caches follow the quota ") + quota[0], [=](Case& result) {
      const bool one = quota[0] == '1';
      if (!one && sysconf(_SC_NPROCESSORS_ONLN) < 2) return result.Skip("there is one CPU");
      const FakeFileTree tree;
      tree.WriteUnifiedCgroup("/app");
      tree.Write("/sys/fs/cgroup/app/cpu.max", quota);
      ExpectProbe(result, "cpu-quota",
                  {{"TCMALLOC_CGROUP", "auto"}, {"TCMALLOC_CGROUP_ROOT", tree.root()}},
                  one ? "shared" : "own");
    });
  }
  suite.Add("fake cgroup/off", [](Case& result) {
    const FakeFileTree tree;
    tree.WriteUnifiedCgroup("/app");
    tree.Write("/sys/fs/cgroup/app/memory.max", "1048576\n");
    ExpectProbe(result, "keeps-memory",
                {{"TCMALLOC_CGROUP", "off"}, {"TCMALLOC_CGROUP_ROOT", tree.root()}});
  });
}

void AddRealCgroup(Suite& suite) {
  suite.Add("real cgroup/the soft limit is below its limit", [](Case& result) {
    constexpr std::size_t kLimit = std::size_t{160} << 20;
    const RealCgroup cgroup(kLimit);
    if (!cgroup.problem().empty()) return result.Skip(cgroup.problem());
    ExpectProbe(result, "real-cgroup",
                {{"TCMALLOC_CGROUP", "auto"}, {"TCMALLOC_RELEASE_RATE", "0"}},
                std::to_string(kLimit), [&] { return cgroup.Enter(); });
  });
}

int RunProbe(const char* name, const char* argument) {
  for (const HeapLimitProbe& probe : HeapLimitProbes()) {
    if (std::strcmp(probe.name, name) != 0) continue;
    probe.run(argument);
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
  AddHard(suite);
  AddSoft(suite);
  AddFakeCgroup(suite);
  AddRealCgroup(suite);
  return suite.Main(argc, argv, kLeastCases);
}
