// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Times small operations.

#ifndef TCMALLOC_BENCH_MICRO_COMMON_HARNESS_H_
#define TCMALLOC_BENCH_MICRO_COMMON_HARNESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tcmalloc::bench {

// Makes the compiler believe that `value` is used.
template <typename T>
inline void Use(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

// Runs benchmarks in the order of the calls and prints a line of JSON for each:
//
//     {"benchmark": name, "operations": per repetition, "repetitions": n,
//      "median_ns": per operation, "min_ns": ..., "max_ns": ...}
//
// Options of the command line:
//     --filter=TEXT      only benchmarks whose name contains TEXT
//     --repetitions=N    how often each is timed (11)
//     --min-us=N         how long a repetition takes at least (20000)
class Harness {
 public:
  // Ends the process, with a message, where an option is not understood.
  Harness(int argc, char** argv);

  // `f(n)` does n operations. The number of operations is chosen by trial, which also warms up.
  void Run(const std::string& name, const std::function<void(uint64_t)>& f);

  // Measures in `threads` threads at once, each of which does n operations between a common start
  // and its end. The slowest thread counts. Calls `f(thread, n)` with a number below `threads`.
  void RunThreads(const std::string& name, int threads,
                  const std::function<void(int, uint64_t)>& f);

 private:
  // Takes a number of operations, returns nanoseconds.
  using Trial = std::function<double(uint64_t)>;

  void Measure(const std::string& name, const Trial& trial);
  uint64_t ChooseOperations(const Trial& trial) const;

  std::string filter_;
  uint64_t repetitions_ = 11;
  uint64_t min_us_ = 20'000;
};

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_MICRO_COMMON_HARNESS_H_
