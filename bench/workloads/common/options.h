// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_OPTIONS_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tcmalloc::bench {

// The command line of a workload: `--name=value` options only. Each option is bound to a variable
// whose initial value is the default. Parse() prints help and exits with 0 for --help, and exits
// with 2 and one line on stderr for anything it does not understand.
class Options {
 public:
  Options(std::string_view program, std::string_view description);

  // A number in [min, max]; the suffixes k, m and g multiply by 2^10, 2^20 and 2^30.
  void Number(std::string_view name, uint64_t* value, uint64_t min, uint64_t max,
              std::string_view help);
  // One of a few words; the first one that equals *value is the default.
  void Choice(std::string_view name, std::string* value, std::vector<std::string> choices,
              std::string_view help);
  // A path or other text that may not be empty.
  void Text(std::string_view name, std::string* value, std::string_view help);

  void Parse(int argc, char** argv) const;

  // For conditions between options: prints the message the way Parse() does and exits with 2.
  [[noreturn]] void Reject(const std::string& message) const;

 private:
  struct Option {
    std::string name;
    std::string help;
    uint64_t* number = nullptr;
    std::string* text = nullptr;
    uint64_t min = 0;
    uint64_t max = 0;
    std::vector<std::string> choices;
  };

  void PrintHelp() const;
  void Assign(const Option& option, const std::string& value) const;
  void AssignNumber(const Option& option, const std::string& value) const;

  std::string program_;
  std::string description_;
  std::vector<Option> options_;
};

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_OPTIONS_H_
