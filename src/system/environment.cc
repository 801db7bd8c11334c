// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/environment.h"

#include <unistd.h>

#include "system/auxv.h"

namespace tcmalloc {
namespace {

// Longer entries than this are cut; no variable of the allocator needs more than a path.
constexpr size_t kLongestEntry = size_t{8} << 10;
constinit char file_buffer[kLongestEntry];

constexpr const char* kNoVariables[] = {nullptr};

}  // namespace

Environment::Environment() : block_(environ), file_(file_buffer, sizeof(file_buffer), '\0') {
  if (IsSecureProcess()) {
    block_ = kNoVariables;
  } else if (block_ == nullptr && !file_.Open("/proc/self/environ")) {
    block_ = kNoVariables;
  }
}

bool Environment::NextEntry(std::string_view* entry) {
  if (block_ == nullptr) return file_.Next(entry);
  if (*block_ == nullptr) return false;
  *entry = *block_++;
  return true;
}

bool Environment::Next(EnvironmentVariable* variable) {
  std::string_view entry;
  while (NextEntry(&entry)) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    variable->name = {entry.data(), equals};
    entry.remove_prefix(equals + 1);
    variable->value = entry;
    return true;
  }
  return false;
}

}  // namespace tcmalloc
