// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Targets of libFuzzer that share a program: `fuzz_targets --target=NAME` runs the one of that
// name. The program also finds what the others cover, but an input reaches only its own target.

#ifndef TCMALLOC_TESTS_FUZZ_FUZZ_TARGET_H_
#define TCMALLOC_TESTS_FUZZ_FUZZ_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tcmalloc::testing {

// Returns 0, or does not return.
using RunInput = int (*)(const uint8_t* data, size_t size);
// Changes an input in place and returns its new size, of at most `max_size`.
using MutateInput = size_t (*)(uint8_t* data, size_t size, size_t max_size, unsigned seed);

// Mutates as libFuzzer does by default.
size_t MutateBytes(uint8_t* data, size_t size, size_t max_size, unsigned seed);

// Static, and there before main.
class FuzzTarget {
 public:
  FuzzTarget(std::string_view name, MutateInput mutate, RunInput run);
  FuzzTarget(const FuzzTarget&) = delete;
  FuzzTarget& operator=(const FuzzTarget&) = delete;

  std::string_view name() const { return name_; }
  MutateInput mutate() const { return mutate_; }
  RunInput run() const { return run_; }
  const FuzzTarget* next() const { return next_; }

 private:
  std::string_view name_;
  MutateInput mutate_;
  RunInput run_;
  const FuzzTarget* next_;
};

}  // namespace tcmalloc::testing

// Begins the definition of a target's function, which is called as RunInput:
//
//   TCM_FUZZ_TARGET(name, MutateBytes)(const uint8_t* data, size_t size) { ... }
#define TCM_FUZZ_TARGET(name, mutate)                                            \
  static int name(const uint8_t*, size_t);                                       \
  static const tcmalloc::testing::FuzzTarget name##_target(#name, mutate, name); \
  static int name

#endif  // TCMALLOC_TESTS_FUZZ_FUZZ_TARGET_H_
