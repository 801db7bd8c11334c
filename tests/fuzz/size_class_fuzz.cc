// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Look-ups in the size-class tables, compared with their slow definition.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "model/smallest_class.h"
#include "size_class/size_classes.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

void CheckClassOf(size_t size, size_t alignment) {
  const uint8_t expected = alignment > kPageSize ? uint8_t{0} : SmallestClass(size, alignment);
  TCMALLOC_CHECK_EQ(SizeClassForAligned(size, alignment), expected);
  if (size > kMaxSmallSize) return;
  TCMALLOC_CHECK_EQ(SizeClassFor(size), SmallestClass(size, 1));
  TCMALLOC_CHECK(size < 16 || kSizeClasses[SizeClassFor(size)].size % 16 == 0);
}

// `offset` may lie in the tail of the span.
void CheckOffset(size_t offset, uint8_t size_class) {
  const SizeClassInfo& info = kSizeClasses[size_class];
  const size_t index = offset / info.size;
  TCMALLOC_CHECK_EQ(ObjectIndex(offset, size_class), index);
  TCMALLOC_CHECK_EQ(IsObjectStart(offset, size_class),
                    index < info.objects && offset % info.size == 0);
}

}  // namespace

TCM_FUZZ_TARGET(size_class_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  while (!input.empty()) {
    // Most inputs are small sizes and powers of two that a page holds, all lengths alike.
    const auto any_size = input.Take<size_t>();
    const int shift = input.Take<uint8_t>() % 64;
    const size_t alignment = size_t{1} << input.Take<uint8_t>() % 64;
    CheckClassOf(any_size >> shift, alignment);

    const auto size_class = static_cast<uint8_t>(1 + input.Take<uint8_t>() % (kSizeClassCount - 1));
    CheckOffset(input.Take<uint32_t>() % kSizeClasses[size_class].span_bytes(), size_class);
  }
  return 0;
}
