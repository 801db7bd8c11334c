// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "integration/lifecycle/plugin.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t kBlockSize = 24;

// Allocated when the library is loaded and freed when it is unloaded.
const std::vector<std::string> names(20, std::string(50, 'n'));

struct ThreadObject {
  void* block = malloc(300);
  ThreadObject() = default;
  ThreadObject(const ThreadObject&) = delete;
  ThreadObject& operator=(const ThreadObject&) = delete;
  ~ThreadObject() { free(block); }
};

thread_local ThreadObject thread_object;

}  // namespace

char* PluginMakeBlock(char tag) {
  auto* block = static_cast<char*>(malloc(kBlockSize));
  if (block != nullptr) memset(block, tag, kBlockSize);
  return block;
}

bool PluginFreeBlock(char* block, char tag) {
  const bool intact = std::all_of(block, block + kBlockSize, [tag](char c) { return c == tag; });
  free(block);
  return intact && names.size() == 20 && names.back().size() == 50;
}

void PluginTouchThreadLocal() { memset(thread_object.block, 1, 300); }
