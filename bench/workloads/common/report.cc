// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <cstdio>

namespace tcmalloc::bench {

Report::Report(uint64_t ops, const Elapsed& elapsed) {
  Add("ops", ops);
  Add("seconds", elapsed.seconds);
  Add("cpu_seconds", elapsed.cpu_seconds);
}

Report& Report::Add(std::string_view key, uint64_t value) {
  AppendKey(key);
  line_ += std::to_string(value);
  return *this;
}

Report& Report::Add(std::string_view key, double value) {
  AppendKey(key);
  AppendNumber(value);
  return *this;
}

Report& Report::Add(std::string_view key, const std::vector<double>& values) {
  AppendKey(key);
  line_ += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) line_ += ',';
    AppendNumber(values[i]);
  }
  line_ += ']';
  return *this;
}

void Report::Print() const {
  std::printf("{%s}\n", line_.c_str());
  std::fflush(stdout);
}

void Report::AppendKey(std::string_view key) {
  if (!line_.empty()) line_ += ',';
  line_ += '"';
  line_ += key;
  line_ += "\":";
}

void Report::AppendNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  line_ += text;
}

}  // namespace tcmalloc::bench
