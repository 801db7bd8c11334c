// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_REPORT_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_REPORT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/stopwatch.h"

namespace tcmalloc::bench {

// The line of JSON that a workload prints last. `ops` counts what the workload calls an
// operation, as a rule one allocation and its release.
class Report {
 public:
  Report(uint64_t ops, const Elapsed& elapsed);

  Report& Add(std::string_view key, uint64_t value);
  Report& Add(std::string_view key, double value);
  Report& Add(std::string_view key, const std::vector<double>& values);

  void Print() const;

 private:
  void AppendKey(std::string_view key);
  void AppendNumber(double value);

  std::string line_;
};

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_REPORT_H_
