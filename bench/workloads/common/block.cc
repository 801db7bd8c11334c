// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#include "common/block.h"

#include <cstdarg>
#include <cstdio>

namespace tcmalloc::bench {

void Fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::_Exit(1);
}

void FailOverwritten(const Block& block) {
  Fail("the block of %zu bytes at %p was overwritten", block.size, block.address);
}

}  // namespace tcmalloc::bench
