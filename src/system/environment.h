// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The environment variables with which the process was started.

#ifndef TCMALLOC_SYSTEM_ENVIRONMENT_H_
#define TCMALLOC_SYSTEM_ENVIRONMENT_H_

#include <string_view>

#include "system/line_reader.h"

namespace tcmalloc {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view value;
};

// Lists the environment without getenv, whose lock and state are libc's. An allocation can come
// before libc has found the environment, which is then read from /proc/self/environ. Not thread
// safe. May change errno.
class Environment {
 public:
  // Opens the environment of this process; empty if the process is a secure one. At most one object
  // made in this way may exist at a time, because they share a buffer.
  Environment();
  // A block of "NAME=value" that ends with a null pointer.
  explicit Environment(const char* const* block) : block_(block) {}

  // Reads the next variable, valid until the next call. Skips entries without a name.
  [[nodiscard]] bool Next(EnvironmentVariable* variable);

 private:
  bool NextEntry(std::string_view* entry);

  const char* const* block_;
  LineReader file_{nullptr, 0, '\0'};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_ENVIRONMENT_H_
