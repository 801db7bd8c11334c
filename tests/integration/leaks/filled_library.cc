// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library whose data lead to blocks.

#include <memory>
#include <string>
#include <vector>

namespace {

std::vector<std::unique_ptr<std::string>> strings;

}  // namespace

extern "C" void fill() {
  for (int i = 0; i < 20; ++i) strings.push_back(std::make_unique<std::string>(100, 'x'));
}
