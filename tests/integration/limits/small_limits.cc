// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Compares what programs get from the library with profiles under small limits with what they get
// from libc; in hardened mode, with what they get in the default mode. Each figure is measured in a
// process of its own: small_limits --measure BLOCK_BYTES.

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "conformance/child.h"
#include "conformance/suite.h"
#include "integration/limits/address_limit.h"
#include "integration/limits/kept_blocks.h"

namespace tcmalloc::testing {
namespace {

constexpr Size kLargeBlock = 65'000;
constexpr Size kSmallBlock = 100;

struct Limit {
  const char* name;
  int resource;
  Size kibibytes;
};
constexpr Limit kLimits[] = {{"RLIMIT_DATA", RLIMIT_DATA, 60'000},
                             {"RLIMIT_DATA", RLIMIT_DATA, 100'000},
                             {"RLIMIT_AS", RLIMIT_AS, 60'000},
                             {"RLIMIT_AS", RLIMIT_AS, 100'000}};
constexpr Limit kSmallestLimits[] = {{"RLIMIT_DATA", RLIMIT_DATA, 30'000},
                                     {"RLIMIT_AS", RLIMIT_AS, 40'000}};

// Prints how many bytes the process has in blocks of one size when there are no more.
int Measure(Size block) {
  KeptBlocks blocks;
  while (blocks.Grow(block)) continue;
  dprintf(STDERR_FILENO, "%zu\n", blocks.bytes());
  return 0;
}

void SetLimit(const Limit& limit) {
  const rlimit wanted{limit.kibibytes * kKiB, limit.kibibytes * kKiB};
  if (setrlimit(limit.resource, &wanted) != 0) _exit(2);
}

// Returns what Measure prints under a limit, in that mode of the library; without the library if
// `mode` is null.
Size FigureOf(Case& result, const Limit& limit, Size block, const char* mode) {
  const ChildResult child = RunInChild([&] {
    if (mode == nullptr) {
      unsetenv("LD_PRELOAD");
    } else {
      setenv("TCMALLOC_MODE", mode, 1);
    }
    SetLimit(limit);
    execl("/proc/self/exe", "small_limits", "--measure", std::to_string(block).c_str(), nullptr);
    _exit(2);
  });
  if (!result.Check(child.Exited(0), "end", "exit status 0", child)) return 0;
  return std::strtoull(child.errors.c_str(), nullptr, 10);
}

// Adds a case that compares one mode with another, or with libc.
void AddNineTenths(Suite& suite, const Limit& limit, Size block, const char* mode,
                   const char* other) {
  const std::string name = std::string(mode) + "/" + limit.name + " " +
                           std::to_string(limit.kibibytes) + " KiB/" + std::to_string(block);
  suite.Add(name, [=, &limit](Case& result) {
    const Size whole = FigureOf(result, limit, block, other);
    const Size least = (whole * 9 + 9) / 10;
    const Size figure = FigureOf(result, limit, block, mode);
    result.Check(whole > 0 && figure >= least, "bytes", "at least " + std::to_string(least),
                 figure);
  });
}

void AddProgram(Suite& suite, const Limit& limit, const char* mode) {
  const std::string name =
      std::string(mode) + "/" + limit.name + " " + std::to_string(limit.kibibytes) + " KiB/ls";
  suite.Add(name, [=, &limit](Case& result) {
    const ChildResult child = RunInChild([&] {
      setenv("TCMALLOC_MODE", mode, 1);
      SetLimit(limit);
      execl("/bin/ls", "ls", "-d", "/", nullptr);
      _exit(2);
    });
    result.Check(child.Exited(0), "end", "exit status 0", child);
  });
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  if (argc == 3 && std::strcmp(argv[1], "--measure") == 0) {
    return Measure(std::strtoull(argv[2], nullptr, 10));
  }
  Suite suite;
  std::size_t cases = 0;
  for (const Limit& limit : kLimits) {
    AddNineTenths(suite, limit, kLargeBlock, "default", nullptr);
    AddNineTenths(suite, limit, kSmallBlock, "default", nullptr);
    // Small blocks have a record of their own there.
    AddNineTenths(suite, limit, kLargeBlock, "debug", nullptr);
    AddNineTenths(suite, limit, kLargeBlock, "hardened", "default");
    AddNineTenths(suite, limit, kSmallBlock, "hardened", "default");
    cases += 5;
  }
  for (const Limit& limit : kSmallestLimits) {
    for (const char* mode : {"default", "debug", "hardened"}) {
      AddProgram(suite, limit, mode);
      ++cases;
    }
  }
  return suite.Main(argc, argv, cases);
}
