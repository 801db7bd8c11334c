// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random operations of the whole malloc API against a shadow map. Without --mix it runs a list of
// configurations that together perform --ops operations.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "stress/api/machine.h"

namespace tcmalloc::testing {
namespace {

constexpr std::uint64_t kDefaultOperations = 20'000'000;

struct Share {
  const char* mix;
  unsigned threads;
  unsigned cross_percent;
  unsigned permille;  // of the operations
};

// Operations on large blocks cost page faults, so they get fewer.
constexpr Share kDefaultShares[] = {
    {"tiny", 2, 0, 200},    {"small", 4, 25, 230},    {"mixed", 1, 0, 190}, {"mixed", 8, 100, 180},
    {"medium", 3, 50, 120}, {"page-edge", 2, 10, 60}, {"large", 4, 50, 10}, {"tiny", 64, 50, 10},
};

[[noreturn]] void Usage() {
  std::fprintf(stderr,
               "usage: api_state_machine [--ops N] [--seed N] [--mix NAME] [--threads N]\n"
               "                         [--cross PERCENT] [--replay]\n"
               "mixes:");
  for (const SizeMix& mix : SizeMixes()) std::fprintf(stderr, " %s", mix.name);
  std::fprintf(stderr, "\n");
  std::exit(2);
}

std::uint64_t ParseNumber(const char* text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') Usage();
  return value;
}

Configuration ParseArguments(int argc, char** argv) {
  Configuration result;
  result.operations = kDefaultOperations;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--replay") {
      result.replay = true;
      continue;
    }
    if (++i == argc) Usage();
    if (option == "--mix") {
      result.mix = FindSizeMix(argv[i]);
      if (result.mix == nullptr) Usage();
    } else if (option == "--ops") {
      result.operations = ParseNumber(argv[i]);
    } else if (option == "--seed") {
      result.seed = ParseNumber(argv[i]);
    } else if (option == "--threads") {
      result.threads = static_cast<unsigned>(ParseNumber(argv[i]));
    } else if (option == "--cross") {
      result.cross_percent = static_cast<unsigned>(ParseNumber(argv[i]));
    } else {
      Usage();
    }
  }
  if (result.threads < 1 || result.threads > kMaxThreads || result.cross_percent > 100) Usage();
  if (result.replay && result.mix == nullptr) Usage();
  return result;
}

void RunAndReport(const Configuration& configuration, ShadowMap& shadow) {
  const std::uint64_t operations = Run(configuration, shadow);
  std::printf("ok: %-9s %2u threads, %3u %% freed by others: %llu operations\n",
              configuration.mix->name, configuration.threads, configuration.cross_percent,
              static_cast<unsigned long long>(operations));
  std::fflush(stdout);
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  Configuration configuration = ParseArguments(argc, argv);
  ShadowMap shadow;
  if (configuration.mix != nullptr) {
    RunAndReport(configuration, shadow);
    return 0;
  }
  const std::uint64_t total = configuration.operations;
  for (const Share& share : kDefaultShares) {
    configuration.mix = FindSizeMix(share.mix);
    configuration.threads = share.threads;
    configuration.cross_percent = share.cross_percent;
    configuration.operations = total * share.permille / 1000;
    RunAndReport(configuration, shadow);
    ++configuration.seed;
  }
  return 0;
}
