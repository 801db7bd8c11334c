// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "conformance/cases.h"
#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

constexpr const char* kNames[] = {"malloc_usable_size", "malloc_size", "tc_malloc_size"};

// Neighbours held together and written in full, then all read: usable bytes belong to one block.
void CheckWritable(Case& result, Size size) {
  constexpr Size kBlocks = 24;
  std::vector<unsigned char*> blocks;
  for (Size i = 0; i < kBlocks; ++i) {
    auto* const block = static_cast<unsigned char*>(Api().malloc(size));
    const Size usable = Api().malloc_usable_size(block);
    result.Check(usable >= size, "usable size", "at least " + std::to_string(size), usable);
    std::memset(block, static_cast<int>(i + 1), usable);
    blocks.push_back(block);
  }
  for (Size i = 0; i < kBlocks; ++i) {
    const Size usable = Api().malloc_usable_size(blocks[i]);
    for (Size at = 0; at < usable; ++at) {
      if (blocks[i][at] != i + 1) {
        result.True("byte " + std::to_string(at) + " of " + std::to_string(size) + " kept", false);
        break;
      }
    }
  }
  for (unsigned char* block : blocks) Api().free(block);
}

}  // namespace

void AddUsableSizeCases(Suite& suite) {
  for (const char* name : kNames) {
    Size (*f)(void*) = Symbol(name);
    if (f == nullptr) continue;
    suite.Add(std::string("usable/") + name + "/of NULL is 0",
              [f](Case& result) { result.Equal("usable size", Size{0}, f(nullptr)); });
    suite.Add(std::string("usable/") + name + "/is the same every time", [f](Case& result) {
      for (Size size = 0; size < 1 << 20; size += size / 5 + 1) {
        void* const block = Api().malloc(size);
        result.Equal("first call", Api().malloc_usable_size(block), f(block));
        std::memset(block, 0xff, size);
        result.Equal("after writing", Api().malloc_usable_size(block), f(block));
        Api().free(block);
      }
    });
  }
  suite.Add("usable/writable in full, every size to 4200", [](Case& result) {
    for (Size size = 0; size <= 4200 && !result.failed(); ++size) CheckWritable(result, size);
  });
  for (const Size size :
       std::initializer_list<Size>{8191, 8193, 20000, 32768, 65537, 131072, 262143, 262144, 262145,
                                   300001, 1 << 20, (1 << 20) + 1}) {
    suite.Add("usable/writable in full, " + std::to_string(size),
              [size](Case& result) { CheckWritable(result, size); });
  }
}

}  // namespace tcmalloc::testing
