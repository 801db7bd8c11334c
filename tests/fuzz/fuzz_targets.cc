// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What libFuzzer calls, for the target that the command line names.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/fuzz_target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace tcmalloc::testing {
namespace {

constinit const FuzzTarget* first_target = nullptr;
constinit const FuzzTarget* chosen_target = nullptr;

const FuzzTarget* FindTarget(std::string_view name) {
  const FuzzTarget* target = first_target;
  while (target != nullptr && target->name() != name) target = target->next();
  return target;
}

[[noreturn]] void ExplainUsage() {
  std::fprintf(stderr,
               "usage: fuzz_targets --target=NAME [libFuzzer's arguments], where NAME is one of\n");
  for (const FuzzTarget* target = first_target; target != nullptr; target = target->next()) {
    std::fprintf(stderr, "  %s\n", target->name().data());
  }
  std::exit(2);
}

}  // namespace

FuzzTarget::FuzzTarget(std::string_view name, MutateInput mutate, RunInput run)
    : name_(name), mutate_(mutate), run_(run), next_(first_target) {
  first_target = this;
}

size_t MutateBytes(uint8_t* data, size_t size, size_t max_size, unsigned /*seed*/) {
  return LLVMFuzzerMutate(data, size, max_size);
}

}  // namespace tcmalloc::testing

using namespace tcmalloc::testing;

// libFuzzer itself ignores arguments that begin with two dashes.
extern "C" int LLVMFuzzerInitialize(const int* argc, char*** argv) {
  constexpr std::string_view kTargetArgument = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view argument = (*argv)[i];
    if (argument.starts_with(kTargetArgument)) {
      chosen_target = FindTarget(argument.substr(kTargetArgument.size()));
    }
  }
  if (chosen_target == nullptr) ExplainUsage();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return chosen_target->run()(data, size);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return chosen_target->mutate()(data, size, max_size, seed);
}
